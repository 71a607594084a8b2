"""Changes: the rows that come and go at each instant, for EMIT CHANGES.

*Meaning*: for every instant t, the rows e with in(t)(e) ≠ in(t-1)(e), each once, with the
difference as its weight and [t, ∞) as its interval; all of an instant at once, in order of time.
*State*: what is known of the future of the rows. *Pattern*: STRICT.
*Cost*: an event for each start and end.

The answer begins with the first input: what held before it comes at that instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from millstream.logical.time import INFINITY
from millstream.physical.batch import NEVER, Batch, State
from millstream.physical.net_changes import NetChanges
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan


@dataclass(frozen=True)
class Changes(PhysicalPlan):
    input: PhysicalPlan

    @cached_property
    def pattern(self) -> Pattern:
        return Pattern.STRICT

    @property
    def state(self) -> str:
        return "agenda"

    def open(self, context: Context) -> Operator:
        return ChangesOperator(self, context)


class ChangesOperator(Operator):
    def __init__(self, node: Changes, context: Context) -> None:
        self._context = context
        self._net = NetChanges(node.types, ordered=node.input.pattern is Pattern.WEAKEST)
        self._nothing = Batch.empty(node.types, NEVER)
        self._frontier = NEVER

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        if batch.frontier <= self._frontier or self._context.beginning >= batch.frontier:
            self._net.add(batch)
            return [self._nothing.up_to(batch.frontier)]
        self._frontier = batch.frontier
        rows, start, net = self._net.due(batch, self._context.beginning)
        end = np.full(len(start), INFINITY)
        return [Batch(rows, start, end, net, batch.frontier)]

    @property
    def rows(self) -> int:
        return len(self._net)

    @property
    def nbytes(self) -> int:
        return self._net.nbytes

    @property
    def touched(self) -> int:
        return self._net.touched

    def save(self) -> State:
        return {"net": self._net.save(), "frontier": self._frontier}

    def restore(self, state: State) -> None:
        self._net.restore(state["net"])
        self._frontier = state["frontier"]
