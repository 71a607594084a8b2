"""What a stream has given that cannot give it again, in the checkpoint of a query that reads it.

Rows are written here before the query sees them. After a crash those that no manifest covers come
from here; what a manifest covers is removed. Each entry is one file, named by the number of its
first row, so that nothing can be missing between two of them unseen.
"""

from __future__ import annotations

import pickle
import threading
from collections import deque
from dataclasses import dataclass

import pyarrow as pa

from millstream.checkpoint.files import CheckpointError, Files
from millstream.checkpoint.folders import file_name
from millstream.checkpoint.records import sealed, unsealed
from millstream.model.records import Checked, Records

FOLDER = "spool"


@dataclass(frozen=True)
class _Entry:
    """A file, and the rows that it has."""

    name: str
    first: int
    end: int


class Spool:
    """The rows of one stream, from the oldest that is still needed. Rows are numbered from 0, those
    that cannot be read with the others."""

    def __init__(self, files: Files, stream: str) -> None:
        self._files = files
        self._folder = f"{FOLDER}/{file_name(stream)}"
        self._entries: deque[_Entry] = deque()
        self._changing = threading.Lock()

    def load(self, received: int) -> list[Checked]:
        """What was written and not received: once, before anything is added."""
        unread = []
        end = None
        for name in self._files.names(self._folder):
            first, rows = _first(name), self._entry(name)
            if end is not None and first != end:
                raise self._damaged(f"rows {end} to {first - 1} are gone")
            end = first + len(rows)
            self._entries.append(_Entry(name, first, end))
            if first >= received:
                unread.append(rows)
        self._check(received, end or 0)
        return unread

    def all(self) -> list[tuple[int, Checked]]:
        """All that was written and not forgotten, each entry with the number of its first row."""
        return [(_first(name), self._entry(name)) for name in self._files.names(self._folder)]

    def _entry(self, name: str) -> Checked:
        return decoded(unsealed(name, self._files.read(name)))

    @property
    def size(self) -> tuple[int, int]:
        """Entries and rows."""
        with self._changing:
            rows = self._entries[-1].end - self._entries[0].first if self._entries else 0
            return len(self._entries), rows

    def _check(self, received: int, end: int) -> None:
        """What was received has been written, in whole entries."""
        if received > end:
            raise self._damaged(f"it ends at row {end}, of which {received} were read")
        if received not in {end, *(entry.first for entry in self._entries)}:
            raise self._damaged(f"row {received} is gone")

    def _damaged(self, why: str) -> CheckpointError:
        return CheckpointError(
            f'the folder "{self._folder}" of the checkpoint is damaged: {why}',
            help="restore the checkpoint's folder, or start the query with a new one",
        )

    def add(self, rows: Checked) -> None:
        """They are there to stay when this returns. Callers take turns."""
        if not len(rows):
            return
        first = self._entries[-1].end if self._entries else 0
        entry = _Entry(f"{self._folder}/{first:020d}", first, first + len(rows))
        self._files.publish(entry.name, sealed(encoded(rows)))
        with self._changing:
            self._entries.append(entry)

    def forget(self, received: int) -> None:
        """Remove what is not needed any more. The last entry stays: it tells how far all went."""
        while True:
            with self._changing:
                if len(self._entries) < 2 or self._entries[0].end > received:
                    return
                entry = self._entries.popleft()
            self._files.remove(entry.name)


def _first(name: str) -> int:
    return int(name.rpartition("/")[2])


def encoded(rows: Checked) -> bytes:
    """Written by Arrow, which leaves out what lies beside a slice. Rows that have numbers have
    weights."""
    records = rows.records
    columns = [*records.columns, pa.array(records.start), pa.array(records.end)]
    for more in (records.weight, records.number):
        if more is not None:
            columns.append(pa.array(more))
    batch = pa.record_batch(columns, names=[str(number) for number in range(len(columns))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pickle.dumps((sink.getvalue().to_pybytes(), list(rows.bad), len(records.columns)))


def decoded(data: bytes) -> Checked:
    stream, bad, width = pickle.loads(data)
    arrays = pa.ipc.open_stream(stream).read_next_batch().columns
    return Checked(Records(arrays[:width], *(array.to_numpy() for array in arrays[width:])), bad)
