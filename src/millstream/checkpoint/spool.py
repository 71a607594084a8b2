"""Rows of a stream that cannot replay them, in the checkpoint of the query that reads it.

Rows are written here before the query sees them. After a crash, rows that no manifest covers are
read from here; rows that a manifest covers are removed. Each entry is one file, named by the number
of its first row, so that gaps are detected.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from millstream.checkpoint.files import CheckpointError, Files
from millstream.checkpoint.folders import file_name
from millstream.checkpoint.records import read_record, sealed_record
from millstream.model.records import BadRow, Checked, Records

FOLDER = "spool"


@dataclass(frozen=True)
class _Entry:
    """A file and its number of rows."""

    name: str
    first: int
    end: int


class Spool:
    """The rows of one stream, from the oldest still needed. Rows are numbered from 0, including bad
    rows."""

    def __init__(self, files: Files, stream: str) -> None:
        self._files = files
        self._folder = f"{FOLDER}/{file_name(stream)}"
        self._entries: deque[_Entry] = deque()
        self._changing = threading.Lock()

    def load(self, received: int) -> list[Checked]:
        """The rows written but not received. Called once, before anything is added."""
        unread = []
        end = None
        for name in self._files.names(self._folder):
            first, rows = _first(name), self._entry(name)
            if end is not None and first != end:
                raise self._damaged(f"rows {end} to {first - 1} are missing")
            end = first + len(rows)
            self._entries.append(_Entry(name, first, end))
            if first >= received:
                unread.append(rows)
        self._check(received, end or 0)
        return unread

    def all(self) -> list[tuple[int, Checked]]:
        """All entries still kept, each with the number of its first row."""
        return [(_first(name), self._entry(name)) for name in self._files.names(self._folder)]

    def _entry(self, name: str) -> Checked:
        return read_rows(name, self._files.read(name))

    @property
    def size(self) -> tuple[int, int]:
        """Entries and rows."""
        with self._changing:
            rows = self._entries[-1].end - self._entries[0].first if self._entries else 0
            return len(self._entries), rows

    def _check(self, received: int, end: int) -> None:
        """Check that the received rows were written, in complete entries."""
        if received > end:
            raise self._damaged(f"it ends at row {end}, but {received} rows were read")
        if received not in {end, *(entry.first for entry in self._entries)}:
            raise self._damaged(f"row {received} is missing")

    def _damaged(self, why: str) -> CheckpointError:
        return CheckpointError(
            f'the folder "{self._folder}" of the checkpoint is damaged: {why}',
            help="restore the checkpoint's folder, or start the query with a new one",
        )

    def add(self, rows: Checked) -> None:
        """The rows are durable when this returns. Not thread-safe."""
        if not len(rows):
            return
        first = self._entries[-1].end if self._entries else 0
        entry = _Entry(f"{self._folder}/{first:020d}", first, first + len(rows))
        self._files.publish(entry.name, sealed_rows(rows))
        with self._changing:
            self._entries.append(entry)

    def forget(self, received: int) -> None:
        """Remove entries that are no longer needed. The last entry stays: it marks the end."""
        while True:
            with self._changing:
                if len(self._entries) < 2 or self._entries[0].end > received:
                    return
                entry = self._entries.popleft()
            self._files.remove(entry.name)


def _first(name: str) -> int:
    return int(name.rpartition("/")[2])


def sealed_rows(rows: Checked) -> bytes:
    """A file of rows, including bad rows."""
    bad = [(row.number, row.message, row.help) for row in rows.bad]
    return sealed_record({"rows": rows.records.save(), "bad": bad})


def read_rows(name: str, data: bytes) -> Checked:
    told = read_record(name, data)
    return Checked(Records.restored(told["rows"]), [BadRow(*row) for row in told["bad"]])
