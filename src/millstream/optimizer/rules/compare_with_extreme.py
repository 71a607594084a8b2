"""A semi-join on a comparison compares with one value of its right input instead of all.

    S₁ ⋉_x<y S₂ = S₁ ⋉_x<m γ_max(y)→m(S₂)        and so for ▷ and ≤; with min for > and ≥

Some y is greater than x if and only if the greatest y is. Over no rows, and over NULLs alone, m is
NULL, so it is not greater than anything.

Conditions: the condition is one comparison of a value of the left with one of the right, which
reads one column; neither can fail. The right input may have several rows. It is better if there are
several; if there is only one, which is not known, it costs an aggregate.
"""

from __future__ import annotations

from dataclasses import replace

from millstream.logical.expression_facts import can_fail
from millstream.logical.expressions import AggregateCall, Call, Column, walk
from millstream.logical.plan import Aggregate, Join, JoinKind, Named, Plan
from millstream.logical.uniqueness import at_most_one_row
from millstream.model import types
from millstream.optimizer.facts.sharing import Consumers
from millstream.optimizer.rewriting import rewritten
from millstream.optimizer.rules.spread_emptiness import is_empty
from millstream.physical.operators.threshold_semi_join import compared


def compare_with_extreme(plan: Plan, consumers: Consumers) -> Plan:
    return rewritten(plan, _compared)


def _compared(node: Plan) -> Plan:
    if not isinstance(node, Join) or node.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        return node
    parts = compared(node.condition, node.left.schema, node.right.schema)
    if parts is None or at_most_one_row(node.right) or is_empty(node.right):
        return node
    value, comparison, other = parts
    columns = {part.key: part for part in walk(other) if isinstance(part, Column)}
    if can_fail(value) or can_fail(other) or len(columns) != 1:
        return node
    (column,) = columns.values()
    extreme = AggregateCall("max" if comparison in ("<", "<=") else "min", (other,), other.type)
    named = Named(extreme, column.name, column.qualifier)
    condition = Call(comparison, (value, named.field.column), types.BOOLEAN)
    return replace(node, right=Aggregate(node.right, (), (named,)), condition=condition)
