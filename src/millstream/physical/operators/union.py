"""Union: the elements of both inputs.

*Meaning*: for every t, out(t) = left(t) + right(t).
*State*: the frontiers. *Pattern*: that of the more complex input, but never WEAKEST: inputs arrive
one after the other, and windows of different lengths end in a different order (K table 12.1).
*Cost*: none. *Source*: K §11.5.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from millstream.logical.plan import Schema
from millstream.physical.batch import Batch, State
from millstream.physical.operator import (
    Context,
    Frontiers,
    Operator,
    Pattern,
    PhysicalPlan,
    weakest_of,
)


@dataclass(frozen=True)
class Union(PhysicalPlan):
    left: PhysicalPlan
    right: PhysicalPlan
    columns: Schema

    input_names = ("left", "right")

    @cached_property
    def schema(self) -> Schema:
        return self.columns

    @cached_property
    def pattern(self) -> Pattern:
        both = weakest_of(self.left.pattern, self.right.pattern)
        return Pattern.WEAK if both is Pattern.WEAKEST else both

    def open(self, context: Context) -> Operator:
        return UnionOperator()


class UnionOperator(Operator):
    def __init__(self) -> None:
        self._frontiers = Frontiers(2)

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        return [batch.up_to(self._frontiers.advance(port, batch.frontier))]

    def save(self) -> State:
        return self._frontiers.save()

    def restore(self, state: State) -> None:
        self._frontiers.restore(state)
