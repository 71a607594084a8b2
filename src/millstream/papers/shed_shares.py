"""The shares of a plan's inputs to keep, so that it is affordable and has the most output."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.optimizer.shedding.knapsack import knapsack
from millstream.optimizer.shedding.multiplier import most_output
from millstream.optimizer.shedding.polynomial import Polynomial

ROUNDING = 1e-9  # of the capacity: an excess too small to drop anything


def best_shares(
    output: Polynomial,
    cost: Polynomial,
    capacity: float,
    most: Sequence[float],
    exactly: bool = True,
) -> list[float]:
    """The share of each input that is kept, at most `most`. Dropping at the inputs is enough: rows
    that are dropped later have already cost something (A, observations 2 and 3)."""
    if cost.at(most) <= capacity * (1 + ROUNDING):
        return list(most)
    if output.is_linear and cost.is_linear:
        return knapsack(output, cost, capacity, most)
    return most_output(output, cost, capacity, most, exactly)
