"""Equivalent plans, of which none is the best for all streams.

Each rule is a function of a node that returns other plans with the same answer, errors and columns.
The cost model chooses among them, and the chosen plan goes through `optimize` again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from millstream.logical.plan import Plan
from millstream.optimizer.facts.sharing import Nodes, in_order
from millstream.optimizer.rewriting import rewritten
from millstream.optimizer.rules.alternatives.aggregate_below_join import aggregate_below_join
from millstream.optimizer.rules.alternatives.distinct_and_join import (
    distinct_above_join,
    distinct_below_join,
)
from millstream.optimizer.rules.alternatives.map_and_window import map_below_window
from millstream.optimizer.rules.alternatives.negation_and_join import (
    negation_above_join,
    negation_below_join,
)
from millstream.optimizer.rules.alternatives.reorder_joins import associate_joins, commute_join
from millstream.optimizer.rules.alternatives.union_and_window import (
    window_above_union,
    window_below_union,
)

AlternativeRule: TypeAlias = Callable[[Plan], Iterator[Plan]]

ALTERNATIVES: tuple[AlternativeRule, ...] = (
    aggregate_below_join,
    distinct_above_join,
    distinct_below_join,
    negation_above_join,
    negation_below_join,
    window_above_union,
    window_below_union,
    map_below_window,
    commute_join,
    associate_joins,
)


def alternatives(
    plan: Plan, rules: tuple[AlternativeRule, ...] = ALTERNATIVES
) -> Iterator[tuple[str, Plan]]:
    """The plans that are one step away from this one, without duplicates, each with its rule."""
    nodes = Nodes()
    plan = nodes.plan(plan)
    seen = {id(plan)}
    for node in in_order(plan):
        for rule in rules:
            for other in rule(node):
                changed = nodes.plan(_replaced(plan, node, other))
                if id(changed) not in seen:
                    seen.add(id(changed))
                    yield rule.__name__, changed


def _replaced(plan: Plan, old: Plan, new: Plan) -> Plan:
    """The plan with `new` in place of `old`."""
    if plan is old:
        return new
    return rewritten(plan, lambda node: new if node is old else node)
