"""Allocates and frees numbered slots."""

from __future__ import annotations

import numpy as np

from millstream.physical.batch import Ints


class Slots:
    """The free slots below a capacity, reused first in, first out: slots with similar lifetimes
    stay adjacent.

    >>> slots = Slots(4)
    >>> slots.take(3).tolist()
    [0, 1, 2]
    >>> slots.release(np.array([1, 0]))
    >>> slots.take(2).tolist(), slots.used
    ([3, 1], 3)
    """

    def __init__(self, capacity: int = 64) -> None:
        self.capacity = capacity
        self._free = np.arange(capacity, dtype=np.int32)  # circular, from `head` on
        self._head = 0
        self._count = capacity

    @property
    def nbytes(self) -> int:
        return self._free.nbytes

    @property
    def used(self) -> int:
        return self.capacity - self._count

    def lacking(self, count: int) -> int:
        """How much the capacity must grow to take `count` slots."""
        return max(0, count - self._count)

    def grow(self, capacity: int) -> None:
        self._set_free(
            np.append(self._first(self._count), np.arange(self.capacity, capacity)), capacity
        )

    def _set_free(self, free: Ints, capacity: int) -> None:
        self.capacity = capacity
        self._free = np.zeros(capacity, np.int32)
        self._free[: len(free)] = free
        self._head, self._count = 0, len(free)

    def _parts(self, first: int, count: int) -> tuple[slice, slice]:
        """The positions of `count` entries from `first` on: at the end, and wrapped at the
        front."""
        begin = (self._head + first) % self.capacity
        over = max(0, begin + count - self.capacity)
        return slice(begin, begin + count - over), slice(0, over)

    def _first(self, count: int) -> Ints:
        end, front = self._parts(0, count)
        return np.concatenate([self._free[end], self._free[front]], dtype=np.int64)

    def take(self, count: int) -> Ints:
        taken = self._first(count)
        self._head = (self._head + count) % self.capacity
        self._count -= count
        return taken

    def release(self, slots: Ints) -> None:
        end, front = self._parts(self._count, len(slots))
        self._free[end] = slots[: end.stop - end.start]
        self._free[front] = slots[len(slots) - front.stop :]
        self._count += len(slots)

    def in_use(self) -> Ints:
        used = np.ones(self.capacity, np.bool_)
        used[self._first(self._count)] = False
        return np.flatnonzero(used)

    def occupy(self, slots: Ints) -> None:
        """Mark exactly these as in use."""
        self._set_free(np.setdiff1d(np.arange(self.capacity), slots), self.capacity)
