"""COUNT, COUNT_IF, BOOL_AND and BOOL_OR: counters of the relevant rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numba import njit

from millstream.model.arrays import of_int64
from millstream.physical.accumulators.accumulator import Answer, TableAccumulator
from millstream.physical.accumulators.words import missing, to_words
from millstream.physical.batch import Ints, Mask


class CountRows(TableAccumulator):
    """COUNT(*), and COUNT of expressions that are never NULL."""

    width = 0

    def __init__(self) -> None:
        super().__init__(1)

    def encode(
        self,
        arguments: Sequence[pa.Array],
        order: Sequence[pa.Array],
        included: Mask | None,
        length: int,
    ) -> list[Ints]:
        return []

    def step(self, group: Ints, words: Sequence[Ints], delta: Ints, bounds: Ints) -> Answer:
        return Answer(of_int64(_count_all(group, delta, bounds, self._table.rows)))

    def exchange(self, came: Sequence[Ints], went: Sequence[Ints], length: int) -> Answer:
        return Answer(of_int64(np.full(length, self._table.rows[0, 0])))


class Count(TableAccumulator):
    """COUNT(x, …), or COUNT_IF(x): the rows without a NULL, or where x holds. The word is 1 for
    those, and 0 for others."""

    width = 1

    def __init__(self, conditional: bool) -> None:
        super().__init__(1)
        self._conditional = conditional

    def encode(
        self,
        arguments: Sequence[pa.Array],
        order: Sequence[pa.Array],
        included: Mask | None,
        length: int,
    ) -> list[Ints]:
        counted = to_words(arguments[0]) if self._conditional else np.ones(length, np.int64)
        gone = missing(arguments, included)
        if gone is not None:
            counted[gone] = 0
        return [counted]

    def step(self, group: Ints, words: Sequence[Ints], delta: Ints, bounds: Ints) -> Answer:
        return Answer(of_int64(_count(group, words[0], delta, bounds, self._table.rows)))


class Decision(TableAccumulator):
    """BOOL_AND, decided by a FALSE, or BOOL_OR, decided by a TRUE. The word is 2 for a decisive
    row, 1 for another one, and 0 for NULL."""

    width = 1

    def __init__(self, decisive: bool) -> None:
        super().__init__(2)
        self._decisive = decisive

    def encode(
        self,
        arguments: Sequence[pa.Array],
        order: Sequence[pa.Array],
        included: Mask | None,
        length: int,
    ) -> list[Ints]:
        words = np.where(to_words(arguments[0]) == self._decisive, 2, 1)
        gone = missing(arguments, included)
        if gone is not None:
            words[gone] = 0
        return [words]

    def step(self, group: Ints, words: Sequence[Ints], delta: Ints, bounds: Ints) -> Answer:
        present, decisive = _count_kinds(group, words[0], delta, bounds, self._table.rows)
        return Answer(pa.array((decisive > 0) == self._decisive, mask=present == 0))


@njit(cache=True)
def _count_all(group: Ints, delta: Ints, bounds: Ints, counts: Ints) -> Ints:
    after = np.empty(len(bounds) - 1, np.int64)
    for j in range(len(after)):
        g = group[bounds[j]]
        count = counts[g, 0]
        for i in range(bounds[j], bounds[j + 1]):
            count += delta[i]
        counts[g, 0] = count
        after[j] = count
    return after


@njit(cache=True)
def _count(group: Ints, counted: Ints, delta: Ints, bounds: Ints, counts: Ints) -> Ints:
    after = np.empty(len(bounds) - 1, np.int64)
    for j in range(len(after)):
        g = group[bounds[j]]
        count = counts[g, 0]
        for i in range(bounds[j], bounds[j + 1]):
            count += delta[i] * counted[i]
        counts[g, 0] = count
        after[j] = count
    return after


@njit(cache=True)
def _count_kinds(
    group: Ints, kind: Ints, delta: Ints, bounds: Ints, counts: Ints
) -> tuple[Ints, Ints]:
    present = np.empty(len(bounds) - 1, np.int64)
    decisive = np.empty(len(bounds) - 1, np.int64)
    for j in range(len(present)):
        g = group[bounds[j]]
        for i in range(bounds[j], bounds[j + 1]):
            if kind[i] > 0:
                counts[g, 0] += delta[i]
                counts[g, 1] += delta[i] * (kind[i] - 1)
        present[j], decisive[j] = counts[g, 0], counts[g, 1]
    return present, decisive
