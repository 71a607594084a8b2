"""Semi- and anti-joins before or after a join (update-pattern simplification, G5 §5.4.2).

    (S₁ ▷ S₃) ⋈ S₂ = (S₁ ⋈ S₂) ▷ S₃        also for ⋉, and for the right side

Conditions: the condition of ▷ reads only S₁ and S₃, the join is an inner join, and no condition can
fail. Below, ▷ leaves fewer rows to join, but retracts rows, so the join must handle retractions;
above, only the following operators must.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeGuard

from millstream.logical.expressions import conjuncts
from millstream.logical.failing import rows_can_fail
from millstream.logical.plan import Join, JoinKind, Plan
from millstream.optimizer.facts.reading import columns_of, keys_of

_CHOOSES = (JoinKind.SEMI, JoinKind.ANTI)


def negation_above_join(node: Plan) -> Iterator[Plan]:
    if not _is_inner(node):
        return
    if _chooses(node.left) and _are_apart(node.right, node.left.right):
        yield replace(node.left, left=replace(node, left=node.left.left))
    if _chooses(node.right) and _are_apart(node.left, node.right.right):
        yield replace(node.right, left=replace(node, right=node.right.left))


def negation_below_join(node: Plan) -> Iterator[Plan]:
    if not _chooses(node) or not _is_inner(node.left):
        return
    join = node.left
    read = columns_of(conjuncts(node.condition)) - keys_of(node.right.schema)
    if read <= keys_of(join.left.schema):
        yield replace(join, left=replace(node, left=join.left))
    if read <= keys_of(join.right.schema):
        yield replace(join, right=replace(node, left=join.right))


def _are_apart(one: Plan, other: Plan) -> bool:
    """Whether the columns of both have different names."""
    return not keys_of(one.schema) & keys_of(other.schema)


def _is_inner(node: Plan) -> TypeGuard[Join]:
    return isinstance(node, Join) and node.kind is JoinKind.INNER and not rows_can_fail(node)


def _chooses(node: Plan) -> TypeGuard[Join]:
    return isinstance(node, Join) and node.kind in _CHOOSES and not rows_can_fail(node)
