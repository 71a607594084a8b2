"""The maximum of rows that are never removed: one value per group.

>>> best = Best()
>>> best.grow(1)
>>> group, value, delta = np.zeros(3, np.int64), np.array([7, 9, 8]), np.ones(3, np.int64)
>>> best.maxima(group, value, value, False, delta, np.arange(4))[0].tolist()
[7, 9, 9]
"""

from __future__ import annotations

import numpy as np
from numba import njit

from millstream.physical.accumulators.accumulator import GroupTable
from millstream.physical.accumulators.words import ABSENT
from millstream.physical.batch import Ints, Mask, State

_PRESENT, _VALUE = range(2)  # columns of a group


class Best(GroupTable):
    """Memory: 16 bytes per group."""

    def __init__(self) -> None:
        super().__init__(2)

    def maxima(
        self, group: Ints, value: Ints, flag: Ints, checked: bool, delta: Ints, bounds: Ints
    ) -> tuple[Ints, Mask]:
        """The maximum after each segment, and whether there is one. If `checked`, rows whose flag
        is ABSENT are skipped."""
        result = np.zeros(len(bounds) - 1, np.int64)
        valid = np.zeros(len(bounds) - 1, np.bool_)
        _maxima(group, value, flag, checked, bounds, self.rows, result, valid)
        return result, valid

    def forget(self, groups: Ints) -> None:
        self.rows[groups] = 0

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes

    def save(self) -> State:
        return {"rows": self.rows.copy()}

    def restore(self, state: State) -> None:
        self.rows = state["rows"].copy()


@njit(cache=True)
def _maxima(
    group: Ints,
    value: Ints,
    flag: Ints,
    checked: bool,
    bounds: Ints,
    rows: Ints,
    result: Ints,
    valid: Mask,
) -> None:
    for j in range(len(result)):
        g = group[bounds[j]]
        for i in range(bounds[j], bounds[j + 1]):
            better = rows[g, _PRESENT] == 0 or value[i] > rows[g, _VALUE]
            if better and not (checked and flag[i] == ABSENT):
                rows[g, _PRESENT], rows[g, _VALUE] = 1, value[i]
        result[j] = rows[g, _VALUE]
        valid[j] = rows[g, _PRESENT] != 0
