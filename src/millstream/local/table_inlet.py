"""The queue of a table's changes in a query with a checkpoint, which has to outlast it.

What the query has been told of the table stays in the checkpoint: after a restart only what has
changed meanwhile is told. Changes are kept one by one; from time to time those that were received
become one, so that all takes about twice the room of the table.
"""

from __future__ import annotations

from urllib.parse import quote

import numpy as np

from millstream.catalog import Stream
from millstream.checkpoint.files import Files
from millstream.checkpoint.records import sealed, unsealed
from millstream.checkpoint.spool import Spool, decoded, encoded
from millstream.local.inbox import CAPACITY, Inbox, SpooledInlet
from millstream.local.intake import joined
from millstream.local.table_contents import net_rows
from millstream.logical.time import ALWAYS, INFINITY
from millstream.records import Checked, Records

_FOLDER = "tables"
_FEW_ROWS, _MANY_ENTRIES = 10_000, 4_000


class TableInlet(SpooledInlet):
    def __init__(self, stream: Stream, inbox: Inbox, files: Files) -> None:
        super().__init__(stream, inbox, CAPACITY, Spool(files, stream.name))
        self.known: Records | None = None  # what the query was told before a restart, all in all
        self._files = files
        self._folder = f"{_FOLDER}/{quote(stream.name, safe='')}"
        self._folded = 0  # rows of changes that have become one
        self._rows = 0  # rows that they left

    def recover(self, received: int) -> int:
        parts = self._base()
        parts += [rows.records for first, rows in self._spool.all() if first >= self._folded]
        self.known = joined(parts) if parts else None
        return super().recover(received)

    def _base(self) -> list[Records]:
        """What changes that became one have left."""
        names = self._files.names(self._folder)
        if not names:
            return []
        records = decoded(unsealed(names[-1], self._files.read(names[-1]))).records
        self._folded, self._rows = int(names[-1].rpartition("/")[2]), len(records)
        return [records]

    def forget(self, received: int) -> None:
        """What was received becomes one change where it has grown beyond the table."""
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
        self._files.replace(name, sealed(encoded(Checked(left))))
        self._folded, self._rows = received, len(left)
        for other in older:
            if other != name:
                self._files.remove(other)
        self._spool.forget(received)


def _as_one(records: Records) -> Records:
    """Changes as one, at the time of the last of them."""
    columns, weight = net_rows(records)
    latest = int(records.start.max(initial=ALWAYS))
    start = np.full(len(weight), latest, np.int64)
    return Records(columns, start, np.full(len(weight), INFINITY, np.int64), weight)
