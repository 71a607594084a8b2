"""SUM of BIGINT, and SUM and AVG of INTERVAL and DECIMAL: exact, and rounded as defined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pyarrow as pa

from millstream.logical.expressions import AggregateCall
from millstream.logical.functions import EvaluationError
from millstream.logical.functions.casts import EXACT, fit_decimal
from millstream.model import types
from millstream.model.arrays import of_view
from millstream.model.types import BIGINT, INTERVAL, sql_name
from millstream.model.values import to_arrow
from millstream.physical.accumulators.accumulator import Accumulator, Answer, GroupTable
from millstream.physical.accumulators.integers import (
    exchange_integers,
    exchange_words,
    mean_half_up,
    sum_integers,
)
from millstream.physical.accumulators.words import (
    ABSENT,
    WORD_DIGITS,
    Layout,
    decimal_limbs,
    decimals,
    from_words,
    may_be_absent,
    missing,
)
from millstream.physical.batch import Ints, Mask, State


class ExactSum(Accumulator):
    """The sum or the average of values that are integer multiples of one unit.

    Values of more than a word are added in two parts, value = upper * 2**64 + lower.
    """

    def __init__(self, call: AggregateCall) -> None:
        self._average = call.function == "avg"
        self._argument, self._result = call.arguments[0].type, call.type
        self._layout = Layout(self._argument, may_be_absent(call))
        self._wide = types.is_decimal(self._argument) and self._argument.precision > WORD_DIGITS
        self._tables = [GroupTable(3) for _ in range(2 if self._wide else 1)]
        self.width = 2 if self._wide else self._layout.width

    def encode(
        self,
        arguments: Sequence[pa.Array],
        order: Sequence[pa.Array],
        included: Mask | None,
        length: int,
    ) -> list[Ints]:
        gone = missing(arguments, included)
        if not self._wide:
            return self._layout.encode(arguments[0], gone)
        low, high = decimal_limbs(arguments[0])
        high = high - (low >> 63)  # the lower part is signed
        if gone is not None:
            high[gone] = ABSENT
        return [low.copy(), high]

    def step(self, group: Ints, words: Sequence[Ints], delta: Ints, bounds: Ints) -> Answer:
        if self._wide:
            flags, checked = words[1], True
        else:
            flags, checked = self._layout.flags(words)
        parts = [
            sum_integers(group, word, flags, checked, delta, bounds, table.rows)
            for word, table in zip(words, self._tables, strict=False)
        ]
        if self._wide:
            return self._answer(parts[0][2], _WideSums(parts))
        return self._answer(parts[0][2], _Sums(*parts[0]))

    def exchange(self, came: Sequence[Ints], went: Sequence[Ints], length: int) -> Answer:
        if self._wide:
            return super().exchange(came, went, length)
        came_flag, checked = self._layout.flags(came)
        went_flag, _ = self._layout.flags(went)
        events = came[0], came_flag, went[0], went_flag, checked, self._tables[0].rows
        if self._result in (BIGINT, INTERVAL) and not self._average:
            totals, enough = exchange_words(*events)
            if enough:
                return Answer.after_the_first(of_view(totals, self._result))
        sums = exchange_integers(*events)
        return self._answer(sums[2], _Sums(*sums))

    def _answer(self, counts: Ints, sums: _Sums) -> Answer:
        if self._average:
            return self._mean(counts, sums)
        return self._sum(counts, sums)

    def _sum(self, counts: Ints, sums: _Sums) -> Answer:
        valid = counts > 0
        if types.is_decimal(self._result):
            fits = sums.within(10**self._result.precision - 1)
            sure = decimals(sums.low, sums.high, self._result, valid & fits)
        else:
            fits = sums.high == sums.low >> 63
            sure = from_words(sums.low, self._result, valid & fits)
        return _completed(sure, valid & ~fits, lambda j: self._exact_sum(sums.total(j)))

    def _exact_sum(self, total: int) -> object:
        if types.is_decimal(self._result):
            return fit_decimal(Decimal(total).scaleb(-self._argument.scale, EXACT), self._result)
        least, most = types.integral_range(BIGINT)
        if not least <= total <= most:
            raise EvaluationError(f"the sum {total} does not fit {sql_name(self._result)}")
        return total

    def _mean(self, counts: Ints, sums: _Sums) -> Answer:
        valid = counts > 0
        scale = 1
        if types.is_decimal(self._result):
            scale = 10 ** (self._result.scale - self._argument.scale)
        means, done = mean_half_up(sums.low, sums.high, counts, scale, 2**62 // scale)
        done &= sums.whole()
        if types.is_decimal(self._result):
            done &= np.abs(means) < 10 ** min(self._result.precision, WORD_DIGITS)
            sure = decimals(means, means >> 63, self._result, done)
        else:
            sure = from_words(means, self._result, done)
        return _completed(
            sure, valid & ~done, lambda j: self._exact_mean(sums.total(j), int(counts[j]))
        )

    def _exact_mean(self, total: int, count: int) -> object:
        if self._result == INTERVAL:
            return int((Decimal(total) / count).to_integral_value(ROUND_HALF_UP))
        value = Decimal(total).scaleb(-self._argument.scale, EXACT)
        return fit_decimal(EXACT.divide(value, Decimal(count)), self._result)

    def grow(self, capacity: int) -> None:
        for table in self._tables:
            table.grow(capacity)

    def remap(self, old: Ints, capacity: int) -> None:
        for table in self._tables:
            table.remap(old, capacity)

    def forget(self, groups: Ints) -> None:
        for table in self._tables:
            table.rows[groups] = 0

    @property
    def nbytes(self) -> int:
        return sum(table.rows.nbytes for table in self._tables)

    def save(self) -> State:
        return {"sums": [table.rows.copy() for table in self._tables]}

    def restore(self, state: State) -> None:
        for table, rows in zip(self._tables, state["sums"], strict=True):
            table.rows = rows.copy()


class _Sums:
    """Sums of two words each."""

    def __init__(self, low: Ints, high: Ints, counts: Ints) -> None:
        self.low, self.high = low, high

    def whole(self) -> Mask:
        """Where `low` and `high` are the complete sum."""
        return np.ones(len(self.low), np.bool_)

    def within(self, most: int) -> Mask:
        """Where a sum is certainly between -most and most."""
        limit = most >> 64
        return (-limit <= self.high) & (self.high < limit) if limit else self._small(most)

    def _small(self, most: int) -> Mask:
        bound = min(most, 2**63 - 1)
        fits: Mask = (self.high == self.low >> 63) & (-bound <= self.low) & (self.low <= bound)
        return fits

    def total(self, segment: int) -> int:
        return (int(self.high[segment]) << 64) + (int(self.low[segment]) % 2**64)


class _WideSums(_Sums):
    """Sums of a lower part and an upper part, each of two words; `low` and `high` hold them
    where they fit two words."""

    def __init__(self, parts: list[tuple[Ints, Ints, Ints]]) -> None:
        self._lower, self._upper = _Sums(*parts[0]), _Sums(*parts[1])
        self.low = self._lower.low
        self.high = self._lower.high + self._upper.low

    def whole(self) -> Mask:
        quarter = 2**61
        whole: Mask = self._upper.high == self._upper.low >> 63
        for part in (self._lower.high, self._upper.low):
            whole &= (-quarter <= part) & (part < quarter)
        return whole

    def within(self, most: int) -> Mask:
        return self.whole() & super().within(most)

    def total(self, segment: int) -> int:
        return (self._upper.total(segment) << 64) + self._lower.total(segment)


def _completed(sure: pa.Array, unsure: Mask, value: Callable[[int], object]) -> Answer:
    """Fills in the uncertain values one by one."""
    if not unsure.any():
        return Answer(sure)
    places = np.flatnonzero(unsure)
    values, failed, messages = [], np.zeros(len(unsure), np.bool_), {}
    for segment in places.tolist():
        try:
            values.append(value(segment))
        except EvaluationError as error:
            values.append(None)
            failed[segment] = True
            messages[segment] = str(error)
    source = np.arange(len(sure))
    source[places] = len(sure) + np.arange(len(places))
    both = pa.concat_arrays([sure, to_arrow(values, sure.type)])
    return Answer(both.take(pa.array(source)), failed if messages else None, messages)
