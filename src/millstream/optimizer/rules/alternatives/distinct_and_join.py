"""DISTINCT before or after a join (K 10.6, G5 §5.4.2).

    δ(S₁ ⋈ S₂) = δ(S₁) ⋈ δ(S₂)        δ(π(S₁ ⋈ S₂)) = δ(π(δ(S₁) ⋈ δ(S₂)))

Conditions: inner joins; neither their condition nor π can fail, and both are the same for equal
values. Before the join DISTINCT is cheap (its input is a window, whose rows expire in order) and
reduces the inputs of the join; after it there is one instead of two, which is better if there are
few equal rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millstream.logical.expression_facts import tells_equals_apart
from millstream.logical.failing import evaluated, rows_can_fail
from millstream.logical.plan import Distinct, Join, JoinKind, Map, Plan


def distinct_below_join(node: Plan) -> Iterator[Plan]:
    match node:
        case Distinct(input=Join() as join) if _fits(join):
            yield _of_distinct(join)
        case Distinct(input=Map(input=Join() as join) as chosen) if _fits(join):
            if _is_steady(chosen):
                yield Distinct(replace(chosen, input=_of_distinct(join)))


def distinct_above_join(node: Plan) -> Iterator[Plan]:
    match node:
        case Join(left=Distinct(input=left), right=Distinct(input=right)) if _fits(node):
            yield Distinct(replace(node, left=left, right=right))


def _of_distinct(join: Join) -> Join:
    left, right = (s if isinstance(s, Distinct) else Distinct(s) for s in join.inputs)
    return replace(join, left=left, right=right)


def _fits(join: Join) -> bool:
    return join.kind is JoinKind.INNER and _is_steady(join)


def _is_steady(node: Plan) -> bool:
    """Whether it cannot fail, and is the same for equal rows."""
    return not rows_can_fail(node) and not any(map(tells_equals_apart, evaluated(node)))
