"""DISTINCT: a counted set of the values of each group, which passes only the first addition and the
last removal of a value on to the inner aggregate."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from millstream.logical.expressions import AggregateCall
from millstream.model.elements import row_key
from millstream.physical.accumulators.accumulator import Accumulator, Answer
from millstream.physical.accumulators.counts import CountRows
from millstream.physical.accumulators.rows import CODES, RowPool
from millstream.physical.accumulators.sorted_groups import SortedGroups
from millstream.physical.accumulators.words import Layout, missing
from millstream.physical.batch import Ints, Mask, State


class DistinctAccumulator(Accumulator):
    """An aggregate over the distinct values; it takes the words of the layout, or none."""

    def __init__(self, inner: Accumulator, layout: Layout) -> None:
        self._inner = inner
        self._layout = layout
        self._set = SortedGroups()
        self.width = layout.width

    def encode(
        self,
        arguments: Sequence[pa.Array],
        order: Sequence[pa.Array],
        included: Mask | None,
        length: int,
    ) -> list[Ints]:
        return self._layout.encode(arguments[0], missing(arguments[:1], included))

    def step(self, group: Ints, words: Sequence[Ints], delta: Ints, bounds: Ints) -> Answer:
        crossings = self._set.crossings(group, words[0], *self._layout.flags(words), delta)
        return self._inner.step(group, words, crossings, bounds)

    def grow(self, capacity: int) -> None:
        self._set.grow(capacity)
        self._inner.grow(capacity)

    def remap(self, old: Ints, capacity: int) -> None:
        self._set.remap(old, capacity)
        self._inner.remap(old, capacity)

    def forget(self, groups: Ints) -> None:
        self._set.forget(groups)
        self._inner.forget(groups)

    @property
    def nbytes(self) -> int:
        return self._set.nbytes + self._inner.nbytes

    def save(self) -> State:
        return {"set": self._set.save(), "inner": self._inner.save()}

    def restore(self, state: State) -> None:
        self._set.restore(state["set"])
        self._inner.restore(state["inner"])


class DistinctRowCount(DistinctAccumulator):
    """COUNT(DISTINCT x, …) of values that are not words: a set of row codes."""

    def __init__(self, call: AggregateCall) -> None:
        super().__init__(CountRows(), CODES)
        self._pool = RowPool([argument.type for argument in call.arguments], row_key)

    def encode(
        self,
        arguments: Sequence[pa.Array],
        order: Sequence[pa.Array],
        included: Mask | None,
        length: int,
    ) -> list[Ints]:
        return [self._pool.encode(arguments, missing(arguments, included), length)]

    @property
    def crowded(self) -> bool:
        return self._pool.crowded

    def retain(self, words: Sequence[Sequence[Ints]]) -> None:
        self._pool.retain([*(piece[0] for piece in words), self._set.values()])

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._pool.nbytes

    def save(self) -> State:
        return {**super().save(), "pool": self._pool.save()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self._pool.restore(state["pool"])
