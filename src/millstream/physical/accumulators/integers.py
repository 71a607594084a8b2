"""Kernels for exact sums of int64 values: 128 bits and a count per group."""

from __future__ import annotations

import numpy as np
from numba import njit

from millstream.physical.accumulators.words import ABSENT
from millstream.physical.batch import Ints, Mask

_HALF = 0xFFFFFFFF
_TOP = -(2**63)  # turns unsigned order into signed order


@njit(cache=True)
def multiply(a: int, b: int) -> tuple[int, int]:
    """The lower and the upper word of the product of two words."""
    a_low, a_high = a & _HALF, a >> 32
    b_low, b_high = b & _HALF, b >> 32
    carry = int((np.uint64(a_low) * np.uint64(b_low)) >> np.uint64(32))
    middle = a_high * b_low + carry
    other = a_low * b_high + (middle & _HALF)
    return a * b, a_high * b_high + (middle >> 32) + (other >> 32)


@njit(cache=True, inline="always")
def add_wide(low: int, high: int, more_low: int, more_high: int) -> tuple[int, int]:
    """The sum of two numbers of two words."""
    total = low + more_low
    carry = (total ^ _TOP) < (low ^ _TOP)
    return total, high + more_high + carry


@njit(cache=True, inline="always")
def _signed(value: int, sign: int) -> tuple[int, int]:
    """The value in two words, negated if the sign is -1, unchanged if it is 0; branchless, since
    additions and removals alternate."""
    return (value ^ sign) - sign, ((value >> 63) ^ sign) - sign * (value == 0)


@njit(cache=True)
def sum_integers(
    group: Ints, value: Ints, flag: Ints, checked: bool, delta: Ints, bounds: Ints, sums: Ints
) -> tuple[Ints, Ints, Ints]:
    """The lower and upper word of the sum, and the count, after each segment. `sums` has them as
    columns for each group. If `checked`, rows whose flag is ABSENT are skipped."""
    segments = len(bounds) - 1
    lows = np.empty(segments, np.int64)
    highs = np.empty(segments, np.int64)
    counts = np.empty(segments, np.int64)
    for j in range(segments):
        g = group[bounds[j]]
        low, high, count = sums[g, 0], sums[g, 1], sums[g, 2]
        for i in range(bounds[j], bounds[j + 1]):
            if checked and flag[i] == ABSENT:
                continue
            count += delta[i]
            if abs(delta[i]) == 1:
                more_low, more_high = _signed(value[i], delta[i] >> 63)
            else:
                more_low, more_high = multiply(value[i], delta[i])
            low, high = add_wide(low, high, more_low, more_high)
        sums[g, 0], sums[g, 1], sums[g, 2] = low, high, count
        lows[j], highs[j], counts[j] = low, high, count
    return lows, highs, counts


@njit(cache=True)
def exchange_integers(
    came: Ints, came_flag: Ints, went: Ints, went_flag: Ints, checked: bool, sums: Ints
) -> tuple[Ints, Ints, Ints]:
    """As `sum_integers` for group 0: each segment adds one row and removes one."""
    lows = np.empty(len(came), np.int64)
    highs = np.empty(len(came), np.int64)
    counts = np.empty(len(came), np.int64)
    low, high, count = sums[0, 0], sums[0, 1], sums[0, 2]
    for j in range(len(came)):
        if not (checked and came_flag[j] == ABSENT):
            low, high = add_wide(low, high, came[j], came[j] >> 63)
            count += 1
        if not (checked and went_flag[j] == ABSENT):
            more_low, more_high = _signed(went[j], -1)
            low, high = add_wide(low, high, more_low, more_high)
            count -= 1
        lows[j], highs[j], counts[j] = low, high, count
    sums[0, 0], sums[0, 1], sums[0, 2] = low, high, count
    return lows, highs, counts


@njit(cache=True)
def exchange_words(
    came: Ints, came_flag: Ints, went: Ints, went_flag: Ints, checked: bool, sums: Ints
) -> tuple[Ints, bool]:
    """The sum before the first exchange and after each, if all rows count and one word always
    suffices; otherwise False, and nothing has changed."""
    totals = np.empty(len(came) + 1, np.int64)
    low = sums[0, 0]
    totals[0] = low
    wrong = sums[0, 2] <= 0 or sums[0, 1] != low >> 63
    if checked:
        absent = 0
        for j in range(len(came)):
            absent += (came_flag[j] == ABSENT) | (went_flag[j] == ABSENT)
        wrong |= absent > 0
    overflow = 0  # negative after an overflow
    for j in range(len(came)):
        more = low + came[j]
        less = more - went[j]
        overflow |= ((low ^ more) & (came[j] ^ more)) | ((more ^ went[j]) & (more ^ less))
        low = less
        totals[j + 1] = low
    wrong |= overflow < 0
    if not wrong:
        sums[0, 0], sums[0, 1] = low, low >> 63
    return totals, not wrong


@njit(cache=True)
def mean_half_up(lows: Ints, highs: Ints, counts: Ints, scale: int, most: int) -> tuple[Ints, Mask]:
    """sum * scale / count, halves away from zero, and whether one word suffices: the sum must not
    exceed `most`, which times scale is at most 2**62."""
    means = np.zeros(len(lows), np.int64)
    done = np.zeros(len(lows), np.bool_)
    for j in range(len(lows)):
        low, count = lows[j], counts[j]
        if count > 0 and count < 2**61 and highs[j] == low >> 63 and -most <= low <= most:
            product = abs(low * scale)
            mean = product // count
            if product - mean * count >= count - (product - mean * count):
                mean += 1
            means[j] = mean if low >= 0 else -mean
            done[j] = True
    return means, done
