"""A folder of files; each batch with rows is appended as one file.

The file name contains the batch number, so a repeated batch replaces itself. The file is written
under a name that readers skip, synced to disk and renamed: readers of the folder see only complete
batches. `_millstream.json` names the query that owns the folder, and is locked while the query
runs.
"""

from __future__ import annotations

import fcntl
import json as json_format
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pyarrow as pa

from millstream.checkpoint.files import sync_folder
from millstream.connectors.contracts import GivenBatch, Noop, Sink, SinkContext
from millstream.connectors.sinks.plain import json_lines, needs_text, texts
from millstream.model.errors import QueryError
from millstream.model.types import sql_name

Write = Callable[[pa.Table, IO[bytes]], None]

_OWNER = "_millstream.json"
_LINES = 100_000  # formatted at once
_ELSEWHERE = "give the query a folder of its own"


def parquet(context: SinkContext, path: str, *, keep: bool = False) -> Sink:
    """Appends files to a folder; with `keep`, `path` is one file that holds the answer."""
    if keep:
        from millstream.connectors.sinks.kept_file import KeptFile

        return KeptFile(context, path)
    return Folder(context, path, "parquet", write_parquet)


def csv(context: SinkContext, path: str) -> Sink:
    return Folder(context, path, "csv", write_csv)


def json(context: SinkContext, path: str) -> Sink:
    return Folder(context, path, "jsonl", write_json)


def write_parquet(table: pa.Table, file: IO[bytes]) -> None:
    from pyarrow.parquet import write_table

    write_table(table, file)


def write_csv(table: pa.Table, file: IO[bytes]) -> None:
    """With a header. NULL is empty, an empty string is a pair of quotes."""
    import pyarrow.csv

    for index, field in enumerate(table.schema):
        if needs_text(field.type):
            table = table.set_column(index, field.name, texts(table.column(index)))
    pyarrow.csv.write_csv(table, file)


def write_json(table: pa.Table, file: IO[bytes]) -> None:
    """One object per line."""
    for first in range(0, table.num_rows, _LINES):
        lines = json_lines(table.slice(first, _LINES))
        file.write("".join(lines.to_pylist()).encode())


class Folder(Noop):
    def __init__(self, context: SinkContext, path: str, suffix: str, write: Write) -> None:
        self._path = local_path(path)
        self._suffix = suffix
        self._write = write
        with _told(self._path):
            _make(self._path)
            self._owner = _claimed(self._path, _identity(context, suffix))
            try:
                self._clear_up(context.next_batch)
            except BaseException:
                self._owner.close()
                raise

    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        if not table.num_rows:
            return
        name = f"batch-{batch.id:010d}.{self._suffix}"
        draft = self._path / f".{name}.draft"
        with _told(self._path):
            try:
                with draft.open("wb") as file:
                    self._write(table, file)
                    file.flush()
                    os.fsync(file.fileno())
                draft.rename(self._path / name)
            except BaseException:
                with suppress(OSError):
                    draft.unlink()
                raise
            sync_folder(self._path)

    def close(self) -> None:
        self._owner.close()

    def _clear_up(self, next_batch: int) -> None:
        """Remove drafts left by a crash. A batch beyond the next one was written by a later state
        of the query than this checkpoint, so new batches might not match it."""
        for draft in self._path.glob(".batch-*.draft"):
            draft.unlink()
        last = max(map(_batch_of, _visible(self._path)), default=-1)
        if last > next_batch:
            raise QueryError(
                f'the folder "{self._path}" has batch {last} of this query, but its checkpoint is '
                f"at batch {next_batch}",
                help="the checkpoint is older than the folder: restore the newer one, or start "
                "over with another checkpoint and another folder",
            )


def local_path(path: object) -> Path:
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise QueryError(f"the path of a sink must be a string, not {path!r}")
    text = re.sub(r"^file:(//)?(?=/)", "", str(path))
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text)
    if scheme:
        raise QueryError(
            f'the folder "{text}" is not on this machine',
            help="write to a local or mounted folder; on the Spark engine, Delta writes anywhere",
        )
    return Path(text)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Translate errors of the file system."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise QueryError(
            f'the folder "{path}" cannot be written: {reason}',
            help="check its permissions and free space; a checkpoint lets the query resume",
        ) from error


def _make(path: Path) -> None:
    for folder in reversed([path, *path.parents]):
        if not folder.exists():
            folder.mkdir(exist_ok=True)
            sync_folder(folder.parent)


def _identity(context: SinkContext, suffix: str) -> dict[str, object]:
    columns = {field.name: sql_name(field.type) for field in context.schema}
    return {
        "query": context.query,
        "emit": context.emit,
        "columns": columns,
        "files": suffix,
        "token": context.token,
    }


def _claimed(path: Path, own: dict[str, object]) -> IO[bytes]:
    """The locked owner file of the folder: this query's from before, or created now."""
    names = _visible(path)
    if names and not (path / _OWNER).exists():
        raise QueryError(
            f'the folder "{path}" is not empty: "{names[0]}" was not written by a query',
            help=_ELSEWHERE,
        )
    owner = (path / _OWNER).open("a+b")
    try:
        _lock(owner, path)
        owner.seek(0)
        before = _read(owner)
        if before is None or not _is_same(before, own):
            if _visible(path):
                raise _others(path, before)
            owner.truncate(0)
            owner.write(json_format.dumps(own, indent=2).encode())
            owner.flush()
            os.fsync(owner.fileno())
            sync_folder(path)
    except BaseException:
        owner.close()
        raise
    return owner


def _lock(owner: IO[bytes], path: Path) -> None:
    """The lock ends with the process."""
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise QueryError(
            f'the folder "{path}" is in use by another query', help=_ELSEWHERE
        ) from None


def _read(owner: IO[bytes]) -> dict[str, object] | None:
    """None if a crash left it incomplete."""
    try:
        told = json_format.loads(owner.read())
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def _is_same(before: dict[str, object], own: dict[str, object]) -> bool:
    """The name of the query does not matter."""
    return {**before, "query": None} == {**own, "query": None}


def _others(path: Path, before: dict[str, object] | None) -> QueryError:
    whose = f'query "{before["query"]}"' if before and "query" in before else "a query"
    return QueryError(
        f'the folder "{path}" has answers written by an earlier run of {whose}',
        help=f"resume from the checkpoint of that run, remove the folder, or {_ELSEWHERE}",
    )


def _visible(path: Path) -> list[str]:
    """The names that readers of the folder see."""
    return sorted(name for name in os.listdir(path) if name[0] not in "._")


def _batch_of(name: str) -> int:
    found = re.fullmatch(r"batch-(\d+)\.\w+", name)
    return int(found[1]) if found else -1
