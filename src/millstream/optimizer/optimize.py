"""Rewriting of the bound logical plan: the rules, in order.

Every rule is a function `rule(plan, consumers) -> plan` in its own file. It preserves all answers
and errors and the columns of the plan. The rules are applied in turn until none changes the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from millstream.logical.plan import Plan
from millstream.logical.text import plan_text
from millstream.model.errors import QueryError
from millstream.optimizer.facts.sharing import Consumers, Nodes
from millstream.optimizer.rules.compare_with_extreme import compare_with_extreme
from millstream.optimizer.rules.connect_joins import connect_joins
from millstream.optimizer.rules.drop_distincts import drop_distincts
from millstream.optimizer.rules.drop_windows import drop_windows
from millstream.optimizer.rules.fold_constants import fold_constants
from millstream.optimizer.rules.look_up_constants import look_up_constants
from millstream.optimizer.rules.merge_maps import merge_maps
from millstream.optimizer.rules.prune_columns import prune_columns
from millstream.optimizer.rules.push_filters import push_filters
from millstream.optimizer.rules.push_granularities import push_granularities
from millstream.optimizer.rules.share_renamed import share_renamed
from millstream.optimizer.rules.simplify_outer_joins import simplify_outer_joins
from millstream.optimizer.rules.spread_emptiness import spread_emptiness

Rule: TypeAlias = Callable[[Plan, Consumers], Plan]

RULES: tuple[Rule, ...] = (
    fold_constants,  # first, since it reveals what can fail and what is FALSE
    simplify_outer_joins,  # before filters move away from the joins that they simplify
    push_granularities,
    push_filters,
    connect_joins,  # after conditions are in their joins
    look_up_constants,  # after filters are below windows
    spread_emptiness,
    compare_with_extreme,  # after empty inputs are known
    drop_windows,
    drop_distincts,
    merge_maps,
    share_renamed,  # after filters are in place, and before pruning makes columns differ
    prune_columns,  # last, since the others remove consumers of columns
)


def optimize(plan: Plan, rules: tuple[Rule, ...] = RULES) -> Plan:
    for _, changed in steps(plan, rules):
        plan = changed
    return plan


def steps(plan: Plan, rules: tuple[Rule, ...] = RULES) -> Iterator[tuple[str, Plan]]:
    """The name of each rule that changes the plan, with the resulting plan."""
    nodes = Nodes()
    plan = nodes.plan(plan)
    seen: list[Plan] = []
    while not seen or seen[-1] is not plan:
        if any(plan is before for before in seen):
            raise _unsettled(seen[-1], plan)
        seen.append(plan)
        for rule in rules:
            changed = nodes.plan(rule(plan, Consumers(plan)))
            if changed is not plan:
                assert _columns(changed) == _columns(plan), rule.__name__
                yield rule.__name__, changed
                plan = changed


def _columns(plan: Plan) -> list[tuple[object, ...]]:
    return [(*field.key, field.type) for field in plan.schema]


def _unsettled(one: Plan, other: Plan) -> QueryError:
    return QueryError(
        "the rules of the optimizer do not settle; they alternate between\n"
        f"{plan_text(one)}\nand\n{plan_text(other)}",
        help="use Session(optimize=False), and report this as a bug",
    )
