"""MIN and MAX of types whose values are words: one value if no row ever leaves, a monotone queue if
rows leave in the order in which they came, otherwise sorted groups."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from millstream.logical.expressions import AggregateCall
from millstream.physical.accumulators.accumulator import Accumulator, Answer
from millstream.physical.accumulators.best import Best
from millstream.physical.accumulators.queues import Queues
from millstream.physical.accumulators.sorted_groups import SortedGroups
from millstream.physical.accumulators.words import Layout, from_words, may_be_absent, missing
from millstream.physical.batch import Ints, Mask, State


class Extreme(Accumulator):
    """MIN or MAX; words have the order of the values."""

    one_form = True

    def __init__(self, call: AggregateCall, *, fifo: bool, lasting: bool) -> None:
        self._greatest = call.function == "max"
        self._layout = Layout(call.type, may_be_absent(call))
        self._values: Best | Queues | SortedGroups
        self._values = Best() if lasting else Queues() if fifo else SortedGroups()
        self.width = self._layout.width

    def encode(
        self,
        arguments: Sequence[pa.Array],
        order: Sequence[pa.Array],
        included: Mask | None,
        length: int,
    ) -> list[Ints]:
        return self._layout.encode(arguments[0], missing(arguments, included))

    def step(self, group: Ints, words: Sequence[Ints], delta: Ints, bounds: Ints) -> Answer:
        flags, checked = self._layout.flags(words)
        if isinstance(self._values, SortedGroups):
            values, valid = self._values.extremes(
                self._greatest, group, words[0], flags, checked, delta, bounds
            )
        elif self._greatest:
            values, valid = self._values.maxima(group, words[0], flags, checked, delta, bounds)
        else:  # the complement of a word reverses the order
            values, valid = self._values.maxima(group, ~words[0], flags, checked, delta, bounds)
            values = ~values
        return Answer(from_words(values, self._layout.type, valid))

    def grow(self, capacity: int) -> None:
        self._values.grow(capacity)

    def remap(self, old: Ints, capacity: int) -> None:
        self._values.remap(old, capacity)

    def forget(self, groups: Ints) -> None:
        self._values.forget(groups)

    @property
    def nbytes(self) -> int:
        return self._values.nbytes

    def save(self) -> State:
        return self._values.save()

    def restore(self, state: State) -> None:
        self._values.restore(state)
