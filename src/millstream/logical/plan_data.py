"""Logical plans as data, for files and other processes; plan text is for people.

`plan_of(plan_data(plan)) == plan`. See `model.structures` for the form of a document.
"""

from __future__ import annotations

from typing import Any

from millstream.logical import expressions, plan
from millstream.model.structures import Structures

EXPRESSION_KINDS: dict[str, type] = {
    "column": expressions.Column,
    "outer column": expressions.OuterColumn,
    "literal": expressions.Literal,
    "cast": expressions.Cast,
    "call": expressions.Call,
    "aggregate call": expressions.AggregateCall,
}

PLAN_KINDS: dict[str, type[plan.Plan]] = {
    "source": plan.Source,
    "filter": plan.Filter,
    "map": plan.Map,
    "join": plan.Join,
    "union": plan.Union,
    "max-union": plan.MaxUnion,
    "difference": plan.Difference,
    "strict difference": plan.StrictDifference,
    "intersection": plan.Intersection,
    "distinct": plan.Distinct,
    "aggregate": plan.Aggregate,
    "top-n": plan.TopN,
    "time window": plan.TimeWindow,
    "count window": plan.CountWindow,
    "partitioned window": plan.PartitionedWindow,
    "granularity": plan.Granularity,
    "istream": plan.Istream,
    "dstream": plan.Dstream,
    "rstream": plan.Rstream,
}

_PLANS = Structures(plan.Plan, PLAN_KINDS, EXPRESSION_KINDS)


def plan_data(root: plan.Plan) -> dict[str, Any]:
    return _PLANS.to_data(root, plan.Plan)


def plan_of(data: Any) -> plan.Plan:
    """Raises StructureError if this version cannot read it."""
    root: plan.Plan = _PLANS.from_data(data, plan.Plan)
    return root
