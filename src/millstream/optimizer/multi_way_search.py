"""Good orders of a multi-way join, and the prices by which it is compared with a tree.

`best_orders` is exact: our join may process the new elements of each input in a separate order, so
each order is found by dynamic programming.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from millstream.optimizer.join_graph import Amount, Meeting, members
from millstream.optimizer.join_orders.costs import Cheapest, SideCost
from millstream.optimizer.multi_way_orders import MultiWay, Order, Orders


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
