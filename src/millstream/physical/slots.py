"""Numbers of places: given out, and taken back."""

from __future__ import annotations

import numpy as np

from millstream.physical.arrays import larger
from millstream.physical.batch import Ints


class Slots:
    """The places below a capacity that are not in use."""

    def __init__(self, capacity: int = 64) -> None:
        self.capacity = capacity
        self._free = np.arange(capacity)
        self._count = capacity

    @property
    def nbytes(self) -> int:
        return self._free.nbytes

    @property
    def used(self) -> int:
        return self.capacity - self._count

    def lacking(self, count: int) -> int:
        """How much larger the capacity must be to give out so many."""
        return max(0, count - self._count)

    def grow(self, capacity: int) -> None:
        new = np.arange(self.capacity, capacity)
        self.capacity = capacity
        self.release(new)

    def take(self, count: int) -> Ints:
        self._count -= count
        return self._free[self._count : self._count + count].copy()

    def release(self, slots: Ints) -> None:
        stop = self._count + len(slots)
        if len(self._free) < stop:
            more = larger(len(self._free), stop) - len(self._free)
            self._free = np.append(self._free, np.zeros(more, np.int64))
        self._free[self._count : stop] = slots
        self._count = stop

    def in_use(self) -> Ints:
        used = np.ones(self.capacity, np.bool_)
        used[self._free[: self._count]] = False
        return np.flatnonzero(used)

    def occupy(self, slots: Ints) -> None:
        """These are in use and no others."""
        self._free = np.setdiff1d(np.arange(self.capacity), slots)
        self._count = len(self._free)
