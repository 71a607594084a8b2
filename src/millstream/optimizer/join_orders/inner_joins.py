"""Trees of inner joins in a logical plan, decomposed and rebuilt in another order.

    Join(Join(A, B), C) = Map(Join(Join(C, A), B))

Conditions: inner joins, with filters and maps between them that only select columns; none of the
conditions can fail (one that can would fail on other rows in another order). Every condition is
placed as soon as its columns are available. Connected equalities form one class: a = b and b = c
imply a = c, so A may be joined with C first; each join then has one equality per class on both its
sides. Fields keep their names, so a map restores their order. Other rules drop columns that are no
longer read.
It is worse if the cost estimates are far off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from millstream.logical.expression_facts import can_fail
from millstream.logical.expressions import (
    Call,
    Column,
    Expression,
    conjunction,
    conjuncts,
    walk,
)
from millstream.logical.plan import (
    CountWindow,
    Filter,
    Join,
    JoinKind,
    Map,
    Named,
    PartitionedWindow,
    Plan,
    Schema,
)
from millstream.model import types
from millstream.optimizer.join_graph import (
    Equality,
    JoinGraph,
    JoinInput,
    Predicate,
    mask_of,
    members,
)
from millstream.optimizer.join_orders.trees import Tree, inputs_of
from millstream.physical.joins.steps import EqualityClass, Link, equality_classes
from millstream.physical.operators.join import JoinKey


class RateEstimates(Protocol):
    """Estimates of logical plans."""

    def rate(self, plan: Plan) -> float: ...
    def size(self, plan: Plan) -> float: ...
    def distinct(self, plan: Plan, expression: Expression) -> float: ...
    def selectivity(self, inputs: Sequence[Plan], condition: Expression) -> float: ...


@dataclass(frozen=True)
class InnerJoins:
    """The inputs of a tree of inner joins from left to right, all parts of its conditions, its
    output columns, and the tree as written: `products` of its joins have no condition."""

    inputs: tuple[Plan, ...]
    conditions: tuple[Expression, ...]
    schema: Schema
    written: Tree
    products: int

    @cached_property
    def _places(self) -> dict[tuple[str, str], int]:
        return {field.key: i for i, input in enumerate(self.inputs) for field in input.schema}

    def with_inputs(self, inputs: Iterable[Plan]) -> InnerJoins:
        """The same tree over other inputs with the same columns."""
        return replace(self, inputs=tuple(inputs))

    def reads(self, condition: Expression) -> int:
        columns = (part.key for part in walk(condition) if isinstance(part, Column))
        return mask_of([*{self._places[key] for key in columns}])

    @cached_property
    def _links(self) -> dict[Expression, Link]:
        links: dict[Expression, Link] = {}
        for condition in self.conditions:
            if isinstance(condition, Call) and condition.function in ("=", "<=>"):
                left, right = condition.arguments
                ports = [members(self.reads(side)) for side in (left, right)]
                if len(ports[0]) == len(ports[1]) == 1 and ports[0] != ports[1]:
                    key = JoinKey(left, right, condition.function == "<=>")
                    links[condition] = Link(ports[0][0], ports[1][0], key)
        return links

    @cached_property
    def classes(self) -> tuple[EqualityClass, ...]:
        return equality_classes(tuple(self._links.values()))

    @cached_property
    def others(self) -> tuple[Expression, ...]:
        """The conditions that are not equalities of two inputs."""
        return tuple(c for c in self.conditions if c not in self._links)

    def graph(self, known: RateEstimates) -> JoinGraph:
        inputs = []
        for number, plan in enumerate(self.inputs):
            by_rows = any(isinstance(n, CountWindow | PartitionedWindow) for n in plan.walk())
            inputs.append(JoinInput(f"{number + 1}", known.rate(plan), known.size(plan), by_rows))
        equalities = (
            Equality(
                tuple(
                    (port, max(1.0, *(known.distinct(plan, each) for each in equal.of(port))))
                    for port, plan in enumerate(self.inputs)
                    if equal.of(port)
                )
            )
            for equal in self.classes
        )
        predicates = (
            Predicate(self.reads(c), known.selectivity(self.inputs, c)) for c in self.others
        )
        return JoinGraph(tuple(inputs), tuple(equalities), tuple(predicates))

    # --- rebuilding ------------------------------------------------------------------------------

    def plan(self, tree: Tree) -> Plan:
        """The joins in another order, with the columns in the original order."""
        joined = self._joined(tree)
        if joined.schema == self.schema:
            return joined
        return Map(joined, tuple(Named(f.column, f.name, f.qualifier) for f in self.schema))

    def _joined(self, tree: Tree) -> Plan:
        if isinstance(tree, int):
            own = [c for c in self.others if self.reads(c) == 1 << tree]
            own += self._same(tree)
            condition = conjunction(own)
            input = self.inputs[tree]
            return input if condition is None else Filter(input, condition)
        left, right = (inputs_of(side) for side in tree)
        parts = [*self._equalities(left, right), *self._told(left, right)]
        one, other = (self._joined(side) for side in tree)
        return Join(one, other, JoinKind.INNER, conjunction(parts))

    def _same(self, port: int) -> list[Expression]:
        """The conditions on one input that follow from several of its expressions in a class."""
        found: list[Expression] = []
        for equal in self.classes:
            first, *rest = equal.of(port) or (None,)
            if first is not None:
                found += [_equality(first, other, equal.null_matches) for other in rest]
        return found

    def _equalities(self, left: int, right: int) -> list[Expression]:
        found = []
        for equal in self.classes:
            sides = [
                next((e for port, e in equal.members if side >> port & 1), None)
                for side in (left, right)
            ]
            if sides[0] is not None and sides[1] is not None:
                found.append(_equality(sides[0], sides[1], equal.null_matches))
        return found

    def _told(self, left: int, right: int) -> list[Expression]:
        """Other conditions that can be tested on pairs, but not on one side; conditions without
        columns are tested where the first input is joined."""
        found = []
        for condition in self.others:
            reads = self.reads(condition)
            nothing = not reads and (left == 1 or right == 1)
            if nothing or (not reads & ~(left | right) and reads & ~left and reads & ~right):
                found.append(condition)
        return found


def _equality(left: Expression, right: Expression, null_matches: bool) -> Expression:
    return Call("<=>" if null_matches else "=", (left, right), types.BOOLEAN)


def inner_joins(
    plan: Plan, is_input: Callable[[Plan], bool] = lambda node: False
) -> InnerJoins | None:
    """The tree of inner joins of a plan, unless its conditions forbid another order. Joins below
    the topmost one for which `is_input` is true stay whole."""
    if not isinstance(plan, Join):
        return None
    inputs: list[Plan] = []
    conditions: list[Expression] = []

    products = 0

    def take_apart(part: Plan) -> Tree:
        nonlocal products
        match part:
            case Join(kind=JoinKind.INNER) if part is plan or not is_input(part):
                sides = take_apart(part.left), take_apart(part.right)
                conditions.extend(conjuncts(part.condition))
                products += part.condition is None
                return sides
            case Filter() if _is_joined(part) and not is_input(part):
                tree = take_apart(part.input)
                conditions.extend(conjuncts(part.predicate))
                return tree
            case Map() if _is_joined(part) and not is_input(part):
                return take_apart(part.input)
        inputs.append(part)
        return len(inputs) - 1

    written = take_apart(plan)
    if any(map(can_fail, conditions)):
        return None
    parts = tuple(dict.fromkeys(conditions))
    return InnerJoins(tuple(inputs), parts, plan.schema, written, products)


def _is_joined(plan: Plan) -> bool:
    """Whether it is an inner join, possibly below filters and maps that only select columns."""
    match plan:
        case Filter():
            return _is_joined(plan.input)
        case Map(outputs=outputs):
            kept = (
                isinstance(o.expression, Column) and o.expression.key == o.field.key
                for o in outputs
            )
            return _is_joined(plan.input) and all(kept)
    return isinstance(plan, Join) and plan.kind is JoinKind.INNER
