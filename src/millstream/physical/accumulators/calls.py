"""The aggregates of an operator: their inputs per row, and their values as rows come and go."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from millstream.logical.aggregates import lookup as aggregate_function
from millstream.logical.expressions import AggregateCall, Call, Expression
from millstream.model.values import to_arrow
from millstream.physical.accumulators import Accumulator, Answer, accumulator
from millstream.physical.batch import Columns, Ints, Mask, State
from millstream.physical.events.sweep import Exchanges, KeySteps, Sweep
from millstream.physical.expressions.vector import mask_of
from millstream.physical.operator import Context
from millstream.physical.state.last_rows import LastRows


class Calls:
    """The aggregates of an operator, each with the words of an event that belong to it."""

    def __init__(
        self, calls: Sequence[Expression], context: Context, fifo: bool, lasting: bool
    ) -> None:
        self._accumulators: list[Accumulator] = []
        self._filters: list[int | None] = []
        self._arguments: list[slice] = []
        self._order: list[slice] = []
        self._places: list[slice] = []
        self.expressions: list[Expression] = []
        self.words = 0
        for call in calls:
            assert isinstance(call, AggregateCall)
            made = accumulator(call, context.aggregates, fifo=fifo, lasting=lasting)
            self._take(call, made)

    def _take(self, call: AggregateCall, made: Accumulator) -> None:
        self._filters.append(None if call.filter is None else len(self.expressions))
        if call.filter is not None:
            self.expressions.append(call.filter)
        self._arguments.append(self._evaluated(call, call.arguments))
        self._order.append(self._evaluated(call, call.order))
        self._places.append(slice(self.words, self.words + made.width))
        self._accumulators.append(made)
        self.words += made.width

    def _evaluated(self, call: AggregateCall, expressions: Sequence[Expression]) -> slice:
        """The positions of their values. Rows that a filter excludes are not evaluated."""
        first = len(self.expressions)
        for expression in expressions:
            if call.filter is not None:
                expression = Call("case", (call.filter, expression), expression.type)
            self.expressions.append(expression)
        return slice(first, len(self.expressions))

    def encode(self, values: Columns, length: int) -> list[Ints]:
        """The words of each row."""
        words: list[Ints] = []
        for number, made in enumerate(self._accumulators):
            place = self._filters[number]
            included: Mask | None = None if place is None else mask_of(values[place])
            arguments = list(values[self._arguments[number]])
            order = list(values[self._order[number]])
            words += made.encode(arguments, order, included, length)
        return words

    def step(self, steps: KeySteps | Exchanges) -> list[Answer]:
        """The values after each step."""
        if isinstance(steps, Exchanges):
            return [
                made.exchange(steps.came[place], steps.went[place], len(steps))
                for made, place in zip(self._accumulators, self._places, strict=True)
            ]
        return [
            made.step(steps.code, steps.words[place], steps.delta, steps.bounds)
            for made, place in zip(self._accumulators, self._places, strict=True)
        ]

    def grow(self, groups: int) -> None:
        for made in self._accumulators:
            made.grow(groups)

    def remap(self, old: Ints, capacity: int, sweep: Sweep | LastRows) -> None:
        for made in self._accumulators:
            made.remap(old, capacity)
        self.tidy(sweep)

    def tidy(self, sweep: Sweep | LastRows) -> None:
        """Drop data that no event refers to any more."""
        for made, place in zip(self._accumulators, self._places, strict=True):
            if made.crowded:
                made.retain([list(piece[place]) for piece in sweep.pending_words()])

    @property
    def nbytes(self) -> int:
        return sum(made.nbytes for made in self._accumulators)

    def save(self) -> list[State]:
        return [made.save() for made in self._accumulators]

    def restore(self, states: list[State]) -> None:
        for made, state in zip(self._accumulators, states, strict=True):
            made.restore(state)


def empty_value(call: Expression) -> pa.Array:
    """The value of an aggregate over no rows."""
    assert isinstance(call, AggregateCall)
    function = aggregate_function(call.function)
    return to_arrow([None if function is None else function.empty], call.type)
