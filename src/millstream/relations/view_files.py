"""The files of a persistent view: Parquet files that other programs may read too.

`changes-N` are the changes of batch N, written before the batch counts as delivered. From time to
time `rows-N` replaces all changes up to N: the current rows after that batch; and `history-N-T` has
the rows that had ended by then, before the instant T, and are in no earlier file. Files are written
atomically; a file older than the newest `rows-N`, or a history beyond it, was left by a crash.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from millstream.checkpoint.files import CheckpointError, LocalFiles
from millstream.relations.history import HistoryPiece

_NAME = re.compile(r"(changes|rows|history)-(\d+)(?:-(-?\d+))?\.parquet")
_NOTES = b"millstream"
FORMAT = 1  # of the files of a view


@dataclass(frozen=True)
class Settled:
    """The current rows and the history after a batch, with notes."""

    rows: pa.Table
    ended: list[HistoryPiece]
    batch: int
    notes: dict[str, int]


class ViewFiles:
    """Written by one thread; readers must handle files that disappear."""

    def __init__(self, folder: str | Path) -> None:
        self._files = LocalFiles(folder, shared=True)
        self.logged = 0  # rows of changes that are in no `rows-N`

    def log(self, changes: pa.Table, batch: int, frontier: int) -> None:
        """The changes are durable when this returns."""
        self._write(_name("changes", batch), changes, {"frontier": frontier})
        self.logged += changes.num_rows

    def settle(
        self, rows: pa.Table, ended: pa.Table, batch: int, until: int, notes: dict[str, int]
    ) -> HistoryPiece | None:
        """Write the current rows, and those that ended before `until`, in place of the changes;
        returns the stored piece of history."""
        piece = None
        if ended.num_rows:
            name = _name("history", batch, until)
            self._write(name, ended, {})
            piece = HistoryPiece(until, ended.num_rows, partial(self._read, name))
        self._write(_name("rows", batch), rows, notes)
        for kind, number, _, name in self._names():
            if (kind == "changes" and number <= batch) or (kind == "rows" and number < batch):
                self._files.remove(name)
        self.logged = 0
        return piece

    def drop(self, pieces: Iterable[HistoryPiece]) -> None:
        """Remove expired history: its first pieces, so that the instants in the file names identify
        them."""
        until = max((piece.until for piece in pieces), default=None)
        if until is not None:
            for kind, _, end, name in self._names():
                if kind == "history" and end <= until:
                    self._files.remove(name)

    def load(self) -> Settled | None:
        """The last settled state, if any; removes files left by a crash."""
        if not self._files.root.exists():
            return None
        self._files.tidy()
        last = max((number for kind, number, _, _ in self._names() if kind == "rows"), default=-1)
        ended: list[HistoryPiece] = []
        for kind, number, until, name in self._names():
            in_rows = number <= last if kind == "changes" else number < last
            if number > last if kind == "history" else in_rows:
                self._files.remove(name)
            elif kind == "history":
                ended.append(HistoryPiece(until, 0, partial(self._read, name)))
        if last < 0:
            return None
        rows = self._read(_name("rows", last))
        return Settled(rows, ended, last, self._notes(rows))

    def logs(self) -> Iterator[tuple[pa.Table, int, int]]:
        """The changes since then, each with the number of its batch and the frontier after it."""
        for kind, number, _, name in self._names():
            if kind == "changes":
                table = self._read(name)
                self.logged += table.num_rows
                yield table, number, self._notes(table)["frontier"]

    def _names(self) -> list[tuple[str, int, int, str]]:
        """Kind, batch, end and name of the files, by kind and batch."""
        found = (_NAME.fullmatch(Path(name).name) for name in self._files.names("."))
        return sorted((m[1], int(m[2]), int(m[3] or 0), m[0]) for m in found if m is not None)

    def _write(self, name: str, table: pa.Table, notes: dict[str, int]) -> None:
        from pyarrow.parquet import write_table

        buffer = io.BytesIO()
        told = json.dumps({"format": FORMAT, **notes})
        write_table(table.replace_schema_metadata({_NOTES: told}), buffer)
        self._files.replace(name, buffer.getvalue())

    def _notes(self, table: pa.Table) -> dict[str, int]:
        notes: dict[str, int] = json.loads(table.schema.metadata[_NOTES])
        format = notes.pop("format", 1)  # the first files lack it
        if format != FORMAT:
            raise CheckpointError(
                f'the files of the view in "{self._files.root}" have format {format}, this version '
                f"reads format {FORMAT}",
                help="use the version that wrote them, or drop the view and create it again",
            )
        return notes

    def _read(self, name: str) -> pa.Table:
        from pyarrow.parquet import read_table

        return read_table(self._files.root / name)


def _name(kind: str, batch: int, until: int | None = None) -> str:
    return f"{kind}-{batch:010d}{'' if until is None else f'-{until}'}.parquet"
