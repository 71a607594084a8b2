"""The queue of a table's changes in a query with a checkpoint, which survives restarts.

The changes that the query has received stay in the checkpoint: after a restart it receives only
what has changed meanwhile. Changes are stored one by one; from time to time the received ones are
merged, so that they take about twice the space of the table.

The state of the query has rows by the arrival numbers it received. A table that another process
recreates renumbers its rows, so the numbers of its later changes are translated.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from millstream.checkpoint.files import Files
from millstream.checkpoint.folders import file_name
from millstream.checkpoint.spool import Spool, read_rows, sealed_rows
from millstream.connectors.intake.rows import joined
from millstream.logical.catalog import Stream
from millstream.model.records import Checked, Records
from millstream.model.time import ALWAYS, INFINITY
from millstream.physical.batch import Ints
from millstream.physical.state.keys import KeySpace
from millstream.relations.table_contents import net_rows, weights_of
from millstream.runtime.inbox import CAPACITY, Inbox, SpooledInlet

_FOLDER = "tables"
_FEW_ROWS, _MANY_ENTRIES = 10_000, 4_000


class TableInlet(SpooledInlet):
    def __init__(self, stream: Stream, inbox: Inbox, files: Files) -> None:
        super().__init__(stream, inbox, CAPACITY, Spool(files, stream.name))
        self.known: Records | None = None  # the net rows that the query received before a restart
        self._files = files
        self._folder = f"{_FOLDER}/{file_name(stream.name)}"
        self._folded = 0  # rows of changes that were merged
        self._rows = 0  # rows that remained
        # The table's numbers of rows from before a restart, and the numbers that the query
        # received; later rows have numbers above all of these.
        self._same, self._told = np.full((2, 1), INFINITY, np.int64)  # the last entry is a sentinel
        self._above = 0

    def recover(self, received: int) -> int:
        parts = self._base()
        parts += [rows.records for first, rows in self._spool.all() if first >= self._folded]
        self.known = joined(parts) if parts else None
        return super().recover(received)

    def caught_up(self, known: Records, present: Records) -> Records:
        """The changes that turn the known rows into those of the table. Equal rows are matched in
        order of arrival."""
        assert known.number is not None
        assert present.number is not None
        self._above = int(known.number.max(initial=-1)) + 1
        known = net_rows(known)
        assert known.number is not None
        old, new = _places(known, present)
        _, still, there = np.intersect1d(old, new, assume_unique=True, return_indices=True)
        order = np.argsort(present.number[there])
        self._same = np.append(present.number[there][order], INFINITY)
        self._told = np.append(known.number[still][order], INFINITY)
        gone = known.take(np.setdiff1d(np.arange(len(known)), still))
        come = present.take(np.setdiff1d(np.arange(len(present)), there))
        return joined([replace(gone, weight=-weights_of(gone)), self.as_told(come)])

    def as_told(self, records: Records) -> Records:
        """Changes of the table, with the query's row numbers."""
        number = records.number
        assert number is not None
        place = np.searchsorted(self._same, number)
        same = self._same[place] == number
        return replace(records, number=np.where(same, self._told[place], number + self._above))

    def _base(self) -> list[Records]:
        """The rows that remain of merged changes."""
        names = self._files.names(self._folder)
        if not names:
            return []
        records = read_rows(names[-1], self._files.read(names[-1])).records
        self._folded, self._rows = int(names[-1].rpartition("/")[2]), len(records)
        return [records]

    def forget(self, received: int) -> None:
        """Merge received changes once they are larger than the table."""
        entries, rows = self._spool.size
        few = rows < max(_FEW_ROWS, self._rows) and entries < _MANY_ENTRIES
        if few or entries < 2:
            return
        told = self._base()
        told += [
            entry.records
            for first, entry in self._spool.all()
            if self._folded <= first and first + len(entry) <= received
        ]
        left = _as_one(joined(told))
        older = self._files.names(self._folder)
        name = f"{self._folder}/{received:020d}"
        self._files.replace(name, sealed_rows(Checked(left)))
        self._folded, self._rows = received, len(left)
        for other in older:
            if other != name:
                self._files.remove(other)
        self._spool.forget(received)


def _as_one(records: Records) -> Records:
    """The changes merged into one, at the time of the last."""
    net = net_rows(records)
    latest = int(records.start.max(initial=ALWAYS))
    start = np.full(len(net), latest, np.int64)
    return replace(net, start=start, end=np.full(len(net), INFINITY, np.int64))


def _places(known: Records, present: Records) -> tuple[Ints, Ints]:
    """A number per row: the first of equal rows has the same number on both sides, so has the
    second, and so on."""
    columns = [pa.concat_arrays(pair) for pair in zip(known.columns, present.columns, strict=True)]
    length = len(known) + len(present)
    codes = KeySpace([column.type for column in columns]).encode(columns, length)
    sides = []
    for records, own in ((known, codes[: len(known)]), (present, codes[len(known) :])):
        assert records.number is not None
        order = np.lexsort([records.number, own])
        _, first, group = np.unique(own[order], return_index=True, return_inverse=True)
        places = np.empty(len(own), np.int64)
        places[order] = own[order] * length + np.arange(len(own)) - first[group]
        sides.append(places)
    return sides[0], sides[1]
