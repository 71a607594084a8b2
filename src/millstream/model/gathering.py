"""Gathering of rows by index into existing memory. (NumPy would check all indices first.)"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]


@njit(cache=True)
def pick(numbers: Ints, values: NDArray[Any], picked: NDArray[Any]) -> None:
    for i in range(len(numbers)):
        if not 0 <= numbers[i] < len(values):
            raise IndexError("there is no such row")
        picked[i] = values[numbers[i]]


@njit(cache=True)
def pick_both(numbers: Ints, values: Ints, others: Ints, picked: Ints, other_picked: Ints) -> None:
    """Gather from two arrays of the same length."""
    for i in range(len(numbers)):
        if not 0 <= numbers[i] < len(values):
            raise IndexError("there is no such row")
        picked[i] = values[numbers[i]]
    for i in range(len(numbers)):
        other_picked[i] = others[numbers[i]]


@njit(cache=True)
def pick_bits(numbers: Ints, bits: Bytes, offset: int, length: int) -> tuple[Bytes, int]:
    """Gather bits of an Arrow bitmap, lowest first, from an offset; returns how many are set."""
    picked = np.zeros((len(numbers) + 7) // 8, np.uint8)
    count = 0
    for i in range(len(numbers)):
        if not 0 <= numbers[i] < length:
            raise IndexError("there is no such row")
        place = offset + numbers[i]
        bit = (bits[place >> 3] >> (place & 7)) & 1
        picked[i >> 3] |= bit << (i & 7)
        count += bit
    return picked, count
