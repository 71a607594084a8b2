"""Physical plans as data, for checkpoints and other processes.

`plan_of(plan_data(plan)) == plan`, and a node with several consumers stays one node. See
`model.structures` for the form of a document.
"""

from __future__ import annotations

from typing import Any

from millstream.logical.plan_data import EXPRESSION_KINDS
from millstream.model.structures import Structures
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.aggregate import Aggregate
from millstream.physical.operators.changes import Changes
from millstream.physical.operators.coalesce import Coalesce
from millstream.physical.operators.count_window import CountWindow
from millstream.physical.operators.cut import Cut
from millstream.physical.operators.deltas import Deltas
from millstream.physical.operators.distinct import Distinct
from millstream.physical.operators.filter import Filter
from millstream.physical.operators.granularity import Granularity
from millstream.physical.operators.join import Join
from millstream.physical.operators.lookup_join import LookupJoin
from millstream.physical.operators.map import Map
from millstream.physical.operators.multi_join import MultiJoin
from millstream.physical.operators.outer_join import OuterJoin
from millstream.physical.operators.pointwise import Pointwise
from millstream.physical.operators.semi_join import SemiJoin
from millstream.physical.operators.source import Source
from millstream.physical.operators.split import Split
from millstream.physical.operators.time_window import TimeWindow
from millstream.physical.operators.top_n import TopN
from millstream.physical.operators.union import Union

OPERATOR_KINDS: dict[str, type[PhysicalPlan]] = {
    "aggregate": Aggregate,
    "changes": Changes,
    "coalesce": Coalesce,
    "count window": CountWindow,
    "cut": Cut,
    "deltas": Deltas,
    "distinct": Distinct,
    "filter": Filter,
    "granularity": Granularity,
    "join": Join,
    "lookup join": LookupJoin,
    "map": Map,
    "multi-way join": MultiJoin,
    "outer join": OuterJoin,
    "pointwise": Pointwise,
    "semi-join": SemiJoin,
    "source": Source,
    "split": Split,
    "time window": TimeWindow,
    "top-n": TopN,
    "union": Union,
}

_KINDS: dict[type, str] = {made: kind for kind, made in (OPERATOR_KINDS | EXPRESSION_KINDS).items()}
_PLANS = Structures(PhysicalPlan, OPERATOR_KINDS, EXPRESSION_KINDS)


def plan_data(root: PhysicalPlan) -> dict[str, Any]:
    return _PLANS.to_data(root, PhysicalPlan)


def plan_of(data: Any) -> PhysicalPlan:
    """StructureError if this version cannot read it."""
    root: PhysicalPlan = _PLANS.from_data(data, PhysicalPlan)
    return root


def kind_of(part: object) -> str:
    """What documents call an operator or an expression; one from outside goes by its class."""
    made = type(part)
    known = _KINDS.get(made)
    return f"{made.__module__}.{made.__qualname__}" if known is None else known
