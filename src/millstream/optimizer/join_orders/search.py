"""The cheapest tree of binary joins.

The cost of a tree is the sum of the costs of its joins, and the output of a set of inputs does not
depend on how it was joined. So the cheapest tree has cheapest parts, and dynamic programming over
sets of inputs finds it: in n·2ⁿ steps for left-deep trees (A §5.2), in 3ⁿ for bushy trees. Inputs
without a condition between them may be joined: a cross product of slow streams can beat a selective
join of fast ones (A, example 1). Ties go to the first tree in a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.optimizer.join_graph import JoinGraph, flows_of
from millstream.optimizer.join_orders.costs import JoinCost
from millstream.optimizer.join_orders.trees import Tree, splits


@dataclass(frozen=True)
class Ordered:
    """A tree, its cost per unit of time, and the number of joins examined to find it."""

    tree: Tree
    cost: float
    steps: int


def cheapest(graph: JoinGraph, cost: JoinCost, bushy: bool = True) -> Ordered:
    """The cheapest tree, by dynamic programming."""
    flows = flows_of(graph)
    best: dict[int, tuple[float, Tree]] = {1 << i: (0.0, i) for i in range(len(graph.inputs))}
    steps = 0
    for inputs in range(3, graph.all + 1):
        if inputs in best:
            continue
        found: tuple[float, Tree] | None = None
        for left, right in splits(inputs, bushy):
            steps += 1
            below = best[left][0] + best[right][0]
            if found is not None and below >= found[0]:
                continue
            whole = below + cost(flows.meeting(left, right))
            if found is None or whole < found[0]:
                found = whole, (best[left][1], best[right][1])
        assert found is not None
        best[inputs] = found
    least, tree = best[graph.all]
    return Ordered(tree, least, steps)
