"""VAR and STDDEV of DOUBLE: from the exact sums of the values and of their squares.

With n values, s their sum and q the sum of their squares, the variance is

    (n * q - s * s) / (n * (n - spare)),   spare = 1 for a sample, 0 for a population

The numerator is computed exactly, in integers, so cancellation loses nothing; the quotient is
rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from millstream.model.arrays import of_view
from millstream.model.types import DOUBLE
from millstream.physical.accumulators import exact
from millstream.physical.accumulators.accumulator import Answer
from millstream.physical.accumulators.doubles import (
    COUNT,
    NAN_BITS,
    NANS,
    NEGATIVE,
    POSITIVE,
    DoubleState,
    count_special,
)
from millstream.physical.accumulators.integers import multiply
from millstream.physical.accumulators.words import ABSENT
from millstream.physical.batch import Ints, Mask

_MASK = 0xFFFFFFFF
_LOW = np.uint64(_MASK)
_HALF = np.uint64(32)
_OFTEN = 0xFFF  # rows are settled at least every this many events, before limbs overflow


class Moment(DoubleState):
    """VAR_SAMP, VAR_POP, STDDEV_SAMP or STDDEV_POP."""

    def __init__(self, function: str) -> None:
        super().__init__([1, 2])
        self._spare = 1 if function.endswith("_samp") else 0
        self._root = function.startswith("stddev")

    def step(self, group: Ints, words: Sequence[Ints], delta: Ints, bounds: Ints) -> Answer:
        self._make_room(words[0], exact.is_light(delta))
        sums, squares = self._digits
        bits, valid = _variances(
            group,
            words[0],
            delta,
            bounds,
            self._counters.rows,
            sums.limbs,
            squares.limbs,
            sums.low,
            self._spare,
        )
        if self._root:
            bits = np.sqrt(bits.view(np.float64)).view(np.int64)
        return Answer(of_view(bits, DOUBLE, valid))


@njit(cache=True)
def _variances(
    group: Ints,
    words: Ints,
    delta: Ints,
    bounds: Ints,
    counters: Ints,
    sums: Ints,
    squares: Ints,
    low: int,
    spare: int,
) -> tuple[Ints, Mask]:
    """The bits of the variance after each segment, and whether there is one."""
    segments = len(bounds) - 1
    bits = np.zeros(segments, np.int64)
    valid = np.zeros(segments, np.bool_)
    width = sums.shape[1]
    sum_digits = np.zeros(width + 1, np.int64)
    square_digits = np.zeros(2 * width + 1, np.int64)
    numerator = np.zeros(2 * width + 5, np.int64)
    for j in range(segments):
        g = group[bounds[j]]
        for i in range(bounds[j], bounds[j + 1]):
            if words[i] == ABSENT:
                continue
            counters[g, COUNT] += delta[i]
            if not exact.is_finite(words[i]):
                count_special(counters, g, words[i], delta[i])
            elif words[i] != 0:
                _add(sums, squares, g, low, words[i], delta[i])
                if i & _OFTEN == 0:
                    exact.settle(sums, g)
                    exact.settle(squares, g)
        exact.settle(sums, g)
        exact.settle(squares, g)
        count = counters[g, COUNT]
        valid[j] = count > spare
        if counters[g, NANS] | counters[g, POSITIVE] | counters[g, NEGATIVE]:
            bits[j] = NAN_BITS
        elif valid[j]:
            exact.magnitude(sums, g, sum_digits)
            exact.magnitude(squares, g, square_digits)
            if _numerator(sum_digits, square_digits, count, numerator):
                bits[j] = _quotient(numerator, 64 * low - 1074, count, count - spare)
    return bits, valid


@njit(cache=True)
def _add(sums: Ints, squares: Ints, g: int, low: int, word: int, delta: int) -> None:
    """Add a value that is not 0, and its square, delta times."""
    mantissa, place = exact.parts(word)
    if -exact.LIGHT <= delta <= exact.LIGHT:
        exact.add_double(sums, g, low, word, delta)
        _add_square(squares, g, low, mantissa, place, delta)
        return
    exact.add_often(sums, g, low, word, delta)
    sign, rest = -1 if delta < 0 else 1, abs(delta)
    while rest:
        _add_square(squares, g, low, mantissa, place, sign * (rest & 0x3FF))
        rest >>= 10
        place += 5  # for the value: 10 for the square


@njit(cache=True)
def _add_square(squares: Ints, g: int, low: int, mantissa: int, place: int, delta: int) -> None:
    """Add (mantissa * 2**place)**2 * delta, where delta is light."""
    k = 2 * ((place >> 5) - low)
    shift = place & 31
    first = (mantissa << shift) & _MASK
    second = (mantissa >> (32 - shift)) & _MASK
    third = (mantissa >> (63 - shift)) >> 1
    _add_product(squares, g, k, first, first, delta)
    _add_product(squares, g, k + 1, first, second, 2 * delta)
    _add_product(squares, g, k + 2, first, third, 2 * delta)
    _add_product(squares, g, k + 2, second, second, delta)
    _add_product(squares, g, k + 3, second, third, 2 * delta)
    _add_product(squares, g, k + 4, third, third, delta)


@njit(cache=True, inline="always")
def _add_product(squares: Ints, g: int, k: int, a: int, b: int, delta: int) -> None:
    """Add a * b * delta, for digits a and b, from limb k on."""
    product = np.uint64(a) * np.uint64(b)
    squares[g, k] += np.int64(product & _LOW) * delta
    squares[g, k + 1] += np.int64(product >> _HALF) * delta


@njit(cache=True)
def _numerator(sums: Ints, squares: Ints, count: int, result: Ints) -> bool:
    """The digits of count * squares - sums**2, and whether any of them is not zero."""
    result[:] = 0
    for k in range(len(squares)):
        if squares[k]:
            _subtract_product(result, k, squares[k], count & _MASK, -1)
            _subtract_product(result, k + 1, squares[k], count >> 32, -1)
    for a in range(len(sums)):
        if sums[a]:
            _subtract_product(result, 2 * a, sums[a], sums[a], 1)
            for b in range(a):
                _subtract_product(result, a + b, sums[a], sums[b], 2)
    carry, seen = 0, 0
    for k in range(len(result)):
        digit = result[k] + carry
        result[k] = digit & _MASK
        carry = digit >> 32
        seen |= result[k]
    return seen != 0


@njit(cache=True, inline="always")
def _subtract_product(result: Ints, k: int, a: int, b: int, times: int) -> None:
    product = np.uint64(a) * np.uint64(b)
    result[k] -= np.int64(product & _LOW) * times
    result[k + 1] -= np.int64(product >> _HALF) * times


@njit(cache=True)
def _quotient(numerator: Ints, unit: int, count: int, divisor: int) -> int:
    """The bits of numerator / (count * divisor); only 64 bits of the product count, which is all of
    it below 2**32 rows."""
    low, high = multiply(count, divisor)
    bits, scale = np.uint64(low), 0
    if high:
        scale = exact.bit_length(high)
        bits = (np.uint64(high) << np.uint64(64 - scale)) | (bits >> np.uint64(scale))
    return exact.rounded_quotient(numerator, len(numerator), unit, bits, scale)
