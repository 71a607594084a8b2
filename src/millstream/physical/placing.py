"""How a plan is cut into fragments that run in several places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millstream.physical.operator import PhysicalPlan


@dataclass(frozen=True)
class Exchanged:
    """An edge of the plan whose rows move to other places; `copies` of each row are sent."""

    node: PhysicalPlan
    copies: int = 1


@dataclass(frozen=True)
class Placing:
    """How a plan is cut for Spark: the exchanged edges, and the levels of fragments above the
    leaves."""

    exchanged: Sequence[Exchanged]
    levels: int
