"""Good orders of a multi-way join, hash tables for its windows, and whether a tree of binary joins
would be better (G3 §5).

`best_orders` is exact: our join may process the new elements of each input in a separate order, so
each order is found by dynamic programming. The rest is G3's: one order by the selectivity of pairs,
in which fast streams are then moved up; and, if columns differ, the most selective condition that
the graph allows next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import inf

from millstream.optimizer.join_graph import Amount, JoinGraph, Meeting, mask_of, members
from millstream.optimizer.join_orders.costs import Cheapest, SideCost
from millstream.optimizer.join_orders.search import cheapest
from millstream.optimizer.join_orders.trees import Tree
from millstream.optimizer.multi_way_orders import MultiWay, Order, Orders
from millstream.physical.joins.steps import new_first

MOST_FAST = 3  # streams that are moved up, so that at most n³ orders are tried


@dataclass(frozen=True)
class Found:
    """`steps` is the number of orders, or parts of orders, that were examined."""

    orders: Orders
    cost: float
    steps: int


def best_orders(join: MultiWay) -> Found:
    """The cheapest order for the new elements of each input. They come first in it, unless many are
    evaluated together."""
    found = [_best_order(join, new) for new in join.ports]
    orders = tuple(order for order, _ in found)
    return Found(orders, join.cost(orders), sum(steps for _, steps in found))


def _best_order(join: MultiWay, new: int) -> tuple[Order, int]:
    first = join.ports if join.interval else (new,)
    best: dict[int, tuple[float, Order]] = {1 << port: (0.0, (port,)) for port in first}
    steps = 0
    for bound in range(1, join.graph.all + 1):
        ways = []
        # With two inputs both orders cost the same: the new elements come first.
        for last in sorted(members(bound), key=lambda port: port == new):
            before = bound ^ 1 << last
            if before in best:
                steps += 1
                cost, order = best[before]
                ways.append((cost + join.step(before, last, new).comparisons, (*order, last)))
        if ways:
            best[bound] = min(ways, key=lambda way: way[0])
    return best[join.graph.all][1], steps


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


# --- a tree or one join ------------------------------------------------------------------------


@dataclass(frozen=True)
class Weights:
    """The costs of appending an element to a list, inserting it into a hash table, expiring it,
    probing a side, examining an element there, and producing a result."""

    append: float = 1.0
    hash: float = 2.0
    expire: float = 1.0
    probe: float = 1.0
    look: float = 1.0
    make: float = 1.0

    def __call__(self, meeting: Meeting[Amount]) -> Amount:
        """The cost of a binary join."""
        return self._of_two(meeting) + meeting.result.rate * self.make

    @cached_property
    def _of_two(self) -> Cheapest:
        return Cheapest(
            SideCost(self.append, self.expire, self.probe, self.look),
            SideCost(self.hash, self.expire, self.probe, self.look, by_key=True),
        )

    def multi_way(self, join: MultiWay, orders: Orders) -> float:
        """The cost of a multi-way join."""
        work = join.work(orders)
        kept = 0.0
        for each, buckets in zip(join.graph.inputs, join.buckets, strict=True):
            kept += each.rate * ((self.append if buckets == 1 else self.hash) + self.expire)
        looked_at = work.comparisons * self.look
        return kept + work.probes * self.probe + looked_at + work.results * self.make


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
