"""Converts masks to row numbers."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True)
def positions(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The numbers of the rows where a mask holds. Branchless: the rows are unpredictable, and
    mispredictions make NumPy's `nonzero` take twice as long."""
    count = 0
    for i in range(len(mask)):
        count += mask[i]
    rows = np.empty(count + 1, np.int64)  # one extra, which the last rows may write to
    found = 0
    for i in range(len(mask)):
        rows[found] = i
        found += mask[i]
    return rows[:count]
