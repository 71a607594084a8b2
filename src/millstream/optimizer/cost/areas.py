"""The laziness of expiry and the number of partitions of areas, by a memory budget (G5 §5.4.2).

Rare expiry costs less, but keeps expired rows: on average half of those that arrive in an interval.
So does a calendar with few partitions: the current partition waits until the frontier has passed
it. Memory that a plan needs anyway is reserved; the rest of the budget is distributed to the areas
in proportion to their size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from millstream.optimizer.cost.characteristics import Characteristics
from millstream.optimizer.cost.estimate import Estimates
from millstream.optimizer.cost.joins import WIDER, element_bytes, keeps_order
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.join import Join
from millstream.physical.operators.multi_join import MultiJoin

LAZIEST = 0.05  # of the validity of rows: G5's setting (§6.1)
FEWEST, MOST = 16, 4096  # partitions


def fitted_area(
    choice: AreaChoice, side: PhysicalPlan, given: Characteristics, spare: float
) -> AreaChoice:
    """The area of an input with a number of spare bytes beyond the rows that it must keep.

    Rows that are no longer needed are split equally between the interval of expiry, τ/(2·d) of
    them, and partitions of width w, ¾·w/d of them."""
    rows = max(spare, 0.0) / element_bytes(choice, side, given)
    if keeps_order(choice, side):
        return replace(choice, lazy=_interval(given, rows))
    width = rows * given.distance / WIDER
    partitions = MOST if width <= 0 else given.length / width
    power = 1 << math.ceil(math.log2(min(max(partitions, FEWEST), MOST)))
    return replace(choice, lazy=_interval(given, rows / 2), partitions=power)


def _interval(given: Characteristics, rows: float) -> int:
    return int(min(2 * rows * given.distance, LAZIEST * given.length))


def fit_areas(estimates: Estimates, budget: float) -> PhysicalPlan:
    """The plan with the areas of its joins fitted to a memory budget for the whole plan."""
    return _Fitting(estimates, budget).node(estimates.plan)


class _Fitting:
    """Shared parts stay shared."""

    def __init__(self, estimates: Estimates, budget: float) -> None:
        self._estimates = estimates
        joins = [node for node, _ in estimates if isinstance(node, Join | MultiJoin)]
        needed = sum(self._needed(node) for node in joins)
        others = estimates.bytes - sum(estimates[node].bytes for node in joins)
        self._share = max(budget - others - needed, 0.0) / needed if needed else 0.0
        self._done: dict[int, PhysicalPlan] = {}

    def node(self, node: PhysicalPlan) -> PhysicalPlan:
        if id(node) not in self._done:
            self._done[id(node)] = self._fitted(node)
        return self._done[id(node)]

    def _fitted(self, node: PhysicalPlan) -> PhysicalPlan:
        if isinstance(node, Join | MultiJoin):
            areas = tuple(self._areas(node))
            node = replace(node, areas=areas)  # type: ignore[arg-type]
        return node.with_inputs([self.node(child) for child in node.inputs])

    def _areas(self, node: Join | MultiJoin) -> list[AreaChoice]:
        return [
            fitted_area(choice, side, given, self._share * given.present * size)
            for choice, side, given, size in self._parts(node)
        ]

    def _needed(self, node: Join | MultiJoin) -> float:
        return sum(given.present * size for _, _, given, size in self._parts(node))

    def _parts(
        self, node: Join | MultiJoin
    ) -> Sequence[tuple[AreaChoice, PhysicalPlan, Characteristics, float]]:
        outputs = [self._estimates[side].output for side in node.inputs]
        return [
            (choice, side, given, element_bytes(choice, side, given))
            for choice, side, given in zip(node.areas, node.inputs, outputs, strict=True)
        ]
