"""All file operations of a checkpoint. Recovery relies on their guarantees.

Names are paths relative to the checkpoint's folder, separated by "/".
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
        """Create a file that nothing refers to yet; it is durable when this returns."""

    def publish(self, name: str, data: bytes) -> None:
        """Create a file atomically; FileExistsError if it exists."""

    def replace(self, name: str, data: bytes) -> None:
        """As `publish`, but replaces an existing file."""

    def read(self, name: str, offset: int = 0, length: int = -1) -> bytes:
        """Returns fewer bytes at the end of the file."""

    def names(self, folder: str) -> list[str]:
        """The sorted names of the files in a folder, including the folder."""

    def remove(self, name: str) -> None:
        """Remove the file if it exists."""

    def tidy(self) -> None:
        """Remove drafts that crashes left behind. Must not run while files are written."""


class LocalFiles:
    """A folder of a file system with atomic rename: local, NFS, HDFS mounts. Without `durable`
    nothing is synced to disk, for queries whose checkpoint ends with them. New files and folders
    are private to their owner; with `shared` they follow the umask."""

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
                os.link(draft, path)  # unlike a rename, fails if the file exists
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
        """Translate disk errors, which a retry would not fix."""
        try:
            yield
        except FileExistsError:
            raise
        except OSError as error:
            raise CheckpointError(
                f'the checkpoint "{self.root}" cannot be written: {error.strerror}',
                help="fix that and start the query again; it resumes from its last batch",
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
                path.unlink(missing_ok=True)  # free the space of the partial file
            raise

    def _sync(self, file: IO[bytes]) -> None:
        if self.durable:
            file.flush()
            os.fsync(file.fileno())

    def _sync_folder(self, folder: Path) -> None:
        if self.durable:
            sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Make the names of its files durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Lock:
    """At most one process has a checkpoint open; the lock ends with the process."""

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
                help="stop that query first, or give this one its own checkpoint",
            ) from None

    def release(self) -> None:
        self._file.close()
