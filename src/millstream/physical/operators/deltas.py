"""Deltas: what came in at each instant (ISTREAM), or what went out (DSTREAM).

*Meaning*: for every t, out(t) = in(t) - in(t-1), or in(t-1) - in(t), as multisets.
*State*: what is known of the future of the rows; nothing of the past.
*Pattern*: WEAKEST: rows live one instant, and come in order. *Cost*: an event a start and an end.
*Source*: CQL, as K §17.2 has it for intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from millstream.physical.batch import NEVER, Batch, State
from millstream.physical.multisets import Multisets
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan


@dataclass(frozen=True)
class Deltas(PhysicalPlan):
    input: PhysicalPlan
    gone: bool = False

    @cached_property
    def pattern(self) -> Pattern:
        return Pattern.WEAKEST

    @property
    def state(self) -> str:
        return "agenda"

    def open(self, context: Context) -> Operator:
        return DeltasOperator(self)


class DeltasOperator(Operator):
    def __init__(self, node: Deltas) -> None:
        self._sign = -1 if node.gone else 1
        self._types = node.types
        self._multiset = Multisets(node.types, [node.input.pattern is Pattern.WEAKEST])
        self._frontier = NEVER

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._multiset.forget()
        self._multiset.add(0, batch)
        if batch.frontier <= self._frontier:
            return []
        self._frontier = batch.frontier
        steps, _ = self._multiset.due(batch.frontier)
        if not len(steps):
            return [Batch.empty(self._types, batch.frontier)]
        net = np.add.reduceat(steps.delta, steps.bounds[:-1]) * self._sign
        index = np.flatnonzero((net > 0) & (steps.step_time > NEVER))
        index = index[np.argsort(steps.step_time[index], kind="stable")]
        start = steps.step_time[index]
        rows = self._multiset.rows(steps.step_code[index])
        return [Batch(rows, start, start + 1, net[index], batch.frontier)]

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
