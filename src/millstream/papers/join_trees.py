"""Joins as A models them: inputs of given rates, one price per element, and every tree in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from millstream.optimizer.join_graph import (
    Amount,
    Flows,
    JoinGraph,
    JoinInput,
    Meeting,
    flows_of,
    members,
)
from millstream.optimizer.join_orders.costs import JoinCost
from millstream.optimizer.join_orders.search import Ordered
from millstream.optimizer.join_orders.trees import Tree, joins, left_deep, splits


def over_time(name: str, rate: float, span: float, fluctuates: bool = False) -> JoinInput:
    return JoinInput(name, rate, rate * span, fluctuates=fluctuates)


def over_rows(name: str, rate: float, rows: float) -> JoinInput:
    return JoinInput(name, rate, rows, by_rows=True)


@dataclass(frozen=True)
class PerElement:
    """Every element that arrives costs the same (equation 9)."""

    cost: float

    def __call__(self, meeting: Meeting[Amount]) -> Amount:
        return (meeting.left.rate + meeting.right.rate) * self.cost


def all_trees(inputs: int, bushy: bool) -> Iterator[Tree]:
    """Every tree over a set of inputs, each once regardless of left and right."""
    if not inputs & inputs - 1:
        yield inputs.bit_length() - 1
    elif bushy:
        for left, right in splits(inputs, bushy):
            for one in all_trees(left, bushy):
                yield from ((one, other) for other in all_trees(right, bushy))
    else:
        yield from (left_deep(o) for o in permutations(members(inputs)) if o[0] < o[1])


def tree_text(tree: Tree, names: Sequence[str]) -> str:
    """
    >>> tree_text(((1, 0), 2), "ABC")
    '(B ⋈ A) ⋈ C'
    """

    def part(side: Tree) -> str:
        return names[side] if isinstance(side, int) else f"({tree_text(side, names)})"

    return names[tree] if isinstance(tree, int) else " ⋈ ".join(map(part, tree))


def tree_cost(flows: Flows[float], tree: Tree, cost: JoinCost) -> float:
    return sum(cost(flows.meeting(left, right)) for left, right in joins(tree))


def cheapest_of_all(graph: JoinGraph, cost: JoinCost, bushy: bool = True) -> Ordered:
    """The cheapest tree, by trying every tree."""
    flows = flows_of(graph)
    trees = list(all_trees(graph.all, bushy))
    costs = [tree_cost(flows, tree, cost) for tree in trees]
    least = min(costs)
    return Ordered(trees[costs.index(least)], least, len(trees) * (len(graph.inputs) - 1))
