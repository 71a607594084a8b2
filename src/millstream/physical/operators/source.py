"""Source: the rows of a registered stream as elements.

*Meaning*: out(t) = the rows whose time is t, or whose interval contains t.
*State*: none.
*Pattern*: WEAKEST for rows in order of time; WEAK with a delay, and for rows that bring their own
interval.

The engine hands over rows that are typed and checked; the frontier of the source is its business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from millstream.logical.plan import Schema
from millstream.physical.batch import NEVER, Batch, State
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan


@dataclass(frozen=True)
class Source(PhysicalPlan):
    stream: str
    columns: Schema
    ordered: bool
    arrival: bool = False

    input_names = ()

    @cached_property
    def schema(self) -> Schema:
        return self.columns

    @cached_property
    def pattern(self) -> Pattern:
        return Pattern.WEAKEST if self.ordered else Pattern.WEAK

    def open(self, context: Context) -> Operator:
        return SourceOperator(context, self.ordered)


class SourceOperator(Operator):
    def __init__(self, context: Context, ordered: bool) -> None:
        self._context = context
        self._ordered = ordered
        self._number = len(context.sources)
        context.sources.append(NEVER)

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        context = self._context
        if len(batch):
            earliest = batch.start[0] if self._ordered else batch.start.min()
            context.beginning = min(context.beginning, int(earliest))
        context.sources[self._number] = max(context.sources[self._number], batch.frontier)
        return [batch]

    def save(self) -> State:
        return {
            "frontier": self._context.sources[self._number],
            "beginning": self._context.beginning,
        }

    def restore(self, state: State) -> None:
        self._context.sources[self._number] = state["frontier"]
        self._context.beginning = min(self._context.beginning, state["beginning"])
