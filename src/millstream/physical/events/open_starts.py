"""The starts of open intervals: the smallest one holds back the frontier.

>>> starts = OpenStarts()
>>> starts.add(np.array([7, 5, 5]), np.array([1, 1, 2]))
>>> starts.remove(np.array([5, 5]), np.array([1, 2]))
>>> starts.least
7
"""

from __future__ import annotations

import numpy as np
from numba import njit

from millstream.model.time import INFINITY
from millstream.physical.batch import Ints
from millstream.physical.kernels.scans import least


class OpenStarts:
    """A multiset of instants. New instants are usually later than the existing ones: then the cost
    of a batch is proportional to what it opens and closes, with a binary search per closing."""

    def __init__(self) -> None:
        self._starts, self._counts = np.zeros((2, 64), np.int64)
        self._head = self._tail = 0

    @property
    def nbytes(self) -> int:
        return 2 * self._starts.nbytes

    def add(self, starts: Ints, counts: Ints) -> None:
        if self._tail > self._head and least(starts) <= self._starts[self._tail - 1]:
            live = slice(self._head, self._tail)
            starts = np.concatenate([self._starts[live], starts])
            counts = np.concatenate([self._counts[live], counts])
            self._head = self._tail
        instants, places = np.unique(starts, return_inverse=True)
        if self._tail + len(instants) > len(self._starts):
            self._make_room(len(instants))
        place = slice(self._tail, self._tail + len(instants))
        self._starts[place] = instants
        self._counts[place] = 0
        np.add.at(self._counts[place], places, counts)
        self._tail += len(instants)

    def _make_room(self, more: int) -> None:
        live = slice(self._head, self._tail)
        old = self._starts[live], self._counts[live]
        length = self._tail - self._head
        self._starts, self._counts = np.zeros((2, 2 * (length + more)), np.int64)
        self._starts[:length], self._counts[:length] = old
        self._head, self._tail = 0, length

    def remove(self, starts: Ints, counts: Ints) -> None:
        places = self._head + np.searchsorted(self._starts[self._head : self._tail], starts)
        np.subtract.at(self._counts, places, counts)
        self._head = _first_open(self._counts, self._head, self._tail)

    def change(self, opened: Ints, closed: Ints) -> None:
        """Change each count by one."""
        self.add(opened, np.ones(len(opened), np.int64))
        self.remove(closed, np.ones(len(closed), np.int64))

    @property
    def least(self) -> int:
        """INFINITY if nothing is open."""
        return int(self._starts[self._head]) if self._head < self._tail else INFINITY


@njit(cache=True)
def _first_open(counts: Ints, first: int, stop: int) -> int:
    while first < stop and counts[first] == 0:
        first += 1
    return first
