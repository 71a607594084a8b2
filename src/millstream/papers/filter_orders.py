"""A sequence of filters: their best order, and shedding before them (A §4.1).

They are ordered by rank, (1 - selectivity) / cost, the highest first (Hellerstein 1998). If that
exceeds the capacity, it is still the best plan to shed from, and one drop at the source is best
(observation 2): the share to keep is the capacity divided by the cost (equation 16).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PricedFilter:
    name: str
    cost: float  # of one row
    selectivity: float


def utilization(rate: float, selections: Sequence[PricedFilter], capacity: float = 1.0) -> float:
    """The cost of filters in this order per unit of time, as a share of the capacity (equations 12
    and 14)."""
    total = 0.0
    for each in selections:
        total += rate * each.cost
        rate *= each.selectivity
    return total / capacity


def ordered(selections: Sequence[PricedFilter]) -> tuple[PricedFilter, ...]:
    """The cheapest order."""
    return tuple(sorted(selections, key=_rank, reverse=True))


def _rank(selection: PricedFilter) -> float:
    kept_out = 1.0 - selection.selectivity
    return kept_out / selection.cost if selection.cost else float("inf")


def share_kept(rate: float, selections: Sequence[PricedFilter], capacity: float = 1.0) -> float:
    """The share of the source's rows to keep (equation 16)."""
    used = utilization(rate, selections, capacity)
    return 1.0 if used <= 1.0 else 1.0 / used
