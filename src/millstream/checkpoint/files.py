"""The file operations of a checkpoint, all of them: what they promise is what recovery relies on.

Names are paths below the checkpoint's folder, with "/" between their parts.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Protocol

from millstream.checkpoint.folders import FOLDER_MODE, new_file, private_folder
from millstream.checkpoint.folders import CheckpointError as CheckpointError

_DRAFT = ".draft"


class Files(Protocol):
    def write(self, name: str, parts: Sequence[bytes]) -> None:
        """Make a file that nobody knows of yet; it is there to stay when this returns."""

    def publish(self, name: str, data: bytes) -> None:
        """Make a file whole or not at all; FileExistsError if there is one."""

    def replace(self, name: str, data: bytes) -> None:
        """As `publish`, whether there is one or not."""

    def read(self, name: str, offset: int = 0, length: int = -1) -> bytes:
        """Fewer bytes than asked for where the file ends."""

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, with it, in order."""

    def remove(self, name: str) -> None:
        """If it is there."""

    def tidy(self) -> None:
        """Remove what crashes have left of files that were to be made. Nobody may be making any."""


class LocalFiles:
    """A folder of a file system with atomic rename: local, NFS, HDFS mounts. Without `durable`
    nothing is forced to the disk: for queries whose checkpoint dies with them. New files and
    folders are private to their owner; with `shared` they follow the umask."""

    def __init__(self, root: str | Path, durable: bool = True, shared: bool = False) -> None:
        self.root = Path(root)
        self.durable = durable
        self._folder_mode = 0o777 if shared else FOLDER_MODE
        self._opener = None if shared else new_file

    def write(self, name: str, parts: Sequence[bytes]) -> None:
        with self._writing():
            path = self._path(name)
            self._make(path, parts)
            self._sync_folder(path.parent)

    def publish(self, name: str, data: bytes) -> None:
        with self._writing():
            path, draft = self._path(name), self._draft(name, data)
            try:
                os.link(draft, path)  # unlike a rename it fails if somebody was there first
            finally:
                draft.unlink()
            self._sync_folder(path.parent)

    def replace(self, name: str, data: bytes) -> None:
        with self._writing():
            path = self._path(name)
            self._draft(name, data).rename(path)
            self._sync_folder(path.parent)

    def read(self, name: str, offset: int = 0, length: int = -1) -> bytes:
        with (self.root / name).open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def names(self, folder: str) -> list[str]:
        try:
            found = sorted(os.listdir(self.root / folder))
        except FileNotFoundError:
            return []
        return [f"{folder}/{name}" for name in found if not name.endswith(_DRAFT)]

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            (self.root / name).unlink()

    def tidy(self) -> None:
        for draft in self.root.rglob(f"*{_DRAFT}"):
            draft.unlink(missing_ok=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """What the disk says, in words: to try again would not help."""
        try:
            yield
        except FileExistsError:
            raise
        except OSError as error:
            raise CheckpointError(
                f'the checkpoint "{self.root}" cannot be written: {error.strerror}',
                help="when that is mended, start the query again: it goes on from its last batch",
            ) from error

    def _path(self, name: str) -> Path:
        path = self.root / name
        self._make_folder(path.parent)
        return path

    def _make_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            self._make_folder(folder.parent)
            folder.mkdir(self._folder_mode, exist_ok=True)
            self._sync_folder(folder.parent)

    def _draft(self, name: str, data: bytes) -> Path:
        draft = self._path(f"{name}.{secrets.token_hex(4)}{_DRAFT}")
        self._make(draft, [data])
        return draft

    def _make(self, path: Path, parts: Sequence[bytes]) -> None:
        try:
            with open(path, "xb", opener=self._opener) as file:
                file.writelines(parts)
                self._sync(file)
        except OSError as error:
            if error.errno != errno.EEXIST:
                path.unlink(missing_ok=True)  # half a file takes room that others need
            raise

    def _sync(self, file: IO[bytes]) -> None:
        if self.durable:
            file.flush()
            os.fsync(file.fileno())

    def _sync_folder(self, folder: Path) -> None:
        if self.durable:
            sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """The names of its files are there to stay when this returns."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Lock:
    """At most one process has a checkpoint; the lock goes with the process."""

    def __init__(self, root: str | Path) -> None:
        private_folder(Path(root), "the checkpoint")
        try:
            self._file = open(Path(root) / "lock", "ab", opener=new_file)  # noqa: SIM115
        except OSError as error:
            raise CheckpointError(
                f'the checkpoint "{root}" cannot be written: {error.strerror}',
                help="name a folder that you may write to",
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            raise CheckpointError(
                f'the checkpoint "{root}" is in use by another query',
                help="stop that one first, or give this one a checkpoint of its own",
            ) from None

    def release(self) -> None:
        self._file.close()
