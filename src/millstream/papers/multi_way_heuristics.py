"""G3's heuristics for joins of many inputs (§5).

One order by the selectivity of pairs, in which fast streams are then moved up; where columns
differ, the most selective condition that the graph allows next; and tables sized by what they save.
The optimizer itself searches exactly (`optimizer.multi_way_search`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf

from millstream.optimizer.join_graph import JoinGraph, mask_of
from millstream.optimizer.join_orders.search import cheapest
from millstream.optimizer.join_orders.trees import Tree
from millstream.optimizer.multi_way_orders import MultiWay, Order, Orders
from millstream.optimizer.multi_way_search import Found, Weights, best_orders
from millstream.physical.joins.steps import new_first

MOST_FAST = 3  # streams that are moved up, so that at most n³ orders are tried


def selective_order(join: MultiWay) -> Order:
    """The pair with the smallest result first, the faster of the two in front; then repeatedly the
    input that has the smallest result with one of those before (G3 §5.1). A window in buckets
    counts with the size of a bucket (§5.3)."""
    inputs = join.graph.inputs

    def result(a: int, b: int) -> float:
        sizes = inputs[a].size * inputs[b].size / (join.buckets[a] * join.buckets[b])
        return sizes * join.graph.between(1 << a, 1 << b)

    if len(inputs) < 2:
        return tuple(join.ports)
    pair = min(combinations(join.ports, 2), key=lambda pair: result(*pair))
    order = sorted(pair, key=lambda port: -inputs[port].rate)
    while len(order) < len(inputs):
        rest = [port for port in join.ports if port not in order]
        order.append(min(rest, key=lambda port: min(result(port, other) for other in order)))
    return tuple(order)


def fast_streams_up(join: MultiWay) -> Found:
    """The order by selectivity, or one in which streams faster than the mean come earlier, if that
    costs less. Streams with unreliable rates come first (G3 §5.4)."""
    first = selective_order(join)
    rates = [each.rate for each in join.graph.inputs]
    fast = [port for port in first if rates[port] > sum(rates) / len(rates)]
    fast = sorted(fast, key=lambda port: -rates[port])[:MOST_FAST]
    tried = {first: None}
    for port in sorted(fast, key=first.index):
        tried |= {moved: None for order in list(tried) for moved in _moved_up(order, port)}
    order = min(tried, key=join.cost_of)
    order = tuple(sorted(order, key=lambda port: not join.graph.inputs[port].fluctuates))
    return Found(new_first(order), join.cost_of(order), len(tried))


def _moved_up(order: Order, port: int) -> Iterator[Order]:
    place = order.index(port)
    rest = order[:place] + order[place + 1 :]
    for higher in reversed(range(place)):
        yield (*rest[:higher], port, *rest[higher:])


def greedy_orders(join: MultiWay) -> Found:
    """New elements first, then repeatedly the input that leaves the fewest partial results,
    preferring inputs that have a condition with bound ones (G3 §5.4)."""
    orders = tuple(_greedy_order(join, new) for new in join.ports)
    return Found(orders, join.cost(orders), len(orders) ** 2)


def _greedy_order(join: MultiWay, new: int) -> Order:
    order = [new]
    while len(order) < len(join.ports):
        bound = mask_of(order)
        rest = [port for port in join.ports if port not in order]
        linked = [port for port in rest if join.graph.linked(bound, 1 << port)]
        order.append(min(linked or rest, key=lambda port: join.partials(bound | 1 << port, new)))
    return tuple(order)


def sized_tables(join: MultiWay, buckets: int) -> MultiWay:
    """The join with a number of buckets, assigned where they save most: large windows get more of
    them, small ones may stay lists (G3 §5.4 and §6.5)."""
    join = replace(join, buckets=(1.0,) * len(join.ports))
    while True:
        left = buckets - sum(join.buckets)
        before = fast_streams_up(join).cost
        ways = [(each, port) for port, each in enumerate(join.buckets) if each <= left]
        best, most = None, 0.0
        for more, port in ways:
            larger = _with_buckets(join, port, join.buckets[port] + more)
            saved = (before - fast_streams_up(larger).cost) / more
            if saved > most:
                best, most = larger, saved
        if best is None:
            return join
        join = best


def _with_buckets(join: MultiWay, port: int, buckets: float) -> MultiWay:
    given = list(join.buckets)
    given[port] = buckets
    return replace(join, buckets=tuple(given))


@dataclass(frozen=True)
class Choice:
    """A multi-way join or a tree, and the cost of each."""

    orders: Orders
    hashed: tuple[bool, ...]  # which windows of the multi-way join are hash tables
    multi_way_cost: float
    tree: Tree
    tree_cost: float

    @property
    def is_multi_way(self) -> bool:
        return self.multi_way_cost < self.tree_cost


def tree_or_multi_way(graph: JoinGraph, weights: Weights) -> Choice:
    """A tree stores and probes intermediate results; a multi-way join recomputes them."""
    tree = cheapest(graph, weights)
    join, orders, cost = _tables_or_lists(graph, weights)
    hashed = tuple(buckets > 1 for buckets in join.buckets)
    return Choice(orders, hashed, cost, tree.tree, tree.cost)


def _tables_or_lists(graph: JoinGraph, weights: Weights) -> tuple[MultiWay, Orders, float]:
    """Hash tables everywhere, then lists where they are cheaper."""

    def priced(join: MultiWay) -> tuple[MultiWay, Orders, float]:
        orders = best_orders(join).orders
        return join, orders, weights.multi_way(join, orders)

    best = priced(MultiWay(graph, (inf,) * len(graph.inputs)))
    for port in range(len(graph.inputs)):
        other = priced(_with_buckets(best[0], port, 1.0))
        best = min(best, other, key=lambda each: each[2])
    return best


def as_they_stand(order: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """For each input the same order, whatever its position in it (G3's naive join)."""
    return (tuple(order),) * len(order)
