"""Outer joins whose padded rows are filtered out become inner joins.

    σ_p(S₁ ⟕ S₂) = σ_p(S₁ ⋈ S₂)     where p is not TRUE if all columns of S₂ are NULL

The same applies to the other side, and a full join becomes a left, a right or an inner join.

Conditions: p cannot fail, since padded rows might fail. The join's own condition may fail, since it
is evaluated on the same pairs as before.
"""

from __future__ import annotations

from dataclasses import replace

from millstream.logical.expression_facts import can_fail
from millstream.logical.expressions import Expression, Literal, conjuncts
from millstream.logical.plan import Filter, Join, JoinKind, Plan, Schema
from millstream.optimizer.facts.reading import Key, substituted
from millstream.optimizer.facts.sharing import Consumers
from millstream.optimizer.rewriting import rewritten
from millstream.optimizer.rules.fold_constants import folded


def simplify_outer_joins(plan: Plan, consumers: Consumers) -> Plan:
    def change(node: Plan) -> Plan:
        if not isinstance(node, Filter) or not isinstance(node.input, Join):
            return node
        if can_fail(node.predicate) or consumers.share_work(node.input):
            return node
        kind = _kind(node.input, node.predicate)
        return (
            node if kind is node.input.kind else replace(node, input=replace(node.input, kind=kind))
        )

    return rewritten(plan, change)


def _kind(join: Join, predicate: Expression) -> JoinKind:
    """The kind of join that remains of an outer join under a filter."""
    pads_right = join.kind in (JoinKind.LEFT, JoinKind.FULL)
    pads_left = join.kind in (JoinKind.RIGHT, JoinKind.FULL)
    if not (pads_left or pads_right):
        return join.kind
    left = pads_left and not _rejects_nulls(predicate, join.left.schema)
    right = pads_right and not _rejects_nulls(predicate, join.right.schema)
    return {
        (True, True): JoinKind.FULL,
        (False, True): JoinKind.LEFT,
        (True, False): JoinKind.RIGHT,
        (False, False): JoinKind.INNER,
    }[left, right]


def _rejects_nulls(predicate: Expression, schema: Schema) -> bool:
    nothing: dict[Key, Expression] = {f.key: Literal(None, f.type) for f in schema}
    values = (folded(substituted(part, nothing)) for part in conjuncts(predicate))
    return any(isinstance(value, Literal) and value.value is not True for value in values)
