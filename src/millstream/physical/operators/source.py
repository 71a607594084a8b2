"""Source: the rows of a registered stream or table as elements.

*Meaning*: out(t) = the rows whose time is t, or whose interval contains t.
*State*: none.
*Pattern*: WEAKEST for rows in order of time; WEAK with a delay, and for rows with their own
interval; STRICT for a table that changes, MONOTONIC for one that does not.

The engine passes typed and checked rows, and is responsible for the frontier of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from millstream.logical.plan import Lifetime, Schema
from millstream.model.time import ALWAYS, INFINITY
from millstream.physical.batch import NEVER, Batch, Ints, State
from millstream.physical.kernels.scans import least
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan


@dataclass(frozen=True)
class Source(PhysicalPlan):
    stream: str
    columns: Schema
    ordered: bool
    arrival: bool = False
    lifetime: Lifetime = Lifetime.INSTANT
    begins: bool = True  # whether time may begin with its first row
    small: bool = False  # whether all its rows may be replicated

    input_names = ()

    @cached_property
    def schema(self) -> Schema:
        return self.columns

    @property
    def is_table(self) -> bool:
        return self.lifetime in (Lifetime.CHANGES, Lifetime.ALWAYS)

    @cached_property
    def pattern(self) -> Pattern:
        match self.lifetime:
            case Lifetime.CHANGES:
                return Pattern.STRICT
            case Lifetime.ALWAYS:
                return Pattern.MONOTONIC
        return Pattern.WEAKEST if self.ordered else Pattern.WEAK

    def open(self, context: Context) -> Operator:
        return SourceOperator(context, self.begins)


def first_start(starts: Ints) -> int:
    """The earliest start, without rows that were always valid."""
    first = least(starts)
    return first if first > ALWAYS else int(starts[starts > ALWAYS].min(initial=INFINITY))


def sources_of(plan: PhysicalPlan) -> list[Source]:
    below = [source for child in plan.inputs for source in sources_of(child)]
    return [plan] if isinstance(plan, Source) else below


class SourceOperator(Operator):
    def __init__(self, context: Context, begins: bool) -> None:
        self._context = context
        self._begins = begins
        self._number = len(context.sources)
        context.sources.append(NEVER)

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        context, frontier = self._context, self._context.sources[self._number]
        if self._begins and (frontier < context.beginning or context.admits_late):
            context.begin(first_start(batch.start))
        context.sources[self._number] = max(frontier, batch.frontier)
        return [batch]

    def save(self) -> State:
        return {
            "frontier": self._context.sources[self._number],
            "beginning": self._context.beginning,
        }

    def restore(self, state: State) -> None:
        self._context.sources[self._number] = state["frontier"]
        self._context.begin(state["beginning"])
