"""What the formulas of all operators share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millstream.optimizer.cost.characteristics import Characteristics, ColumnFacts, Key, facts_of
from millstream.optimizer.cost.work import Work
from millstream.optimizer.statistics import Statistics
from millstream.physical.operator import PhysicalPlan

FORGOTTEN = 0.5  # keys that are gone are forgotten when they are half as many as the others …
AT_LEAST = 1024.0  # … and so many more
ROOM = 1.25  # arrays that grow by half are, on average, so much larger than what is in them


@dataclass(frozen=True)
class Given:
    """What the formula of an operator gives; work is a chronon's. `vectors` is how many operations
    on a whole column there are for a batch, whatever is in it; where an operator has state, it
    works on all columns of its inputs and of its output. `parts` are those of its state that a
    batch goes through."""

    output: Characteristics
    work: Work
    rows: float = 0.0
    bytes: float = 0.0
    vectors: float = 0.0
    parts: int = 1


@dataclass(frozen=True)
class Model:
    """What formulas may ask beside their inputs."""

    statistics: Statistics

    def lifetime(self, length: float) -> float:
        """A validity; where it has no end, what is left of the horizon on average."""
        return self.statistics.ahead / 2 if length >= 2**62 else length

    def lasting(self, rate: float, present: float) -> tuple[float, float]:
        """The rate and validity of so many rows at an instant; each comes at least once until the
        horizon, however seldom something changes."""
        rate = max(rate, present / self.statistics.ahead, 1e-300)
        return rate, present / rate


def held_keys(live: float, distinct: float, came: float = float("inf")) -> float:
    """How many keys an operator knows on average of which so many are live, where so many rows come
    until the horizon: those that are gone are forgotten only when there are half as many of them,
    and 1,024 more."""
    most = live * (1 + FORGOTTEN) + AT_LEAST
    in_the_long_run = distinct if distinct <= most else (live + most) / 2
    return min(in_the_long_run, live + came / 2)


def joined_columns(
    nodes: Sequence[PhysicalPlan], inputs: Sequence[Characteristics]
) -> dict[Key, ColumnFacts]:
    """The columns of several inputs side by side."""
    return {
        key: facts
        for node, input in zip(nodes, inputs, strict=True)
        for key, facts in facts_of(node.schema, input.columns).items()
    }
