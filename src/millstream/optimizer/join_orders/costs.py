"""The cost of a binary join per unit of time (A, equations 8 to 10).

Each side of a join has its own cost: its elements are inserted and expire there, and elements of
the other side probe it. So the sides may be stored differently. A cost function returns the cost of
a `Meeting`: a number, or a polynomial if elements may be dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from millstream.optimizer.join_graph import Amount, Flow, Meeting


class JoinCost(Protocol):
    def __call__(self, meeting: Meeting[Amount], /) -> Amount: ...


@dataclass(frozen=True)
class SideCost:
    """Costs per element: to insert it, to expire it, to probe the side, and to examine an element
    stored there. With `by_key` only elements with the same key are examined."""

    insert: float = 0.0
    expire: float = 0.0
    probe: float = 0.0
    look: float = 0.0
    by_key: bool = False

    def of(self, kept: Flow[Amount], probing: Flow[Amount], selectivity: float) -> Amount:
        """The cost of a side (equation 8)."""
        share = selectivity if self.by_key else 1.0
        looked_at = probing.rate * kept.size * (share * self.look)
        return kept.rate * (self.insert + self.expire) + probing.rate * self.probe + looked_at


@dataclass(frozen=True)
class Asymmetric:
    """The given implementation for both sides (equation 8)."""

    left: SideCost
    right: SideCost

    def __call__(self, meeting: Meeting[Amount]) -> Amount:
        left, right, selectivity = meeting.left, meeting.right, meeting.selectivity
        return self.left.of(left, right, selectivity) + self.right.of(right, left, selectivity)


@dataclass(frozen=True)
class Cheapest:
    """For each side the cheaper of nested loops and, if there is an equality, a hash table."""

    loop: SideCost
    hash: SideCost

    def __call__(self, meeting: Meeting[Amount]) -> Amount:
        left, right = self.sides(meeting)
        return Asymmetric(left, right)(meeting)

    def sides(self, meeting: Meeting[Amount]) -> tuple[SideCost, SideCost]:
        ways = (self.hash, self.loop) if meeting.keyed else (self.loop,)
        left, right, share = meeting.left, meeting.right, meeting.selectivity
        return (
            min(ways, key=lambda way: float(way.of(left, right, share))),
            min(ways, key=lambda way: float(way.of(right, left, share))),
        )
