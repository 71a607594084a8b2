"""How much to keep of each input of a plan, so that it can be afforded and gives most output."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.optimizer.shedding.knapsack import knapsack
from millstream.optimizer.shedding.multiplier import most_output
from millstream.optimizer.shedding.polynomial import Polynomial

ROUNDING = 1e-9  # of the capacity: no reason to drop anything


def best_shares(
    output: Polynomial,
    cost: Polynomial,
    capacity: float,
    most: Sequence[float],
    exactly: bool = True,
) -> list[float]:
    """Of each input the share that is kept, at most `most`. Dropping at the inputs is enough: what
    is dropped later has already cost something (A, observations 2 and 3)."""
    if cost.at(most) <= capacity * (1 + ROUNDING):
        return list(most)
    if output.is_linear and cost.is_linear:
        return knapsack(output, cost, capacity, most)
    return most_output(output, cost, capacity, most, exactly)
