"""Trees of binary joins as one join of many inputs.

    Join(Join(A, B), C) = MultiJoin(A, B, C)

Conditions: inner joins only. An equality of two inputs becomes a link; any other part of a
condition is tested as soon as what it reads is bound. Parts that can fail, and those behind them,
are tested on whole rows, in their order; a join that has such parts stays as it is below others,
whose partners its errors do not wait for.
It is worse where a binary join gives few of many pairs, which the tree keeps and this finds again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import reduce
from typing import TypeAlias, TypeGuard

from millstream import types
from millstream.logical.expressions import Call, Column, Expression, conjuncts, walk
from millstream.optimizer.conditions import can_fail
from millstream.physical.join_steps import Link
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.join import AreaChoice, Join, JoinKey
from millstream.physical.operators.multi_join import MultiJoin

Arrange: TypeAlias = Callable[[MultiJoin], MultiJoin]


def multi_way(plan: PhysicalPlan, arrange: Arrange = lambda join: join) -> PhysicalPlan:
    """The plan with each tree of binary joins as one join, with the orders that `arrange` gives it.
    What is shared stays shared: a join with several consumers is not taken into another one."""
    return _Rewriter(plan, arrange).node(plan)


class _Rewriter:
    def __init__(self, plan: PhysicalPlan, arrange: Arrange) -> None:
        self._arrange = arrange
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

    def _joined(self, join: Join) -> MultiJoin | None:
        leaves = list(self._leaves(join))
        if len(leaves) < 3:
            return None
        sources = tuple(self.node(leaf) for leaf, _ in leaves)
        areas = tuple(area for _, area in leaves)
        places = {field.key: i for i, source in enumerate(sources) for field in source.schema}
        links: list[Link] = []
        conditions: list[Expression] = []
        failing: list[Expression] = []
        for part in self._parts(join):
            link = _link(part, places) if isinstance(part, JoinKey) else None
            condition = _equality(part) if isinstance(part, JoinKey) else part
            if failing or can_fail(condition):
                failing.append(condition)
            elif link is not None:
                links.append(link)
            else:
                conditions.append(condition)
        whole = reduce(_and, failing) if failing else None
        joined = MultiJoin(sources, tuple(links), tuple(conditions), whole, areas=areas)
        return self._arrange(joined)

    def _leaves(self, join: Join) -> Iterator[tuple[PhysicalPlan, AreaChoice]]:
        for side, area in zip(join.inputs, join.areas, strict=True):
            if self._is_inner(side):
                yield from self._leaves(side)
            else:
                yield side, area

    def _parts(self, join: Join) -> Iterator[JoinKey | Expression]:
        """The keys and conditions of all joins of a tree, the inner ones first."""
        for side in join.inputs:
            if self._is_inner(side):
                yield from self._parts(side)
        yield from join.keys
        yield from conjuncts(join.condition)

    def _is_inner(self, side: PhysicalPlan) -> TypeGuard[Join]:
        if not isinstance(side, Join) or self._consumers[id(side)] > 1:
            return False
        return not any(map(can_fail, conjuncts(side.condition)))


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
