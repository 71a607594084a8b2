"""Inner joins in another order (K 10.4).

    S₁ ⋈ S₂ = π(S₂ ⋈ S₁)        (S₁ ⋈ S₂) ⋈ S₃ = S₁ ⋈ (S₂ ⋈ S₃)

Conditions: no condition can fail. Each part of the conditions moves to the first join that has all
columns that it reads. `join_orders` finds the best tree of many joins; these are single steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from millstream.logical.expressions import conjunction, conjuncts
from millstream.logical.failing import rows_can_fail
from millstream.logical.plan import Join, JoinKind, Map, Plan
from millstream.optimizer.facts.reading import columns_of, keys_of
from millstream.optimizer.rewriting import as_they_are


def commute_join(node: Plan) -> Iterator[Plan]:
    if _is_inner(node):
        other = Join(node.right, node.left, JoinKind.INNER, node.condition)
        yield Map(other, as_they_are(node.schema))


def associate_joins(node: Plan) -> Iterator[Plan]:
    if not _is_inner(node) or not _is_inner(node.left):
        return
    first, second, third = node.left.left, node.left.right, node.right
    parts = conjuncts(node.left.condition) + conjuncts(node.condition)
    keys = keys_of(second.schema) | keys_of(third.schema)
    inner = [part for part in parts if columns_of([part]) <= keys]
    if inner:  # to avoid a product
        rest = conjunction([part for part in parts if part not in inner])
        yield Join(first, Join(second, third, JoinKind.INNER, conjunction(inner)), condition=rest)


def _is_inner(node: Plan) -> TypeGuard[Join]:
    return isinstance(node, Join) and node.kind is JoinKind.INNER and not rows_can_fail(node)
