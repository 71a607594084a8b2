"""SUM and AVG of DOUBLE: exact sums, rounded once, whatever came and went before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numba import njit

from millstream.model.arrays import of_view
from millstream.model.types import DOUBLE
from millstream.physical.accumulators import exact
from millstream.physical.accumulators.accumulator import Accumulator, Answer, GroupTable, grown
from millstream.physical.accumulators.words import ABSENT, Layout, missing
from millstream.physical.batch import Ints, Mask, State

COUNT, NANS, POSITIVE, NEGATIVE = range(4)  # columns: values, NaNs, infinities of either sign
NAN_BITS = 0x7FF8000000000000
INFINITY_BITS = 0x7FF0000000000000
NEGATIVE_BIT = -(2**63)
_ONE = 1022  # the position of 1.0, which always has room


class Digits:
    """The exact sums of all groups, as wide as the exponents seen so far need."""

    def __init__(self, order: int) -> None:
        self.order = order  # 1 for sums of values, 2 for sums of their squares
        self.low = 0  # the number of the lowest digit
        self.limbs: Ints = np.zeros((0, 0), np.int64)  # a row per group; no columns at first

    def widen(self, low: int, top: int) -> None:
        """Make room for the digits from `low` up to, but not including, `top`."""
        width = self.limbs.shape[1]
        if width:
            low, top = min(low, self.low), max(top, self.low + width)
        if (low, top) != (self.low, self.low + width):
            limbs = np.zeros((len(self.limbs), top - low), np.int64)
            limbs[:, self.low - low : self.low - low + width] = self.limbs
            self.low, self.limbs = low, limbs

    def resize(self, old: Ints, capacity: int) -> None:
        limbs = np.zeros((capacity, self.limbs.shape[1]), np.int64)
        limbs[: len(old)] = self.limbs[old]
        self.limbs = limbs


class DoubleState(Accumulator):
    """The state of sums and moments of doubles: one word per row, counters, and rows of digits."""

    width = 1

    def __init__(self, orders: Sequence[int]) -> None:
        self._counters = GroupTable(4)
        self._digits = [Digits(order) for order in orders]
        self._layout = Layout(DOUBLE, optional=True)

    def encode(
        self,
        arguments: Sequence[pa.Array],
        order: Sequence[pa.Array],
        included: Mask | None,
        length: int,
    ) -> list[Ints]:
        return self._layout.encode(arguments[0], missing(arguments, included))

    def _make_room(self, words: Ints, light: bool) -> None:
        """Make room for all digits that the events and their sums need."""
        lowest, highest = exact.span(words)
        if highest < 0:
            if self._digits[0].limbs.shape[1]:
                return
            lowest, highest = _ONE, _ONE
        low = lowest // exact.DIGIT
        top = highest // exact.DIGIT + (3 if light else 5)
        for digits in self._digits:
            digits.widen(digits.order * low, digits.order * top)

    def grow(self, capacity: int) -> None:
        room = len(self._counters.rows)
        if capacity > room:
            self.remap(np.arange(room), grown(room, capacity))

    def remap(self, old: Ints, capacity: int) -> None:
        self._counters.remap(old, capacity)
        for digits in self._digits:
            digits.resize(old, capacity)

    def forget(self, groups: Ints) -> None:
        self._counters.rows[groups] = 0
        for digits in self._digits:
            digits.limbs[groups] = 0

    @property
    def nbytes(self) -> int:
        return self._counters.rows.nbytes + sum(d.limbs.nbytes for d in self._digits)

    def save(self) -> State:
        digits = [(digits.low, digits.limbs.copy()) for digits in self._digits]
        return {"counters": self._counters.rows.copy(), "digits": digits}

    def restore(self, state: State) -> None:
        self._counters.rows = state["counters"].copy()
        for digits, (low, limbs) in zip(self._digits, state["digits"], strict=True):
            digits.low, digits.limbs = low, limbs.copy()


class DoubleSum(DoubleState):
    """SUM or AVG."""

    def __init__(self, average: bool) -> None:
        super().__init__([1])
        self._average = average
        self.one_form = not average

    def step(self, group: Ints, words: Sequence[Ints], delta: Ints, bounds: Ints) -> Answer:
        self._make_room(words[0], exact.is_light(delta))
        (digits,) = self._digits
        bits, valid = _sum_doubles(
            group,
            words[0],
            delta,
            bounds,
            self._counters.rows,
            digits.limbs,
            digits.low,
            self._average,
        )
        return Answer(of_view(bits, DOUBLE, valid))

    def exchange(self, came: Sequence[Ints], went: Sequence[Ints], length: int) -> Answer:
        self._make_room(came[0], light=True)  # removed values had room already
        (digits,) = self._digits
        bits, valid = _exchange_doubles(
            came[0], went[0], self._counters.rows, digits.limbs, digits.low, self._average
        )
        return Answer.after_the_first(of_view(bits, DOUBLE, valid))


@njit(cache=True)
def count_special(counters: Ints, g: int, word: int, delta: int) -> None:
    """Count a value that is not finite."""
    if word == NAN_BITS:
        counters[g, NANS] += delta
    elif word > 0:
        counters[g, POSITIVE] += delta
    else:
        counters[g, NEGATIVE] += delta


@njit(cache=True)
def _sum_doubles(
    group: Ints,
    words: Ints,
    delta: Ints,
    bounds: Ints,
    counters: Ints,
    limbs: Ints,
    low: int,
    average: bool,
) -> tuple[Ints, Mask]:
    """The bits of the sum, or the average, after each segment, and whether there is one."""
    segments = len(bounds) - 1
    bits = np.zeros(segments, np.int64)
    doubles = bits.view(np.float64)
    valid = np.zeros(segments, np.bool_)
    digits = np.zeros(limbs.shape[1] + 1, np.int64)
    for j in range(segments):
        g = group[bounds[j]]
        load = 0
        count = counters[g, COUNT]
        for i in range(bounds[j], bounds[j + 1]):
            word = words[i]
            if word == ABSENT:
                continue
            count += delta[i]
            if word == 0:
                continue
            if not exact.is_finite(word):
                count_special(counters, g, word, delta[i])
            elif -exact.SMALL < delta[i] < exact.SMALL and load < exact.LOAD:
                exact.add_double(limbs, g, low, word, delta[i])
                load += abs(delta[i])
            else:
                exact.add_often(limbs, g, low, word, delta[i])
                load = 0
        counters[g, COUNT] = count
        valid[j] = count > 0
        bits[j] = exact.settled_value(limbs, g, low)
        if bits[j] == -1:
            bits[j] = exact.negative_value(limbs, g, low, digits)
        if counters[g, NANS] | counters[g, POSITIVE] | counters[g, NEGATIVE]:
            bits[j] = special_sum(counters, g)
        elif average and count > 0:
            if bits[j] & INFINITY_BITS != INFINITY_BITS:
                doubles[j] /= count
            else:
                bits[j] = _large_mean(limbs, g, low, count, digits)
    return bits, valid


@njit(cache=True)
def _exchange_doubles(
    came: Ints, went: Ints, counters: Ints, limbs: Ints, low: int, average: bool
) -> tuple[Ints, Mask]:
    """As `_sum_doubles` for group 0: before the first segment and after each one, which adds one
    row and removes one. Inlined, since passing an array to a function counts its references, which
    would take most of the time."""
    bits = np.zeros(len(came) + 1, np.int64)
    doubles = bits.view(np.float64)
    valid = np.zeros(len(came) + 1, np.bool_)
    digits = np.zeros(limbs.shape[1] + 1, np.int64)
    count = counters[0, COUNT]
    for j in range(len(came) + 1):
        word = came[j - 1] if j else ABSENT
        if word != ABSENT:
            count += 1
            if not exact.is_finite(word):
                count_special(counters, 0, word, 1)
            elif word != 0:
                exact.add_double(limbs, 0, low, word, 1)
        word = went[j - 1] if j else ABSENT
        if word != ABSENT:
            count -= 1
            if not exact.is_finite(word):
                count_special(counters, 0, word, -1)
            elif word != 0:
                exact.add_double(limbs, 0, low, word, -1)
        valid[j] = count > 0
        bits[j] = exact.settled_value(limbs, 0, low)
        if bits[j] == -1:
            bits[j] = exact.negative_value(limbs, 0, low, digits)
        if counters[0, NANS] | counters[0, POSITIVE] | counters[0, NEGATIVE]:
            bits[j] = special_sum(counters, 0)
        elif average and count > 0:
            if bits[j] & INFINITY_BITS != INFINITY_BITS:
                doubles[j] /= count
            else:
                bits[j] = _large_mean(limbs, 0, low, count, digits)
    counters[0, COUNT] = count
    return bits, valid


@njit(cache=True)
def special_sum(counters: Ints, g: int) -> int:
    """The bits of a sum with values that are not finite."""
    positive, negative = counters[g, POSITIVE] != 0, counters[g, NEGATIVE] != 0
    if counters[g, NANS] != 0 or (positive and negative):
        return NAN_BITS
    return INFINITY_BITS if positive else INFINITY_BITS | NEGATIVE_BIT


@njit(cache=True)
def _large_mean(limbs: Ints, g: int, low: int, count: int, digits: Ints) -> int:
    """The bits of the mean if the sum exceeds the largest double."""
    negative = exact.magnitude(limbs, g, digits)
    bits = exact.rounded_quotient(digits, len(digits), 32 * low, np.uint64(count), 0)
    return bits | NEGATIVE_BIT if negative else bits
