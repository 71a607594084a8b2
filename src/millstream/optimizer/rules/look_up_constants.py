"""Joins with constant tables move below the windows of streams (K §17.4.2).

    ω_w(S) ⋈ C = ω_w(S ⋈ C)     also left, semi and anti joins, with the stream on the left

A row then looks up its partners once, on arrival, and is not stored for the join.

Conditions: C never changes; each row of S is valid for one instant, so that only the window
determines its validity; every row enters the window, so that no additional pair is tested (errors
stay the same).
"""

from __future__ import annotations

from dataclasses import replace

from millstream.logical.analysis import lives_one_instant
from millstream.logical.plan import Join, JoinKind, Lifetime, Plan, Source, TimeWindow, is_known
from millstream.optimizer.facts.sharing import Consumers
from millstream.optimizer.rewriting import rewritten

_KEEPING_LEFT = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
_KEEPING_RIGHT = (JoinKind.INNER, JoinKind.RIGHT)


def look_up_constants(plan: Plan, consumers: Consumers) -> Plan:
    return rewritten(plan, _lowered)


def _lowered(plan: Plan) -> Plan:
    if not isinstance(plan, Join):
        return plan
    left, right = plan.left, plan.right
    if plan.kind in _KEEPING_LEFT and _is_constant(right) and _is_plain(left):
        return left.with_inputs(replace(plan, left=left.inputs[0]))
    if plan.kind in _KEEPING_RIGHT and _is_constant(left) and _is_plain(right):
        return right.with_inputs(replace(plan, right=right.inputs[0]))
    return plan


def _is_constant(plan: Plan) -> bool:
    """Whether every snapshot is the same."""
    if isinstance(plan, Source):
        return plan.lifetime is Lifetime.ALWAYS
    return is_known(plan) and all(map(_is_constant, plan.inputs))


def _is_plain(plan: Plan) -> bool:
    if not isinstance(plan, TimeWindow) or plan.minimum is not None:
        return False
    return plan.slide == 1 and plan.granule == 1 and lives_one_instant(plan.input)
