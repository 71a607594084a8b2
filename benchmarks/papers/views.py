"""Results that are kept up to date, as G5 keeps the answers of its queries (§5.3.2).

G5 compares the cost of maintaining a result: a list that is scanned for expired rows (DIRECT), a
calendar (UPA), and a table by row from which negative elements delete (NT).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.physical.batch import NEVER, Batch
from millstream.physical.joins.areas.calendar import CalendarArea, Closing
from millstream.physical.state.store import RowStore


class View(ABC):
    """The valid rows of an answer; `take` passes new elements and the frontier."""

    touched = 0  # rows examined so far

    @abstractmethod
    def take(self, batch: Batch) -> None: ...

    @abstractmethod
    def rows(self, at: int) -> int:
        """How many rows are valid at an instant at or after the last frontier."""


class ListView(View):
    """Unordered; each expiry scans all rows. Only for known ends. Expiry happens per batch, or per
    `unit` of time."""

    unit: int | None = None

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._store = RowStore(types)
        self._start, self._end = np.zeros((2, 64), np.int64)
        self._count = 0
        self._frontier = NEVER

    def take(self, batch: Batch) -> None:
        stop = self._count + len(batch)
        if stop > len(self._end):
            self._grow(stop)
        self._start[self._count : stop], self._end[self._count : stop] = batch.start, batch.end
        self._store.put(slice(self._count, stop), batch.columns)
        self._count = stop
        if self.unit is not None:
            for time in range(self._frontier + self.unit, batch.frontier, self.unit):
                self._expire(time)
        if batch.frontier > self._frontier:
            self._expire(batch.frontier)

    def _expire(self, frontier: int) -> None:
        """The last rows replace the expired ones."""
        self.touched += self._count
        gone = self._end[: self._count] <= frontier
        self._frontier = frontier
        if gone.any():
            self._count -= int(gone.sum())
            places = np.flatnonzero(gone[: self._count])
            last = self._count + np.flatnonzero(~gone[self._count :])
            self._start[places], self._end[places] = self._start[last], self._end[last]
            self._store.put(places, list(self._store.rows(last)))

    def _grow(self, stop: int) -> None:
        old, new = len(self._end), stop + stop // 8
        self._store.move(np.arange(old), new)
        self._start = np.append(self._start, np.zeros(new - old, np.int64))
        self._end = np.append(self._end, np.zeros(new - old, np.int64))

    def rows(self, at: int) -> int:
        start, end = self._start[: self._count], self._end[: self._count]
        return int(((start <= at) & (at < end)).sum())


class CalendarView(View):
    """In partitions by expiry; `closing` is how negative elements find the rows they delete."""

    def __init__(
        self, types: Sequence[pa.DataType], partitions: int, closing: Closing | None = None
    ) -> None:
        self._area = CalendarArea(types, closing=closing, partitions=partitions)

    def take(self, batch: Batch) -> None:
        self._area.insert(np.zeros(len(batch), np.int64), batch)
        self._area.expire(batch.frontier)
        self.touched = self._area.touched

    def rows(self, at: int) -> int:
        start, end, weight = self._area.times(self._area.slots())
        return int(weight[(start <= at) & (at < end)].sum())
