"""Estimates of whole plans: the papers' numbers, and what must hold for any."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.optimizer.choice import Approach, Choices, choose
from millstream.optimizer.cost import (
    Characteristics,
    Constants,
    Estimates,
    Primitive,
    estimate,
)
from millstream.optimizer.cost.characteristics import Clump
from millstream.optimizer.cost.estimate import FORMULAS
from millstream.optimizer.cost.work import PRIMITIVES
from millstream.optimizer.multi_way import multi_way
from millstream.optimizer.statistics import ColumnStatistics, Statistics, StreamStatistics
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.coalesce import Coalesce
from millstream.physical.operators.cut import Cut
from millstream.physical.operators.join import Join
from millstream.physical.operators.union import Union

STREAMS = {
    name: StreamStatistics(
        100.0,
        {
            "k": ColumnStatistics(50.0, 0.0, 49.0),
            "v": ColumnStatistics(1000.0, 0.0, 999.0),
            "x": ColumnStatistics(float("inf"), 0.0, 1.0),
        },
    )
    for name in "ABC"
}
JOIN = "SELECT * FROM A WINDOW(RANGE 10 SECONDS), B WINDOW(RANGE {} SECONDS) WHERE A.k = B.k"

QUERIES = [
    "SELECT k FROM A WHERE v < 10 OR k IN (1, 2) OR NOT v > x",
    "SELECT k FROM A UNION ALL SELECT v FROM B",
    JOIN.format(10),
    "SELECT A.k FROM A WINDOW(RANGE 5 SECONDS), B WINDOW(RANGE 5 SECONDS), C WINDOW(ROWS 10) "
    "WHERE A.k = B.k AND B.k = C.k AND A.v < C.v",
    "SELECT k FROM A WINDOW(RANGE 5 SECONDS) WHERE k IN (SELECT k FROM B WINDOW(RANGE 1 SECOND))",
    "SELECT k FROM A WINDOW(ROWS 7) WHERE NOT EXISTS "
    "(SELECT 1 FROM B WINDOW(RANGE 1 SECOND) WHERE B.v > A.v)",
    "SELECT A.k FROM A WINDOW(RANGE 5 SECONDS) FULL JOIN B WINDOW(ROWS 9) ON A.k = B.k",
    "SELECT k, COUNT(*) AS n, MAX(x) AS m FROM A WINDOW(RANGE 5 SECONDS) GROUP BY k EMIT CHANGES",
    "SELECT SUM(v) AS s FROM A WINDOW(RANGE 5 SECONDS SLIDE 1 SECOND)",
    "SELECT DISTINCT k FROM A WINDOW(RANGE 5 SECONDS)",
    "SELECT DISTINCT k FROM A WINDOW(PARTITION BY v ROWS 3 SLIDE 2)",
    "SELECT k FROM A WINDOW(RANGE 5 SECONDS) EXCEPT ALL SELECT k FROM B WINDOW(RANGE 5 SECONDS)",
    "SELECT k FROM A WINDOW(RANGE 5 SECONDS) INTERSECT SELECT k FROM B WINDOW(RANGE 5 SECONDS)",
    "SELECT k, v FROM A WINDOW(RANGE 5 SECONDS) ORDER BY v DESC LIMIT 3",
    "SELECT ISTREAM(k) FROM A WINDOW(RANGE 5 SECONDS)",
    "SELECT AVG(x) AS a FROM A WINDOW(RANGE UNBOUNDED)",
    "SELECT COUNT(*) AS n FROM A WINDOW(RANGE 5 SECONDS) GRANULARITY(1 SECOND)",
    "SELECT COUNT(*) AS n FROM (SELECT k, COUNT(*) AS m FROM A WINDOW(RANGE 2 SECONDS) GROUP BY k)"
    " s WINDOW(RANGE 5 SECONDS) GRANULARITY(1 SECOND)",
]


@pytest.fixture(scope="module")
def session() -> ms.Session:
    session = ms.Session(engine="local")
    for name in "ABC":
        columns = {"ts": "TIMESTAMP", "k": "BIGINT", "v": "BIGINT", "x": "DOUBLE"}
        session.feed(name, columns, time="ts")
    return session


@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
def planned(
    session: ms.Session, sql: str, approach: str = "hybrid"
) -> tuple[PhysicalPlan, Statistics]:
    query = session.sql(sql)
    plan = choose(query.plan, query.emit, Choices(approach=Approach(approach)))
    return plan, Statistics(STREAMS, query.plan.domain)


def estimated(session: ms.Session, sql: str, share: float = 1.0) -> Estimates:
    plan, known = planned(session, sql)
    dropped = {name: replace(s, rate=s.rate * share) for name, s in known.streams.items() if s.rate}
    return estimate(plan, replace(known, streams=dropped))


def a_second(estimates: Estimates) -> float:
    return estimates.output.elements * estimates.statistics.second


def join_cost(estimates: Estimates) -> float:
    """Without what a batch costs: K counts rows."""
    rows_only = Constants({**PRIMITIVES, Primitive.VECTOR: 0.0}, {})
    again = estimate(estimates.plan, estimates.statistics, rows_only)
    (join,) = [own for node, own in again if isinstance(node, Join)]
    return join.cost


def test_a_join_of_kraemer(session: ms.Session) -> None:
    """K §24.3: 1000.5 rows a side, 4,000 results per second."""
    estimates = estimated(session, JOIN.format(10))
    assert a_second(estimates) == pytest.approx(4000)
    assert estimates.rows == pytest.approx(2001)


def test_half_the_window_is_half_the_memory_and_work(session: ms.Session) -> None:
    whole = estimated(session, JOIN.format(10))
    half = estimated(session, JOIN.format(10).replace("10 SEC", "5 SEC"))
    assert half.rows == pytest.approx(whole.rows / 2, rel=0.01)
    assert half.bytes == pytest.approx(whole.bytes / 2, rel=0.02)
    assert a_second(half) == pytest.approx(a_second(whole) / 2)
    assert join_cost(half) == pytest.approx(join_cost(whole) / 2, rel=0.2)


def test_half_of_both_streams_is_half_the_memory_and_a_quarter_of_the_work(
    session: ms.Session,
) -> None:
    whole, half = estimated(session, JOIN.format(10)), estimated(session, JOIN.format(10), 0.5)
    assert half.rows == pytest.approx(whole.rows / 2, rel=0.01)
    assert a_second(half) == pytest.approx(a_second(whole) / 4)
    assert join_cost(half) == pytest.approx(join_cost(whole) / 4, rel=0.2)


@pytest.mark.parametrize("approach", ["hybrid", "intervals", "signed"])
@pytest.mark.parametrize("sql", QUERIES)
def test_every_plan_has_sane_estimates(session: ms.Session, sql: str, approach: str) -> None:
    plan, known = planned(session, sql, approach)
    for each in (plan, multi_way(plan)):
        estimates = estimate(each, known)
        for _, own in estimates:
            output = own.output
            assert 0 < output.elements < 1e6
            assert 0 < output.length < 1e18
            assert 0 <= output.retracted <= 1
            assert 0 <= own.rows < 1e9
            assert 0 <= own.bytes < 1e12
            assert own.cost >= 0
            assert all(count >= 0 for count in own.work.values())
            assert 0 <= output.variety <= output.present * (1 + 1e-9)


def test_every_operator_has_a_formula() -> None:
    def all_below(kind: type) -> set[type]:
        return {kind}.union(*(all_below(each) for each in kind.__subclasses__()))

    ours = {
        kind
        for kind in all_below(PhysicalPlan) - {PhysicalPlan}
        if kind.__module__.startswith("millstream.physical.operators")
    }
    assert {kind.__name__ for kind in ours} - {"Numbered"} == {f.__name__ for f in FORMULAS}


def test_cut_and_coalesce_undo_each_other(session: ms.Session) -> None:
    plan, known = planned(session, "SELECT k FROM A WINDOW(RANGE 10 SECONDS)")
    second = 1_000_000
    cut = estimate(Cut(plan, second), known).output
    assert (cut.rate * second, cut.length) == pytest.approx((1000, second))
    again = estimate(Coalesce(Cut(plan, second), 10 * second), known).output
    assert (again.rate * second, again.length) == pytest.approx((100, 10 * second))


def test_what_is_shared_is_counted_once(session: ms.Session) -> None:
    sql = "SELECT k, COUNT(*) AS n FROM A WINDOW(RANGE 5 SECONDS) GROUP BY k"
    plan, known = planned(session, sql)
    once, twice = estimate(plan, known), estimate(Union(plan, plan, plan.schema), known)
    assert twice.rows == once.rows
    assert a_second(twice) == pytest.approx(2 * a_second(once))
    assert len(list(twice)) == len(list(once)) + 1


def test_batches_without_rows_are_idle() -> None:
    often, seldom = (Characteristics(d, 1.0, batches=10.0) for d in (0.001, 1.0))
    assert often.busy == pytest.approx(10)
    assert seldom.busy == pytest.approx(1)
    clump = Clump(1.0, 20.0, frozenset())
    assert replace(often, distance=0.05, clumps=(clump,)).busy == pytest.approx(seldom.busy)


def test_what_was_not_seen_may_come(session: ms.Session) -> None:
    """Nothing above would cost anything if a selectivity were 0."""
    plan, known = planned(session, "SELECT k FROM A WHERE v > 1000000")
    assert 0 < a_second(estimate(plan, known)) < 1


def test_few_groups_have_many_rows(session: ms.Session) -> None:
    """Where two rows are the mean, most groups have two or more, and hardly any has ten."""
    sql = "SELECT k, COUNT(*) AS n FROM A WINDOW(RANGE 1 SECOND) GROUP BY k HAVING COUNT(*) >= {}"
    all_rows, some, few = (
        a_second(estimate(*planned(session, sql.format(n)))) for n in (-100, 2, 10)
    )
    assert 0.5 < some / all_rows < 0.8
    assert few / all_rows <= 0.01


def test_a_known_selectivity_wins(session: ms.Session) -> None:
    plan, known = planned(session, "SELECT k FROM A WHERE v < 10")
    assert a_second(estimate(plan, known)) == pytest.approx(1.0)
    told = replace(known, selectivities={"A.v < 10": 0.5, "A.v < CAST(10 AS BIGINT)": 0.5})
    assert a_second(estimate(plan, told)) == pytest.approx(50.0)


rates = st.floats(0.01, 1e5)


@settings(max_examples=30)
@given(st.sampled_from(QUERIES), rates, st.floats(1.1, 10))
@example(
    "SELECT A.k FROM A WINDOW(RANGE 5 SECONDS) FULL JOIN B WINDOW(ROWS 9) ON A.k = B.k", 0.125, 2
)
def test_more_rows_cost_more(sql: str, rate: float, times: float) -> None:
    session = ms.Session(engine="local")
    for name in "ABC":
        columns = {"ts": "TIMESTAMP", "k": "BIGINT", "v": "BIGINT", "x": "DOUBLE"}
        session.feed(name, columns, time="ts")
    plan, known = planned(session, sql)
    few, many = (
        estimate(plan, replace(known, streams={n: replace(s, rate=r) for n, s in STREAMS.items()}))
        for r in (rate, rate * times)
    )
    assert many.cost >= few.cost * (1 - 1e-6)
    assert many.rows >= few.rows * (1 - 1e-6)
