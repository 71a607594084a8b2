"""Joins of queries in the order that the cost model finds cheapest."""

from __future__ import annotations

from random import Random

import pytest

import millstream as ms
from millstream.logical import plan as logical
from millstream.logical.plan import Plan
from millstream.logical.reference import Reference
from millstream.model.elements import Element, normal_form
from millstream.optimizer.choice import choose
from millstream.optimizer.cost import Constants, estimate
from millstream.optimizer.join_orders.by_cost import MOST, joins_of_many, reorder_joins
from millstream.optimizer.join_orders.inner_joins import InnerJoins, inner_joins
from millstream.optimizer.join_orders.plan_rates import PlanRates, weights
from millstream.optimizer.join_orders.search import cheapest
from millstream.optimizer.multi_way import multi_way
from millstream.optimizer.optimize import optimize
from millstream.optimizer.statistics import ColumnStatistics, Statistics, StreamStatistics
from millstream.papers.shed_trees import Shedding
from millstream.physical.operator import Pattern, PhysicalPlan
from millstream.physical.operators.join import Join
from millstream.physical.operators.multi_join import MultiJoin
from physical.feeding import random_elements, run
from physical.multi_join_cases import JOINS, NAMES, VALUES, failing, logical_join


def statistics(rates: dict[str, float], distinct: float = 100.0) -> Statistics:
    columns = {name: ColumnStatistics(distinct=distinct) for name in "kms"}
    return Statistics({name: StreamStatistics(rate, columns) for name, rate in rates.items()})


def random_statistics(chance: Random) -> Statistics:
    rates = {name: 10 ** chance.uniform(-2, 2) for name in NAMES}
    return statistics(rates, chance.choice([2.0, 100.0, 5_000.0]))


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_known_the_answer_is_the_same(name: str, seed: int) -> None:
    chance = Random(f"{name} {seed}")
    plan = logical_join(*JOINS[name])
    known = random_statistics(chance)
    inputs = {
        stream: normal_form(random_elements(chance, Pattern.WEAK, 8, VALUES))
        for stream in NAMES[: JOINS[name][0]]
    }
    expected = Reference(plan, inputs).result()
    ordered = reorder_joins(plan, known)
    assert ordered.schema == plan.schema
    assert Reference(ordered, inputs).result() == expected
    chosen = choose(ordered, "ELEMENTS")
    assert cost(chosen, known) <= cost(choose(plan, "ELEMENTS"), known)
    together = joins_of_many(chosen, known)
    assert cost(together, known) <= cost(chosen, known)
    assert normal_form(run(together, inputs, chance).elements) == expected


def cost(plan: PhysicalPlan, known: Statistics) -> float:
    return estimate(plan, known).cost


def bound(sql: str, rates: dict[str, float], distinct: int) -> tuple[Plan, Statistics]:
    """A query over streams whose rates and values are declared."""
    session = ms.Session(engine="local")
    for name, rate in rates.items():
        session.sql(
            f"CREATE STREAM {name} (t BIGINT, k INT, m INT) SOURCE memory('{name}') ORDERED BY t "
            f"WITH (rate = {rate}, distinct(k) = {distinct}, distinct(m) = {distinct})"
        )
    query = session.sql(sql)
    assert isinstance(query, ms.Query)
    return optimize(query.plan), session._origins.statistics(query.plan)


CHAIN = """SELECT a.t, d.m FROM A WINDOW(RANGE 100) a
JOIN B WINDOW(RANGE 100) b ON a.k = b.k
JOIN C WINDOW(RANGE 100) c ON b.m = c.m
JOIN D WINDOW(RANGE 100) d ON c.k = d.k"""


def first_joined(plan: Plan) -> set[str]:
    """The streams of the lowest join."""
    joins = [node for node in plan.walk() if isinstance(node, logical.Join)]
    return {n.stream for n in joins[-1].walk() if isinstance(n, logical.Source)}


def test_slow_streams_are_joined_first() -> None:
    plan, known = bound(CHAIN, {"A": 100, "B": 100, "C": 0.1, "D": 0.1}, 50)
    assert first_joined(plan) == {"A", "B"}
    ordered = reorder_joins(plan, known)
    assert first_joined(ordered) == {"C", "D"}
    before, after = (cost(choose(each, "ELEMENTS"), known) for each in (plan, ordered))
    assert after < before / 2


def test_what_is_well_written_stays() -> None:
    plan, known = bound(CHAIN, {"A": 0.1, "B": 0.1, "C": 10, "D": 10}, 50)
    assert first_joined(reorder_joins(plan, known)) == {"A", "B"}


def test_joins_that_can_fail_stay() -> None:
    pairs = logical_join(*JOINS["one attribute"])
    assert isinstance(pairs, logical.Join)
    plan = logical.Join(pairs.left, pairs.right, condition=failing("A.k", "C.m"))
    assert reorder_joins(plan, statistics({"A": 100.0, "B": 1.0, "C": 1.0})) is plan


def test_joins_below_other_operators_are_found() -> None:
    plan, known = bound(
        f"SELECT k, count(*) AS n FROM ({CHAIN.replace('a.t, d.m', 'a.k')}) GROUP BY k",
        {"A": 100, "B": 100, "C": 0.1, "D": 0.1},
        50,
    )
    ordered = reorder_joins(plan, known)
    assert isinstance(ordered, logical.Aggregate | logical.Map)
    assert first_joined(ordered) == {"C", "D"}


def test_a_join_of_many_has_its_best_orders() -> None:
    """New rows of each stream go to the slow one first, where few partners are."""
    plan = logical_join(*JOINS["one attribute of four"])
    known = statistics({"A": 10.0, "B": 10.0, "C": 0.001, "D": 10.0}, 20.0)
    together = joins_of_many(choose(plan, "ELEMENTS"), known)
    assert isinstance(together, MultiJoin)
    assert [order[:2] for order in together.orders] == [(0, 2), (1, 2), (2, 0), (3, 2)]


def star(count: int) -> tuple[Plan, Statistics]:
    """Streams joined with the first one, each slower than the one before."""
    names = [f"S{i}" for i in range(count)]
    joined = " ".join(
        f"JOIN {name} WINDOW(RANGE 100) {name.lower()} ON s0.k = {name.lower()}.k"
        for name in names[1:]
    )
    sql = f"SELECT s0.t FROM S0 WINDOW(RANGE 100) s0 {joined}"
    return bound(sql, {name: float(count - i) for i, name in enumerate(names)}, 1000)


@pytest.mark.parametrize("count", [10, 11, 24])
def test_many_inputs(count: int) -> None:
    """Of more than ten the order is a good one, if not the best: the slowest streams first."""
    plan, known = star(count)
    ordered = reorder_joins(plan, known)
    assert ordered.schema == plan.schema
    assert sorted(sources(ordered)) == sorted(sources(plan))
    assert f"S{count - 1}" in first_joined(ordered)
    assert f"S{count - 1}" not in first_joined(plan)
    assert cost(choose(ordered, "ELEMENTS"), known) < cost(choose(plan, "ELEMENTS"), known)


def test_joins_of_many_have_at_most_ten_inputs() -> None:
    """Their cost grows with the square of the inputs, and that of finding their orders faster."""
    plan, known = star(24)
    together = joins_of_many(choose(reorder_joins(plan, known), "ELEMENTS"), known)
    widths = [len(node.inputs) for node in nodes(together) if isinstance(node, MultiJoin)]
    assert max(widths, default=0) <= MOST


def test_pruned_plans_become_joins_of_many_too() -> None:
    """Columns that are left out between joins do not stand in the way."""
    plan, _ = star(5)
    chosen = choose(plan, "ELEMENTS")
    assert [type(node) for node in nodes(multi_way(chosen))].count(MultiJoin) == 1
    assert not any(isinstance(node, Join) for node in nodes(multi_way(chosen)))
    assert multi_way(chosen).schema == chosen.schema
    streams = sources(plan)
    rows = {name: [Element((t, t % 3, t), t, t + 1) for t in range(12)] for name in streams}
    answers = [normal_form(run(each, rows).elements) for each in (chosen, multi_way(chosen))]
    assert answers[0] == answers[1]
    assert answers[0]


def nodes(plan: PhysicalPlan) -> list[PhysicalPlan]:
    return [plan, *(node for child in plan.inputs for node in nodes(child))]


def sources(plan: Plan) -> list[str]:
    return [node.stream for node in plan.walk() if isinstance(node, logical.Source)]


def test_what_to_drop_from_a_query() -> None:
    """The graph of a plan serves both: here with a tenth of what its cheapest order takes."""
    plan, known = bound(CHAIN, {"A": 100, "B": 100, "C": 1, "D": 1}, 50)
    (joins,) = (found for node in plan.walk() if (found := whole(node)) is not None)
    graph, cost = joins.graph(PlanRates(known)), weights(Constants())
    capacity = cheapest(graph, cost, bushy=False).cost / 10
    found = Shedding(graph, cost).heuristic(capacity)
    assert found.cost == pytest.approx(capacity)
    assert min(found.shares) > 0, "windows are over time: all streams are needed"
    assert min(found.shares[:2]) < min(found.shares[2:]) == 1.0, "slow streams are kept"


def whole(node: Plan) -> InnerJoins | None:
    joins = inner_joins(node)
    return joins if joins is not None and len(joins.inputs) == 4 else None
