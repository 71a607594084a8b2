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
from millstream.physical.multisets import Multisets
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
        self._types = node.types
        self._multiset = Multisets(node.types, [node.input.pattern is Pattern.WEAKEST])
        self._frontier = NEVER

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._multiset.forget()
        self._multiset.add(0, batch)
        if batch.frontier <= self._frontier:
            return []
        self._frontier = batch.frontier
        if self._context.beginning >= batch.frontier:
            return [Batch.empty(self._types, batch.frontier)]
        steps, _ = self._multiset.due(batch.frontier, self._context.beginning)
        if not len(steps):
            return [Batch.empty(self._types, batch.frontier)]
        net = np.add.reduceat(steps.delta, steps.bounds[:-1])
        index = np.flatnonzero(net)
        index = index[np.argsort(steps.step_time[index], kind="stable")]
        start = steps.step_time[index]
        rows = self._multiset.rows(steps.step_code[index])
        return [Batch(rows, start, np.full(len(start), INFINITY), net[index], batch.frontier)]

    @property
    def rows(self) -> int:
        return self._multiset.size

    @property
    def nbytes(self) -> int:
        return self._multiset.nbytes

    @property
    def touched(self) -> int:
        return self._multiset.touched

    def save(self) -> State:
        return {"multiset": self._multiset.save(), "frontier": self._frontier}

    def restore(self, state: State) -> None:
        self._multiset.restore(state["multiset"])
        self._frontier = state["frontier"]
