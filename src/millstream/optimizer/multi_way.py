"""Trees of binary joins as one multi-way join.

    Join(Join(A, B), C) = MultiJoin(A, B, C)

Conditions: inner joins only, and between them maps that only select columns, unless the errors of
failing rows would show that the maps are gone. An equality of two inputs becomes a link; any other
part of a condition is tested as soon as its inputs are bound. Parts that can fail, and those after
them, are tested on whole rows, in their order. A join with such parts is not merged into joins
above it, because its errors do not depend on their partners. It is worse if a binary join is
selective: the tree stores its few results, this recomputes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from millstream.logical.expression_facts import can_fail
from millstream.logical.expressions import Call, Column, Expression, conjuncts, walk
from millstream.logical.plan import Named
from millstream.model import types
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.joins.steps import Link
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.join import Join, JoinKey
from millstream.physical.operators.map import Map
from millstream.physical.operators.multi_join import MultiJoin

Arrange: TypeAlias = Callable[[MultiJoin], MultiJoin]


def multi_way(
    plan: PhysicalPlan, arrange: Arrange = lambda join: join, most: int | None = None
) -> PhysicalPlan:
    """The plan with each tree of binary joins as one join, with orders from `arrange`. Sharing is
    kept: a join with several consumers is not merged into another one. The topmost joins of a tree
    with more than `most` inputs stay binary."""
    return _Rewriter(plan, arrange, most).node(plan)


class _Rewriter:
    def __init__(self, plan: PhysicalPlan, arrange: Arrange, most: int | None) -> None:
        self._arrange, self._most = arrange, most
        self._done: dict[int, PhysicalPlan] = {}
        self._consumers: Counter[int] = Counter()
        self._count(plan)

    def _count(self, node: PhysicalPlan) -> None:
        self._consumers[id(node)] += 1
        if self._consumers[id(node)] == 1:
            for child in node.inputs:
                self._count(child)

    def node(self, node: PhysicalPlan) -> PhysicalPlan:
        if id(node) not in self._done:
            joined = self._joined(node) if isinstance(node, Join) else None
            self._done[id(node)] = joined or node.with_inputs(
                [self.node(child) for child in node.inputs]
            )
        return self._done[id(node)]

    def _joined(self, join: Join) -> PhysicalPlan | None:
        tree = list(self._tree(join, not any(map(can_fail, conjuncts(join.condition)))))
        leaves = [leaf for each in tree for leaf in each.leaves]
        if len(leaves) < 3 or (self._most is not None and len(leaves) > self._most):
            return None
        sources = tuple(self.node(leaf) for leaf, _ in leaves)
        areas = tuple(area for _, area in leaves)
        places = {field.key: i for i, source in enumerate(sources) for field in source.schema}
        links: list[Link] = []
        conditions: list[Expression] = []
        failing: list[Expression] = []
        for part in (part for each in tree for part in each.parts):
            link = _link(part, places) if isinstance(part, JoinKey) else None
            condition = _equality(part) if isinstance(part, JoinKey) else part
            if failing or can_fail(condition):
                failing.append(condition)
            elif link is not None:
                links.append(link)
            else:
                conditions.append(condition)
        whole = reduce(_and, failing) if failing else None
        joined = self._arrange(
            MultiJoin(sources, tuple(links), tuple(conditions), whole, areas=areas)
        )
        if joined.schema == join.schema:
            return joined
        return Map(joined, tuple(Named(f.column, f.name, f.qualifier) for f in join.schema))

    def _tree(self, join: Join, through_maps: bool) -> Iterator[_Part]:
        """The inputs from left to right, and the keys and conditions of all joins, the inner ones
        first."""
        for side, area in zip(join.inputs, join.areas, strict=True):
            inner = self._inner(side, through_maps)
            if inner is None:
                yield _Part(leaves=[(side, area)])
            else:
                yield from self._tree(inner, through_maps)
        yield _Part(parts=[*join.keys, *conjuncts(join.condition)])

    def _inner(self, side: PhysicalPlan, through_maps: bool) -> Join | None:
        """The join at an input, if it may be merged into another one."""
        if self._consumers[id(side)] > 1:
            return None
        if isinstance(side, Map) and through_maps and chooses_columns(side):
            return self._inner(side.input, through_maps)
        if not isinstance(side, Join) or any(map(can_fail, conjuncts(side.condition))):
            return None
        return side


@dataclass(frozen=True)
class _Part:
    """A part of a tree of joins."""

    leaves: Sequence[tuple[PhysicalPlan, AreaChoice]] = ()
    parts: Sequence[JoinKey | Expression] = ()


def chooses_columns(plan: Map) -> bool:
    """Whether a map only drops or reorders columns."""
    return all(
        isinstance(output.expression, Column) and output.expression.key == output.field.key
        for output in plan.outputs
    )


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
