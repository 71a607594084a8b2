"""The tree of joins and what to drop before it, chosen together (A §5).

The cheapest tree is often not the best one to shed from: a tree that joins a fast input last can
shed the others, without loss for count windows. So the goal is the largest λ / C (equation 21). All
affordable trees have the same output λ, and the cheapest wins; for the others C is the whole
capacity, and the one with the most output wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from millstream.optimizer.join_graph import Flow, Flows, JoinGraph
from millstream.optimizer.join_orders.costs import JoinCost
from millstream.optimizer.join_orders.search import cheapest
from millstream.optimizer.join_orders.trees import Tree, inputs_of, splits
from millstream.optimizer.shedding.polynomial import Polynomial
from millstream.papers.join_trees import all_trees
from millstream.papers.shed_shares import best_shares

ZERO = Polynomial({})
BETTER = 1 + 1e-9  # the smallest relevant difference


@dataclass(frozen=True)
class ShedPlan:
    """A tree with the kept share of each input; `output` rows and `cost` are per unit of time."""

    tree: Tree
    shares: tuple[float, ...]
    output: float
    cost: float

    @property
    def worth(self) -> float:
        """A's R (equation 21)."""
        return self.output / self.cost if self.cost else float("inf")

    @property
    def sheds(self) -> bool:
        return any(share < 1.0 for share in self.shares)


class Shedding:
    """The plans of one query, and their costs when inputs are shed."""

    def __init__(self, graph: JoinGraph, cost: JoinCost) -> None:
        self.graph, self._cost = graph, cost
        self.flows: Flows[Polynomial] = shed_flows(graph)
        self.steps = 0  # plans and parts of plans that were examined
        self._costs: dict[Tree, Polynomial] = {}

    def join_cost(self, left: int, right: int) -> Polynomial:
        return self._cost(self.flows.meeting(left, right))

    def tree_cost(self, tree: Tree) -> Polynomial:
        if isinstance(tree, int):
            return ZERO
        if tree not in self._costs:
            below = self.tree_cost(tree[0]) + self.tree_cost(tree[1])
            self._costs[tree] = below + self.join_cost(*map(inputs_of, tree))
        return self._costs[tree]

    @cached_property
    def lowest(self) -> Tree:
        """The cheapest left-deep tree when nothing is dropped."""
        return cheapest(self.graph, self._cost, bushy=False).tree

    def utilization(self, tree: Tree, capacity: float = 1.0) -> float:
        """The share of the capacity with nothing dropped; a plan is feasible up to 1."""
        return float(self.tree_cost(tree)) / capacity

    def shed(self, tree: Tree, capacity: float = 1.0) -> ShedPlan:
        """A tree with the best shares."""
        return self._shed(tree, self.tree_cost(tree), capacity)

    def _shed(self, tree: Tree, cost: Polynomial, capacity: float) -> ShedPlan:
        self.steps += 1
        output = self.flows.of(self.graph.all).rate
        shares = best_shares(output, cost, capacity, [1.0] * len(self.graph.inputs))
        return ShedPlan(tree, tuple(shares), output.at(shares), cost.at(shares))

    def all_costs(self, bushy: bool = False) -> list[tuple[Tree, Polynomial]]:
        trees = all_trees(self.graph.all, bushy)
        return [(tree, self.tree_cost(tree)) for tree in trees]

    def best_of(self, costs: Iterable[tuple[Tree, Polynomial]], capacity: float = 1.0) -> ShedPlan:
        """The plan with the highest value, among trees with their costs."""
        best: ShedPlan | None = None
        for tree, cost in costs:
            plan = self._shed(tree, cost, capacity)
            if best is None or plan.worth > best.worth * BETTER:
                best = plan
        assert best is not None
        return best

    def heuristic(self, capacity: float = 1.0, bushy: bool = False) -> ShedPlan:
        """Dynamic programming over sets of inputs (A §5.2): each set keeps its best partial plan,
        with the shares that make it affordable. Later drops add to earlier ones; for the final tree
        the shares are recomputed. It is never worse than shedding from the cheapest tree."""
        count = len(self.graph.inputs)
        best = {1 << i: _Part(i, [float(i == j) for j in range(count)]) for i in range(count)}
        for inputs in range(3, self.graph.all + 1):
            if inputs in best:
                continue
            found, most = None, 0.0
            for left, right in splits(inputs, bushy):
                part, worth = self._joined(best[left], best[right], inputs, capacity)
                if found is None or worth > most * BETTER:
                    found, most = part, worth
            assert found is not None
            best[inputs] = found
        trees = {best[self.graph.all].tree: None, self.lowest: None}
        return self.best_of([(tree, self.tree_cost(tree)) for tree in trees], capacity)

    def _joined(
        self, one: _Part, other: _Part, inputs: int, capacity: float
    ) -> tuple[_Part, float]:
        """Two parts joined, and the value of the result."""
        self.steps += 1
        tree = one.tree, other.tree
        cost, output = self.tree_cost(tree), self.flows.of(inputs).rate
        kept = [a + b for a, b in zip(one.shares, other.shares, strict=True)]
        shares = best_shares(output, cost, capacity, kept, exactly=False)
        return _Part(tree, shares), output.at(shares) / cost.at(shares)


@dataclass(frozen=True)
class _Part:
    """A part of a plan; the share of an input that it does not contain is 0."""

    tree: Tree
    shares: list[float]


def shed_flows(graph: JoinGraph) -> Flows[Polynomial]:
    """The flows of all sets of inputs, as polynomials of the shares."""
    flows = []
    for port, each in enumerate(graph.inputs):
        size = Polynomial({0 if each.by_rows else 1 << port: each.size})
        flows.append(Flow(Polynomial({1 << port: each.rate}), size))
    return Flows(graph, flows)
