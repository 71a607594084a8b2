"""Results that are kept up to date, as G5 keeps the answers of its queries (§5.3.2).

G5 compares what it costs to keep a result: a list that is scanned for what has expired (DIRECT), a
calendar (UPA), and a table by row from which negative elements delete (NT).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.physical.areas.calendar import Calendar, Closing
from millstream.physical.batch import Batch
from millstream.physical.store import RowStore


class View(ABC):
    """The rows of an answer that hold; `take` brings what has come and how far time is."""

    @abstractmethod
    def take(self, batch: Batch) -> None: ...

    @property
    @abstractmethod
    def nbytes(self) -> int: ...


class ListView(View):
    """In the order in which rows come; each expiry looks at all of them. Only for known ends."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._store = RowStore(types)
        self._ends = np.zeros(64, np.int64)
        self._count = 0

    def take(self, batch: Batch) -> None:
        stop = self._count + len(batch)
        if stop > len(self._ends):
            self._resize(np.arange(self._count), 2 * stop)
        self._ends[self._count : stop] = batch.end
        self._store.put(slice(self._count, stop), batch.columns)
        self._count = stop
        kept = np.flatnonzero(self._ends[: self._count] > batch.frontier)
        if len(kept) < self._count:
            self._resize(kept, len(self._ends))

    def _resize(self, kept: np.ndarray, capacity: int) -> None:
        self._store.move(kept, capacity)
        self._ends = np.append(self._ends[kept], np.zeros(capacity - len(kept), np.int64))
        self._count = len(kept)

    @property
    def nbytes(self) -> int:
        return self._store.nbytes + self._ends.nbytes


class CalendarView(View):
    """In partitions by expiry; `closing` is how negative elements find what they delete."""

    def __init__(
        self, types: Sequence[pa.DataType], partitions: int, closing: Closing | None = None
    ) -> None:
        self._area = Calendar(types, closing=closing, partitions=partitions)

    def take(self, batch: Batch) -> None:
        self._area.insert(np.zeros(len(batch), np.int64), batch)
        self._area.expire(batch.frontier)

    @property
    def nbytes(self) -> int:
        return self._area.nbytes
