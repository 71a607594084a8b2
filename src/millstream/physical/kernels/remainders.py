"""Remainders of integers by a constant."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_SMALL = 1 << 50  # quotients of such numbers, as doubles compute them, are wrong by less than 1


@njit(cache=True)
def remainders(values: NDArray[Any], divisor: Any) -> NDArray[Any]:
    """By a positive divisor, with the sign of the dividend. Small numbers are multiplied by its
    inverse, which is several times faster than to divide them."""
    rest = np.empty_like(values)
    bits = 0
    for i in range(len(values)):
        bits |= values[i]
    if 0 <= bits < _SMALL:
        inverse = 1.0 / divisor
        for i in range(len(values)):
            left = values[i] - np.int64(values[i] * inverse) * divisor
            left += divisor if left < 0 else 0
            rest[i] = left - (divisor if left >= divisor else 0)
        return rest
    for i in range(len(values)):
        left = values[i] % divisor
        rest[i] = left - divisor if left != 0 and values[i] < 0 else left
    return rest
