"""The orders of a multi-way join without intermediate results, and their costs (G3 §4, §5).

New elements of an input are joined with all other inputs in some order: each partial result
examines all elements of the next input, or those of one bucket if there is a key, and continues
with those that match. The cost is the number of elements examined per unit of time. The cost of
binding the next input does not depend on the order in which the others were bound. So the best
order for the new elements of each input is found by dynamic programming over sets of inputs, in
n·2ⁿ steps. G3's heuristic searches one order for all inputs, in which new elements are moved to the
front.

If the join is evaluated every `interval` units (G3's τ; 0 is at once), the new elements of an
interval are joined together, at any position in the order, and windows still contain the elements
that expired since the last evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeAlias

from millstream.optimizer.join_graph import JoinGraph, mask_of, members
from millstream.physical.joins.steps import new_first

Order: TypeAlias = tuple[int, ...]
Orders: TypeAlias = tuple[Order, ...]  # for the new elements of each input


@dataclass(frozen=True)
class Work:
    """Per unit of time: probes by partial results, elements examined, tests of expensive predicates
    (in comparisons), and results."""

    probes: float = 0.0
    looked_at: float = 0.0
    tests: float = 0.0
    results: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.probes + other.probes,
            self.looked_at + other.looked_at,
            self.tests + other.tests,
            self.results + other.results,
        )

    @property
    def comparisons(self) -> float:
        """G3's cost."""
        return self.looked_at + self.tests


@dataclass(frozen=True)
class MultiWay:
    """A multi-way join: its inputs, the number of buckets of each, and the interval of evaluation.
    One bucket is a list, scanned by nested loops; `inf` is one bucket per value."""

    graph: JoinGraph
    buckets: tuple[float, ...] = ()
    interval: float = 0.0

    def __post_init__(self) -> None:
        if not self.buckets:
            object.__setattr__(self, "buckets", (1.0,) * len(self.graph.inputs))

    @property
    def ports(self) -> range:
        return range(len(self.graph.inputs))

    # --- one step --------------------------------------------------------------------------------

    def _new(self, port: int) -> float:
        """The number of new elements that are joined together."""
        return self.graph.inputs[port].rate * self.interval if self.interval else 1.0

    def _there(self, port: int, new: int) -> float:
        """The number of elements of an input: the new ones; or all that are valid, and those that
        are not yet dropped, on average the elements of half an interval."""
        each = self.graph.inputs[port]
        return self._new(port) if port == new else each.size + each.rate * self.interval / 2

    def partials(self, bound: int, new: int) -> float:
        """The number of partial results once these inputs are bound."""
        return self._all_partials(bound) * self._share(bound, new)

    def _share(self, inputs: int, new: int) -> float:
        """The share of elements that are new, if the input with new elements is one of these."""
        return self._there(new, new) / self._there(new, -1) if inputs >> new & 1 else 1.0

    def _all_partials(self, bound: int) -> float:
        """As if nothing were new."""
        if bound not in self._partials:
            rows = prod(self._there(port, -1) for port in members(bound))
            self._partials[bound] = rows * self.graph.selectivity(bound)
        return self._partials[bound]

    @cached_property
    def _partials(self) -> dict[int, float]:
        return {}

    @cached_property
    def _steps(self) -> dict[tuple[int, int], Work]:
        return {}

    def _bucket(self, bound: int, port: int) -> float:
        """The share of an input that is examined from the bound inputs."""
        values = [
            count
            for equality in self.graph.equalities
            if equality.inputs & bound
            for other, count in equality.distinct
            if other == port
        ]
        return 1.0 / min(self.buckets[port], max(values)) if values else 1.0

    def step(self, bound: int, port: int, new: int) -> Work:
        """The cost of binding one more input, for one evaluation."""
        step = self._steps.get((bound, port))
        if step is None:
            step = self._steps[bound, port] = self._step(bound, port)
        before, after = self._share(bound, new), self._share(bound | 1 << port, new)
        return Work(step.probes * before, step.looked_at * after, step.tests * after)

    def _step(self, bound: int, port: int) -> Work:
        """As if nothing were new."""
        rows, there = self._all_partials(bound), self._there(port, -1)
        tested = self.graph.tested(bound, 1 << port)
        keyed = self.graph.keyed(bound, 1 << port)
        looked_at = rows * there * self._bucket(bound, port)
        candidates = rows * there * self._keys(bound, port) if keyed else looked_at
        extra = sum(p.cost for p in tested) if keyed else sum(p.cost - 1 for p in tested)
        return Work(rows, looked_at, candidates * max(0.0, extra))

    def _keys(self, bound: int, port: int) -> float:
        """The share of pairs with equal keys."""
        own = 1 << port
        found = [
            (e.selectivity(bound | own), e.selectivity(bound))
            for e in self.graph.equalities
            if e.inputs & own and e.inputs & bound
        ]
        return prod(after / before if after else 0.0 for after, before in found)

    def evaluations(self, new: int) -> float:
        return 1.0 / self.interval if self.interval else self.graph.inputs[new].rate

    # --- whole orders ----------------------------------------------------------------------------

    def walk(self, order: Order, new: int) -> Work:
        """The cost of the new elements of one input per unit of time."""
        steps = (self.step(mask_of(order[:i]), order[i], new) for i in range(1, len(order)))
        total, times = sum(steps, Work()), self.evaluations(new)
        results = self.partials(self.graph.all, new)
        return Work(
            total.probes * times, total.looked_at * times, total.tests * times, results * times
        )

    def work(self, orders: Orders) -> Work:
        """The cost of all inputs: it is a sum, so each order can be chosen separately (G3 §5.2)."""
        return sum((self.walk(order, new) for new, order in enumerate(orders)), Work())

    def cost(self, orders: Orders) -> float:
        return self.work(orders).comparisons

    def cost_of(self, order: Order) -> float:
        """The cost of one order for all inputs, in which new elements come first."""
        return self.cost(new_first(order))

    def naive_cost(self, order: Order) -> float:
        """The cost of one order for all inputs, in which new elements keep their position."""
        return self.cost((order,) * len(order))

    def insertions(self) -> float:
        """The number of expiries does not depend on the interval (G3 §4.1)."""
        return sum(each.rate for each in self.graph.inputs)
