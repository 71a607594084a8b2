"""The queue of a table's changes in a query with a checkpoint, which has to outlast it.

What the query has been told of the table stays in the checkpoint: after a restart only what has
changed meanwhile is told. Changes are kept one by one; from time to time those that were received
become one, so that all takes about twice the room of the table.
"""

from __future__ import annotations

from urllib.parse import quote

import numpy as np
import pyarrow as pa

from millstream.catalog import Stream
from millstream.checkpoint.files import Files
from millstream.checkpoint.records import sealed, unsealed
from millstream.checkpoint.spool import Spool, decoded, encoded
from millstream.connectors.tables.comparing import net_changes
from millstream.local.inbox import CAPACITY, Inbox, SpooledInlet
from millstream.local.intake import joined
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
        left = _net(joined(told))
        older = self._files.names(self._folder)
        name = f"{self._folder}/{received:020d}"
        self._files.replace(name, sealed(encoded(Checked(left))))
        self._folded, self._rows = received, len(left)
        for other in older:
            if other != name:
                self._files.remove(other)
        self._spool.forget(received)


def _net(records: Records) -> Records:
    """Each row once; when it came does not matter any more."""
    names = [str(number) for number in range(len(records.columns))]
    weight = np.ones(len(records), np.int64) if records.weight is None else records.weight
    net = net_changes(pa.table(records.columns, names=names), weight)
    columns = [pa.concat_arrays(c.chunks or [pa.array([], c.type)]) for c in net.rows.columns]
    latest = int(records.start.max(initial=0))
    start = np.full(len(net), latest, np.int64)
    return Records(columns, start, np.full(len(net), int(records.end.max(initial=0))), net.weight)
