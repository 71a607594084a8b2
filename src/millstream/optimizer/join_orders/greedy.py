"""A good tree of binary joins over more inputs than can be searched exactly.

Greedy operator ordering (Fegaras, 1998) joins the two parts that rank first, as long as there are
two parts with a condition between them; only parts without one are joined as a product, the
smallest first. No rank is best for all queries, so several are tried. Each tree is then improved in
two ways, in turn, until that gains little:

- *Blocks* (iterative dynamic programming: Kossmann and Stocker, 2000). Up to `BLOCK` parts of the
  tree are ordered exactly, from the leaves up, each block becoming one part of the next.
- *Lines* (Neumann and Radke, 2018). The leaves of the tree from left to right are a line; the best
  tree over the line is found by dynamic programming over its intervals, of up to `LINE` inputs.

The output of a set of inputs does not depend on how it was joined, and both searches include the
tree that they start from, so neither makes it more expensive.

Both use only joins with a condition. A product can look free next to a part that is estimated to be
empty, and estimates over many joins are too uncertain to rely on that.

Cost: O(n²) pairs for the greedy tree, n/BLOCK searches of 3^BLOCK steps, and n³/6 for a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TypeAlias

from millstream.optimizer.join_graph import Flow, JoinGraph, Meeting
from millstream.optimizer.join_orders.costs import JoinCost
from millstream.optimizer.join_orders.search import Ordered
from millstream.optimizer.join_orders.trees import Tree, leaves, splits

BLOCK = 7  # parts that are ordered exactly
LINE = 40  # inputs in a line at most
ROUNDS = 4  # of improvement at most
GAIN = 0.99  # of the cost: the last round is the first that leaves more
MANY = 1e100  # rows: larger flows are clamped, so that no product of two flows overflows


@dataclass(frozen=True)
class _Part:
    """A tree over a set of inputs, its flow, and its cost per unit of time: in total, and of its
    topmost join alone. `values` is the number of distinct values left in the columns of each
    equality, by the number of the equality."""

    tree: Tree
    inputs: int
    flow: Flow[float]
    values: Mapping[int, float]
    cost: float = 0.0
    own: float = 0.0


Rank: TypeAlias = Callable[[_Part], tuple[float, float]]

RANKS: tuple[Rank, ...] = (
    lambda part: (part.flow.rate, part.flow.size),
    lambda part: (part.flow.size, part.flow.rate),
    lambda part: (part.own, part.flow.size),
)


def good_tree(graph: JoinGraph, cost: JoinCost) -> Ordered:
    """A cheap tree, not always the cheapest. Ties go to the first in a fixed order."""
    search = _Search(graph, cost)
    found = [search.improved(search.greedy(rank)) for rank in RANKS]
    best = min(found, key=lambda part: part.cost)
    return Ordered(best.tree, best.cost, search.steps)


class _Search:
    def __init__(self, graph: JoinGraph, cost: JoinCost) -> None:
        self._graph, self._cost = graph, cost
        values: list[dict[int, float]] = [{} for _ in graph.inputs]
        for number, equality in enumerate(graph.equalities):
            for port, distinct in equality.distinct:
                values[port][number] = distinct
        self._inputs = [
            _Part(port, 1 << port, _bounded(each.rate, each.size), values[port])
            for port, each in enumerate(graph.inputs)
        ]
        self.steps = 0  # joins that were examined

    def _joined(self, left: _Part, right: _Part) -> _Part:
        """`Flows.meeting` of two parts, but computed from them: the products of many inputs
        overflow a double."""
        self.steps += 1
        few, many = sorted((left.values, right.values), key=len)
        shared = [number for number in few if number in many]
        share = prod(1 / max(few[number], many[number]) for number in shared)
        if self._graph.predicates:
            tested = self._graph.tested(left.inputs, right.inputs)
            share *= prod(predicate.selectivity for predicate in tested)
        one, other = left.flow, right.flow
        rate = one.rate * share * other.size + one.size * share * other.rate
        result = _bounded(rate, one.size * share * other.size)
        own = self._cost(Meeting(one, other, result, share, bool(shared)))
        return _Part(
            (left.tree, right.tree),
            left.inputs | right.inputs,
            result,
            {**left.values, **right.values, **{n: min(few[n], many[n]) for n in shared}},
            left.cost + right.cost + own,
            own,
        )

    def _are_linked(self, left: _Part, right: _Part) -> bool:
        if not left.values.keys().isdisjoint(right.values.keys()):
            return True
        tested = self._graph.predicates and self._graph.tested(left.inputs, right.inputs)
        return any(p.inputs & left.inputs and p.inputs & right.inputs for p in tested)

    # --- greedy operator ordering ----------------------------------------------------------------

    def greedy(self, rank: Rank) -> _Part:
        parts = self._inputs
        linked = [*self._linked(combinations(parts, 2))]
        while len(parts) > 1:
            best = min(linked, key=rank) if linked else self._product(parts)
            parts = [part for part in parts if not part.inputs & best.inputs]
            linked = [made for made in linked if not made.inputs & best.inputs]
            linked += self._linked((part, best) for part in parts)
            parts.append(best)
        return parts[0]

    def _linked(self, pairs: Iterable[tuple[_Part, _Part]]) -> Iterator[_Part]:
        """The joins of those pairs that have a condition between them."""
        for left, right in pairs:
            if self._are_linked(left, right):
                yield self._joined(left, right)

    def _product(self, parts: list[_Part]) -> _Part:
        left, right = sorted(parts, key=lambda part: part.flow.size)[:2]
        return self._joined(left, right)

    def improved(self, part: _Part) -> _Part:
        for _ in range(ROUNDS):
            before = part.cost
            part = self._ordered(self._block(part.tree))
            if len(self._inputs) <= LINE:
                part = self._in_line(part)
            if part.cost >= before * GAIN:
                break
        return part

    # --- a line ----------------------------------------------------------------------------------

    def _in_line(self, part: _Part) -> _Part:
        """The cheapest tree of joins with a condition that has the leaves in the same order; the
        given tree if there is none."""
        order = [*leaves(part.tree)]
        best = {(i, i + 1): self._inputs[port] for i, port in enumerate(order)}
        for width in range(2, len(order) + 1):
            for first in range(len(order) - width + 1):
                last = first + width
                ways = (((first, at), (at, last)) for at in range(first + 1, last))
                found = self._cheapest((best.get(a), best.get(b)) for a, b in ways)
                if found is not None:
                    best[first, last] = found
        return best.get((0, len(order)), part)

    def _cheapest(self, pairs: Iterable[tuple[_Part | None, _Part | None]]) -> _Part | None:
        found: _Part | None = None
        for left, right in pairs:
            if left is None or right is None:
                continue
            if found is not None and left.cost + right.cost >= found.cost:
                continue
            for made in self._linked([(left, right)]):
                if found is None or made.cost < found.cost:
                    found = made
        return found

    # --- blocks ----------------------------------------------------------------------------------

    def _block(self, tree: Tree) -> _Block:
        """At most `BLOCK` parts that a tree joins; lower blocks are ordered and become one part."""
        if isinstance(tree, int):
            return _Block(tree, (self._inputs[tree],))
        sides = [self._block(side) for side in tree]
        while sum(len(side.parts) for side in sides) > BLOCK:
            largest = max(range(2), key=lambda index: len(sides[index].parts))
            part = self._ordered(sides[largest])
            sides[largest] = _Block(part, (part,))
        return _Block((sides[0].tree, sides[1].tree), sides[0].parts + sides[1].parts)

    def _ordered(self, block: _Block) -> _Part:
        """The cheapest tree of joins with a condition over the parts of a block; the given tree if
        there is none."""
        parts = sorted(block.parts, key=lambda part: part.inputs)
        best = {1 << i: part for i, part in enumerate(parts)}
        everything = (1 << len(parts)) - 1
        for chosen in range(3, everything + 1):
            if chosen not in best:
                ways = splits(chosen, bushy=True)
                found = self._cheapest((best.get(a), best.get(b)) for a, b in ways)
                if found is not None:
                    best[chosen] = found
        return best.get(everything) or self._as_found(block.tree)

    def _as_found(self, tree: _BlockTree) -> _Part:
        match tree:
            case _Part():
                return tree
            case int():
                return self._inputs[tree]
        return self._joined(*map(self._as_found, tree))


_BlockTree: TypeAlias = "int | _Part | tuple[_BlockTree, _BlockTree]"


@dataclass(frozen=True)
class _Block:
    """The top of a tree, down to the parts that are joined there."""

    tree: _BlockTree
    parts: tuple[_Part, ...]


def _bounded(rate: float, size: float) -> Flow[float]:
    return Flow(min(rate, MANY), min(size, MANY))
