"""Rows picked by their numbers, of two arrays at once; NumPy looks at all numbers first."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def pick(numbers: Ints, values: Ints, others: Ints, picked: Ints, other_picked: Ints) -> None:
    for i in range(len(numbers)):
        picked[i] = values[numbers[i]]
    for i in range(len(numbers)):
        other_picked[i] = others[numbers[i]]
