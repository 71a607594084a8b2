"""Trees of binary joins as one join of many inputs.

    Join(Join(A, B), C) = MultiJoin(A, B, C)

Conditions: inner joins only. An equality of two inputs becomes a link; any other part of a
condition is tested as soon as what it reads is bound if it cannot fail, and on whole rows if it
can. A part that can fail is then evaluated for fewer rows than in the tree: rows that other parts
leave out cause no errors.
It is worse where a binary join gives few of many pairs, which the tree keeps and this finds again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import reduce
from typing import TypeVar

from millstream import types
from millstream.logical.expressions import Call, Column, Expression, walk
from millstream.optimizer.conditions import can_fail, conjuncts
from millstream.physical.join_steps import Link
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.join import AreaChoice, Join, JoinKey
from millstream.physical.operators.multi_join import MultiJoin

Value = TypeVar("Value")


def multi_way(plan: PhysicalPlan) -> PhysicalPlan:
    """The plan with each tree of binary joins as one join; what is shared stays shared."""
    done: dict[int, PhysicalPlan] = {}

    def rewritten(node: PhysicalPlan) -> PhysicalPlan:
        if id(node) not in done:
            done[id(node)] = _joined(node, rewritten) or _with_inputs(node, rewritten)
        return done[id(node)]

    return rewritten(plan)


def _with_inputs(
    node: PhysicalPlan, rewritten: Callable[[PhysicalPlan], PhysicalPlan]
) -> PhysicalPlan:
    changed = {}
    for field in fields(node):  # type: ignore[arg-type]
        value = getattr(node, field.name)
        new = _mapped(value, rewritten)
        if new is not value:
            changed[field.name] = new
    return replace(node, **changed) if changed else node  # type: ignore[type-var]


def _mapped(value: Value, rewritten: Callable[[PhysicalPlan], PhysicalPlan]) -> Value:
    if isinstance(value, PhysicalPlan):
        return rewritten(value)  # type: ignore[return-value]
    if isinstance(value, tuple) and value and isinstance(value[0], PhysicalPlan):
        new = tuple(map(rewritten, value))
        unchanged = all(a is b for a, b in zip(new, value, strict=True))
        return value if unchanged else new  # type: ignore[return-value]
    return value


def _joined(
    node: PhysicalPlan, rewritten: Callable[[PhysicalPlan], PhysicalPlan]
) -> MultiJoin | None:
    if not isinstance(node, Join):
        return None
    leaves = list(_leaves(node))
    if len(leaves) < 3:
        return None
    sources = tuple(rewritten(leaf) for leaf, _ in leaves)
    areas = tuple(area for _, area in leaves)
    places = {field.key: i for i, source in enumerate(sources) for field in source.schema}
    links: list[Link] = []
    conditions: list[Expression] = []
    failing: list[Expression] = []
    for part in _parts(node):
        link = _link(part, places) if isinstance(part, JoinKey) else None
        condition = _equality(part) if isinstance(part, JoinKey) else part
        if link is not None:
            links.append(link)
        else:
            (failing if can_fail(condition) else conditions).append(condition)
    whole = reduce(_and, failing) if failing else None
    return MultiJoin(sources, tuple(links), tuple(conditions), whole, areas=areas)


def _leaves(join: Join) -> Iterator[tuple[PhysicalPlan, AreaChoice]]:
    for side, area in zip(join.inputs, join.areas, strict=True):
        if isinstance(side, Join):
            yield from _leaves(side)
        else:
            yield side, area


def _parts(join: Join) -> Iterator[JoinKey | Expression]:
    """The keys and conditions of all joins of a tree, the inner ones first."""
    for side in join.inputs:
        if isinstance(side, Join):
            yield from _parts(side)
    yield from join.keys
    yield from conjuncts(join.condition)


def _link(key: JoinKey, places: dict[tuple[str, str], int]) -> Link | None:
    """The inputs that an equality links, if each side of it reads one."""
    left, right = ({places[c.key] for c in _columns(e)} for e in (key.left, key.right))
    if len(left) != 1 or len(right) != 1:
        return None
    return Link(left.pop(), right.pop(), key)


def _columns(expression: Expression) -> list[Column]:
    return [part for part in walk(expression) if isinstance(part, Column)]


def _equality(key: JoinKey) -> Expression:
    function = "<=>" if key.null_matches else "="
    return Call(function, (key.left, key.right), types.BOOLEAN)


def _and(left: Expression, right: Expression) -> Expression:
    return Call("and", (left, right), types.BOOLEAN)
