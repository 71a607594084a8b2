"""The arrival numbers of the rows of a table, by row code.

Equal rows have the same code and one number per copy. Of equal rows the last added is removed
first, so that undoing an insert leaves the others unchanged.
"""

from __future__ import annotations

import numpy as np

from millstream.model.arrays import larger, with_room
from millstream.physical.batch import Ints
from millstream.physical.kernels.stacks import peek, pop, push
from millstream.physical.state.slots import Slots

_FEW = 1024


class RowNumbers:
    """
    >>> numbers = RowNumbers()
    >>> numbers.come(np.array([0, 1, 0])).tolist()
    [0, 1, 2]
    >>> numbers.go(np.array([0])).tolist(), numbers.come(np.array([1])).tolist()
    ([2], [3])
    >>> codes, given = numbers.all()
    >>> codes.tolist(), given.tolist()
    ([0, 1, 1], [0, 1, 3])
    """

    def __init__(self) -> None:
        self._next = 0
        self._clear(0, 0)

    def _clear(self, codes: int, rows: int) -> None:
        """Remove all rows, with room for some more than these."""
        self._slots = Slots(rows + _FEW)
        self._top = np.full(codes + _FEW, -1, np.int64)  # by code
        self._below, self._number, self._owner = np.full((3, rows + _FEW), -1, np.int64)  # by slot

    def come(self, codes: Ints) -> Ints:
        """Number added rows, in the given order."""
        numbers = np.arange(self._next, self._next + len(codes))
        self._next += len(codes)
        self._put(codes, numbers)
        return numbers

    def _put(self, codes: Ints, numbers: Ints) -> None:
        self._top = with_room(self._top, int(codes.max(initial=-1)) + 1, -1)
        lacking = self._slots.lacking(len(codes))
        if lacking:
            self._slots.grow(larger(self._slots.capacity, self._slots.capacity + lacking))
            self._below = with_room(self._below, self._slots.capacity, -1)
            self._number = with_room(self._number, self._slots.capacity, -1)
            self._owner = with_room(self._owner, self._slots.capacity, -1)
        slots = self._slots.take(len(codes))
        push(codes, numbers, slots, self._top, self._below, self._number, self._owner)

    def go(self, codes: Ints) -> Ints:
        """Remove present rows; returns their numbers."""
        slots = pop(codes, self._top, self._below, self._owner)
        self._slots.release(slots)
        return self._number[slots]

    def numbers(self, codes: Ints) -> Ints:
        """The numbers of present rows that would be removed."""
        distinct, group = np.unique(codes, return_inverse=True)
        return self._number[peek(group, self._top[distinct], self._below)]

    def all(self) -> tuple[Ints, Ints]:
        """The codes of all rows and their numbers, in order of arrival."""
        slots = np.flatnonzero(self._owner >= 0)
        slots = slots[np.argsort(self._number[slots], kind="stable")]
        return self._owner[slots], self._number[slots]

    def renumber(self, renumbered: Ints) -> None:
        """Replace the codes of rows; `renumbered` has the new code by the old one."""
        codes, numbers = self.all()
        codes = renumbered[codes]
        self._clear(int(codes.max(initial=-1)) + 1, len(codes))
        self._put(codes, numbers)
