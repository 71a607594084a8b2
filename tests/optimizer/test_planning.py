"""What is chosen by cost in queries: only where rates are known, and the answer stays."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from effort import examples
from millstream.logical.plan import Join, Map, Plan, Source
from millstream.optimizer.choice import Choices, choose
from millstream.optimizer.cost import Constants
from millstream.optimizer.planning import Planner
from millstream.optimizer.statistics import ColumnStatistics, Statistics, StreamStatistics
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.operator import PhysicalPlan
from oracle.random_streams import Tape
from runtime.random_plans import case_of
from runtime.schedule_agreement import Expected, Trial

CHAIN = """SELECT a.v AS x, d.v AS y FROM A WINDOW(RANGE 40) a
JOIN B WINDOW(RANGE 40) b ON a.k = b.k
JOIN C WINDOW(RANGE 40) c ON b.k = c.k
JOIN D WINDOW(RANGE 40) d ON c.k = d.k"""
DISTINCT = """SELECT DISTINCT a.k, b.v FROM A WINDOW(RANGE 40) a
JOIN C WINDOW(RANGE 40) b ON a.k = b.k"""
ROWS = {"A": 240, "B": 120, "C": 12, "D": 6}


def session_of(engine: str = "local", **options: float) -> ms.Session:
    """Four streams of the same time, of which each has fewer rows than the one before."""
    session = ms.Session(engine=engine, **options)  # type: ignore[arg-type]
    for name, count in ROWS.items():
        random = Random(name)
        times = sorted(random.randrange(240) for _ in range(count))
        rows = [{"t": t, "k": random.randrange(4), "v": random.randrange(3)} for t in times]
        session.stream(name, rows, time="t")
    return session


def query_of(session: ms.Session, sql: str) -> ms.Query:
    query = session.sql(sql)
    assert isinstance(query, ms.Query)
    return query


def first_joined(plan: Plan) -> set[str]:
    """The streams of the lowest join."""
    joins = [node for node in plan.walk() if isinstance(node, Join)]
    return {node.stream for node in joins[-1].walk() if isinstance(node, Source)}


def test_streams_in_memory_tell_their_rates() -> None:
    query = query_of(session_of(), CHAIN)
    assert "after reorder_joins" in query.explain(verbose=True)
    assert first_joined(query.optimized_plan) == {"C", "D"}


def test_nothing_is_chosen_where_nobody_knows() -> None:
    session = ms.Session(engine="local")
    for name in ROWS:
        session.feed(name, {"t": "BIGINT", "k": "BIGINT", "v": "BIGINT"}, time="t")
    query = query_of(session, CHAIN)
    assert "reorder_joins" not in query.explain(verbose=True)
    assert first_joined(query.optimized_plan) == {"A", "B"}


def test_the_answer_stays() -> None:
    for sql in (CHAIN, DISTINCT):
        expected = query_of(session_of(optimize=False), sql).run()
        assert query_of(session_of(), sql).run().equals(expected)


def test_joins_in_another_order_are_seen_from_above() -> None:
    """One map brings their columns back: DISTINCT and groups can go below."""
    sql = CHAIN.replace("SELECT a.v", "SELECT DISTINCT a.v")
    plan = dict(query_of(session_of(), sql).rewrites)["reorder_joins"]
    maps = [node for node in plan.walk() if isinstance(node, Map)]
    assert not any(isinstance(node.input, Map) for node in maps)


def declared(rate: float, distinct: int) -> ms.Session:
    session = ms.Session(engine="local")
    for name in "AB":
        session.sql(
            f"CREATE STREAM {name} (t BIGINT, k INT) SOURCE memory('{name}') "
            f"ORDERED BY t UNIT MILLISECONDS WITH (rate = {rate}, distinct(k) = {distinct})"
        )
    return session


SAME = """SELECT DISTINCT a.k FROM A WINDOW(RANGE 10 SECONDS) a
JOIN B WINDOW(RANGE 10 SECONDS) b ON a.k = b.k"""


def test_distinct_rows_are_joined_where_many_are_equal() -> None:
    names = [name for name, _ in query_of(declared(5_000, 10), SAME).rewrites]
    assert "distinct_below_join" in names


def test_rows_are_joined_first_where_few_are_equal() -> None:
    names = [name for name, _ in query_of(declared(1, 100_000), SAME).rewrites]
    assert "distinct_below_join" not in names


FEW = """SELECT b.t, a.k FROM B WINDOW(RANGE 1 SECOND) b
JOIN (SELECT DISTINCT k FROM A WINDOW(RANGE 10 SECONDS)) a ON a.k = b.k"""


def operators(plan: PhysicalPlan) -> set[str]:
    return {type(plan).__name__}.union(*map(operators, plan.inputs))


@pytest.mark.parametrize(("distinct", "coalesced"), [(10, True), (100_000, False)])
def test_distinct_rows_are_whole_where_many_are_equal(distinct: int, coalesced: bool) -> None:
    plan = query_of(declared(5_000, distinct), FEW).physical_plan
    assert ("Distinct" not in operators(plan)) == coalesced


def test_whole_rows_give_the_same_answer() -> None:
    sql = FEW.replace(" SECONDS", "").replace(" SECOND", "")
    query = query_of(session_of(), sql)
    whole = choose(query.optimized_plan, "FINAL", Choices(coalesced=True))
    query._planned = replace(query.planned, physical=whole)
    assert "Distinct" not in operators(query.physical_plan)
    assert query.run().equals(query_of(session_of(optimize=False), sql).run())


# --- memory ---------------------------------------------------------------------------------------


def areas_of(plan: PhysicalPlan) -> set[AreaChoice]:
    own: tuple[AreaChoice, ...] = getattr(plan, "areas", ())
    return {*own}.union(*map(areas_of, plan.inputs))


def test_memory_to_spare_makes_expiry_lazy() -> None:
    sql = CHAIN.replace("RANGE 40", "RANGE 100")
    plain, little, much = (
        query_of(session_of(**o), sql) for o in ({}, {"memory": 1}, {"memory": 1e9})
    )
    for query in (plain, little):
        assert {area.lazy for area in areas_of(query.physical_plan)} == {0}
    assert max(area.lazy for area in areas_of(much.physical_plan)) == 5, "5 % of the window"
    assert much.run().equals(plain.run())


@pytest.mark.parametrize("memory", [0, -1])
def test_memory_is_a_positive_number(memory: int) -> None:
    with pytest.raises(ms.QueryError, match="memory is a positive number of bytes"):
        ms.Session(engine="local", memory=memory)


# --- whatever is known ----------------------------------------------------------------------------


def random_statistics(plan: Plan, random: Random) -> Statistics:
    """Rates and values of any size."""
    return Statistics(
        {
            node.stream: StreamStatistics(
                10 ** random.uniform(-3, 5),
                {
                    name: ColumnStatistics(random.choice([1.0, 7.0, 1e6, float("inf"), None]))
                    for name in ("k", "v")
                },
                batch=random.choice([None, 1.0, 1e4]),
            )
            for node in plan.walk()
            if isinstance(node, Source)
        }
    )


class PlannedTrial(Trial):
    """A plan as the planner chooses it, where so much is known of its streams."""

    def chosen(self, plan: Plan, disordered: frozenset[str]) -> PhysicalPlan:
        random = Random(self.tape.content)
        planner = Planner(
            random_statistics(plan, random),
            Constants(),
            Choices(disordered, self.approach, self.areas),
            together=self.many,
            memory=random.choice([None, 1e4, 1e12]),
        )
        *_, (_, found) = [("", plan), *planner.steps(plan)]
        return planner.operators(found, self.emit)


def test_distinct_rows_of_a_join_that_gives_none() -> None:
    """Where a value never comes twice, and there are more rows than a number can tell."""
    case = bytes(2) + b"\x04" + bytes(18) + b"5" + bytes(13) + b"\xee" + bytes(9) + b"zHoY"
    Expected(*case_of(Tape(case.ljust(160, b"\0")))).check(PlannedTrial(Tape(bytes(200))))


@settings(max_examples=examples(60))
@given(st.binary(min_size=160, max_size=160), st.binary(min_size=200, max_size=200))
def test_random_plans_are_planned_right(case: bytes, trial: bytes) -> None:
    Expected(*case_of(Tape(case))).check(PlannedTrial(Tape(trial)))


# --- many inputs ----------------------------------------------------------------------------------


def chain_of(count: int, windows: str = "") -> str:
    """A join of many in which the inputs that a condition links stand far apart in FROM."""
    order = [*range(0, count, 2), *range(1, count, 2)]
    inputs = ", ".join(f"t{i}{windows}" for i in order)
    links = " AND ".join(f"t{i}.a{i} = t{i + 1}.b{i + 1}" for i in range(count - 1))
    return f"SELECT t0.b0 AS x FROM {inputs} WHERE {links}"


def products(plan: Plan) -> int:
    return sum(isinstance(node, Join) and node.condition is None for node in plan.walk())


@pytest.mark.parametrize("count", [20, 40])
def test_many_tables_are_joined_without_products(count: int) -> None:
    """Ten rows in each: the product of the first half would have 10^10 and more."""
    session = ms.Session(engine="local")
    for i in range(count):
        session.sql(f"CREATE TABLE t{i} (a{i} BIGINT, b{i} BIGINT)")
        rows = ", ".join(f"({j}, {j})" for j in range(10))
        session.sql(f"INSERT INTO t{i} VALUES {rows}")
    asked = session.sql(chain_of(count)).run()
    assert sorted(asked["x"].to_pylist()) == list(range(10))


@pytest.mark.parametrize("count", [12, 20])
@pytest.mark.parametrize("known", [True, False])
def test_many_streams_are_joined_without_products(count: int, known: bool) -> None:
    session = ms.Session(engine="local")
    for i in range(count):
        session.sql(
            f"CREATE STREAM t{i} (t{i} BIGINT, a{i} BIGINT, b{i} BIGINT) SOURCE memory('t{i}') "
            f"ORDERED BY t{i}" + (" WITH (rate = 10)" if known else "")
        )
    query = query_of(session, chain_of(count, " WINDOW(RANGE 100)"))
    assert products(query.plan) > 0
    assert products(query.optimized_plan) == 0


def test_joins_over_values_that_never_come_twice_are_planned() -> None:
    """Their estimated selectivity is zero, also that of each step of a join of many."""
    session = ms.Session(engine="local")
    rows = [{"t": i, "a": i, "b": i + 1} for i in range(10)]
    for name in "ABCD":
        session.stream(name, rows, time="t")
    windowed = ", ".join(f"{name} WINDOW(RANGE 100) {name}" for name in "ABCD")
    sql = f"SELECT A.a FROM {windowed} WHERE A.a = B.b AND B.a = C.b AND C.a = D.b"
    assert query_of(session, sql).run()["a"].to_pylist() == [3, 4, 5, 6, 7, 8, 9]
