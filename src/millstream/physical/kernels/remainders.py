"""Remainders of integers by a constant."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_SMALL = 1 << 50  # quotients of such numbers, as doubles compute them, are wrong by less than 1


@njit(cache=True)
def remainders(values: NDArray[Any], divisor: Any) -> NDArray[Any]:
    """By a positive divisor, with the sign of the dividend."""
    rest = np.empty_like(values)
    write_remainders(values, divisor, rest)
    return rest


@njit(cache=True)
def write_remainders(values: NDArray[Any], divisor: Any, rest: NDArray[Any]) -> None:
    """As if all numbers were small: those are multiplied by the divisor's inverse, which is several
    times faster than to divide them. The quotient may then be too small by 1, but not too large.
    If some number is not small, all are divided after all."""
    size = np.float64(divisor)
    inverse = 1.0 / size
    bits = 0
    for i in range(len(values)):
        bits |= values[i]
        value = np.float64(values[i])
        left = value - np.floor(value * inverse) * size
        rest[i] = np.int64(left - (size if left >= size else 0.0))
    if not 0 <= bits < _SMALL:
        for i in range(len(values)):
            divided = values[i] % divisor
            rest[i] = divided - divisor if divided != 0 and values[i] < 0 else divided
