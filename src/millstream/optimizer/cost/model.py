"""The types and functions that the formulas of all operators share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millstream.optimizer.cost.characteristics import Characteristics, ColumnFacts, Key, facts_of
from millstream.optimizer.cost.work import Work
from millstream.optimizer.statistics import Statistics
from millstream.physical.operator import PhysicalPlan

FORGOTTEN = 0.5  # unused keys are dropped when they are half as many as the others …
AT_LEAST = 1024.0  # … plus this number
ROOM = 1.25  # the average capacity of arrays that grow by half, as a multiple of their contents


@dataclass(frozen=True)
class Given:
    """The result of an operator's formula; work is per chronon. `vectors` is the number of
    operations on a whole column per batch, regardless of its rows; an operator with state works on
    all columns of its inputs and its output. `parts` is the number of parts of its state that a
    batch passes through."""

    output: Characteristics
    work: Work
    rows: float = 0.0
    bytes: float = 0.0
    vectors: float = 0.0
    parts: int = 1


@dataclass(frozen=True)
class Model:
    """What formulas use besides their inputs."""

    statistics: Statistics

    def lifetime(self, length: float) -> float:
        """A validity; if it is unbounded, the average rest of the horizon."""
        return self.statistics.ahead / 2 if length >= 2**62 else length

    def lasting(self, rate: float, present: float) -> tuple[float, float]:
        """The rate and validity for a number of rows at an instant; each arrives at least once
        until the horizon, however rarely something changes."""
        rate = max(rate, present / self.statistics.ahead, 1e-300)
        return rate, present / rate


def held_keys(live: float, distinct: float, came: float = float("inf")) -> float:
    """The average number of keys in an operator's key space, given the live keys and the rows that
    arrive until the horizon: unused keys are dropped only when there are half as many of them, plus
    1,024."""
    most = live * (1 + FORGOTTEN) + AT_LEAST
    in_the_long_run = distinct if distinct <= most else (live + most) / 2
    return min(in_the_long_run, live + came / 2)


def joined_columns(
    nodes: Sequence[PhysicalPlan], inputs: Sequence[Characteristics]
) -> dict[Key, ColumnFacts]:
    """The columns of several inputs, concatenated."""
    return {
        key: facts
        for node, input in zip(nodes, inputs, strict=True)
        for key, facts in facts_of(node.schema, input.columns).items()
    }
