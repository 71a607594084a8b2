"""Trees of inner joins in logical plans, put together in another order."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from millstream.logical import plan as logical
from millstream.logical.expressions import Call, Expression, Literal
from millstream.logical.plan import JoinKind, Lifetime, Plan
from millstream.logical.reference import Reference
from millstream.logical.text import plan_text
from millstream.model import types
from millstream.model.elements import normal_form
from millstream.model.time import RAW_TIME
from millstream.optimizer.join_orders.inner_joins import InnerJoins, inner_joins
from millstream.optimizer.join_orders.search import cheapest
from millstream.optimizer.join_orders.trees import Tree
from millstream.papers.join_trees import PerElement, all_trees
from millstream.physical.operator import Pattern
from physical.feeding import random_elements
from physical.multi_join_cases import (
    JOINS,
    NAMES,
    VALUES,
    column,
    compared,
    failing,
    logical_join,
    schema_of,
)


def taken_apart(plan: Plan) -> InnerJoins:
    joins = inner_joins(plan)
    assert joins is not None
    return joins


def source(name: str) -> logical.Source:
    return logical.Source(name, name, schema_of(name), RAW_TIME, Lifetime.INTERVAL)


@pytest.mark.parametrize("name", JOINS)
def test_any_order_means_the_same(name: str) -> None:
    chance = Random(name)
    plan = logical_join(*JOINS[name])
    joins = taken_apart(plan)
    inputs = {
        stream: normal_form(random_elements(chance, Pattern.WEAK, 8, VALUES))
        for stream in NAMES[: len(joins.inputs)]
    }
    expected = Reference(plan, inputs).result()
    for tree in all_trees((1 << len(joins.inputs)) - 1, bushy=True):
        for each in (tree, mirrored(tree)):
            ordered = joins.plan(each)
            assert ordered.schema == plan.schema
            assert Reference(ordered, inputs).result() == expected, plan_text(ordered)


def mirrored(tree: Tree) -> Tree:
    return tree if isinstance(tree, int) else (mirrored(tree[1]), mirrored(tree[0]))


def test_conditions_stand_where_they_can_first_be_told() -> None:
    """An equality that follows from others joins inputs that have none of their own."""
    pairs = logical.Join(source("A"), source("B"), JoinKind.INNER, compared("A.k", "=", "B.k"))
    positive = Call("<", (Literal(0, types.BIGINT), column(2, "m")), types.BOOLEAN)
    last = Call(
        "and", (Call("and", (compared("B.k", "=", "C.k"), positive), types.BOOLEAN),
                compared("A.m", "<", "B.m")), types.BOOLEAN
    )  # fmt: skip
    joins = taken_apart(logical.Join(pairs, source("C"), JoinKind.INNER, last))
    assert joined_by(joins.plan(((0, 2), 1))) == [
        ["A.k = C.k"],
        ["A.k = B.k", "A.m < B.m"],
    ]
    assert joined_by(joins.plan((0, (1, 2)))) == [["B.k = C.k"], ["A.k = B.k", "A.m < B.m"]]
    (filtered,) = (n for n in joins.plan(((0, 2), 1)).walk() if isinstance(n, logical.Filter))
    assert filtered.input == source("C")
    assert isinstance(joins.plan(((0, 2), 1)), logical.Map), "columns are in their order"
    assert isinstance(joins.plan(((0, 1), 2)), logical.Join)


def joined_by(plan: Plan) -> list[list[str]]:
    """The conditions of the joins of a plan, lower ones first."""
    found = [node.condition for node in plan.walk() if isinstance(node, logical.Join)]
    return [[shown(part) for part in parts_of(each)] for each in reversed(found)]


def parts_of(condition: Expression | None) -> list[Expression]:
    if isinstance(condition, Call) and condition.function == "and":
        return [part for each in condition.arguments for part in parts_of(each)]
    return [] if condition is None else [condition]


def shown(part: Expression) -> str:
    assert isinstance(part, Call)
    left, right = part.arguments
    return f"{left.qualifier}.{left.name} {part.function} {right.qualifier}.{right.name}"  # type: ignore[union-attr]


def test_filters_between_joins_are_conditions() -> None:
    pairs = logical.Join(source("A"), source("B"))
    filtered = logical.Filter(pairs, compared("A.k", "=", "B.k"))
    joins = taken_apart(logical.Join(filtered, source("C")))
    assert len(joins.inputs) == 3
    assert joins.conditions == (compared("A.k", "=", "B.k"),)


def test_what_can_fail_forbids_another_order() -> None:
    pairs = logical.Join(source("A"), source("B"), JoinKind.INNER, failing("A.k", "B.m"))
    assert inner_joins(logical.Join(pairs, source("C"))) is None
    assert inner_joins(source("A")) is None


def test_other_joins_are_inputs() -> None:
    outer = logical.Join(source("A"), source("B"), JoinKind.LEFT, compared("A.k", "=", "B.k"))
    joins = taken_apart(
        logical.Join(outer, source("C"), JoinKind.INNER, compared("B.k", "=", "C.k"))
    )
    assert joins.inputs == (outer, source("C"))


class Known:
    """Estimates by the names of streams."""

    def __init__(self, rates: dict[str, float], distinct: float = 10.0) -> None:
        self._rates, self._distinct = rates, distinct

    def rate(self, plan: Plan) -> float:
        (stream,) = (node.stream for node in plan.walk() if isinstance(node, logical.Source))
        return self._rates[stream]

    def size(self, plan: Plan) -> float:
        return 10 * self.rate(plan)

    def distinct(self, plan: Plan, expression: Expression) -> float:
        return self._distinct

    def selectivity(self, inputs: Sequence[Plan], condition: Expression) -> float:
        return 0.5


def test_the_graph_of_a_plan() -> None:
    pairs = logical.Join(source("A"), source("B"), JoinKind.INNER, compared("A.k", "=", "B.k"))
    rows = logical.CountWindow(source("C"), 5, (column(2, "k"),))
    last = Call("and", (compared("B.k", "=", "C.k"), compared("A.m", "<", "C.m")), types.BOOLEAN)
    joins = taken_apart(logical.Join(pairs, rows, JoinKind.INNER, last))
    graph = joins.graph(Known({"A": 1.0, "B": 5.0, "C": 100.0}))
    assert [each.rate for each in graph.inputs] == [1.0, 5.0, 100.0]
    assert [each.by_rows for each in graph.inputs] == [False, False, True]
    (equal,) = graph.equalities
    assert equal.distinct == ((0, 10.0), (1, 10.0), (2, 10.0))
    (predicate,) = graph.predicates
    assert (predicate.inputs, predicate.selectivity) == (0b101, 0.5)


def test_slow_streams_are_joined_first() -> None:
    plan = logical_join(*JOINS["one attribute"])
    joins = taken_apart(plan)
    graph = joins.graph(Known({"A": 100.0, "B": 1.0, "C": 1.0}))
    best = cheapest(graph, PerElement(1.0))
    assert joined_by(joins.plan(best.tree))[0] == ["B.k = C.k"]
