"""Laziness and partitions after a budget of memory; costs as Golab and Özsu count them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.optimizer.choice import Approach, Choices, choose
from millstream.optimizer.cost import Estimates, estimate
from millstream.optimizer.cost.areas import FEWEST, LAZIEST, MOST, fit_areas, fitted_area
from millstream.optimizer.cost.joins import element_bytes
from millstream.optimizer.statistics import ColumnStatistics, Statistics, StreamStatistics
from millstream.papers.unit_costs import unit_cost
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.operators.join import Join
from millstream.physical.operators.union import Union

SECOND = 1_000_000
JOIN = "SELECT * FROM A WINDOW(RANGE 10 SECONDS), B WINDOW(RANGE 10 SECONDS) WHERE A.k = B.k"
THREE = JOIN.replace("WHERE", ", A WINDOW(RANGE 10 SECONDS) AS C WHERE B.k = C.k AND")


def estimated(sql: str, approach: str = "hybrid") -> Estimates:
    session = ms.Session(engine="local")
    for name in "AB":
        session.feed(name, {"ts": "TIMESTAMP", "k": "BIGINT"}, time="ts")
    query = session.sql(sql)
    plan = choose(query.plan, query.emit, Choices(approach=Approach(approach)))
    stream = StreamStatistics(100.0, {"k": ColumnStatistics(50.0)})
    return estimate(plan, Statistics({"A": stream, "B": stream}, query.plan.domain))


def joins(estimates: Estimates) -> list[Join]:
    return [node for node, _ in estimates if isinstance(node, Join)]


def test_without_memory_to_spare_expiry_is_eager_and_partitions_are_many() -> None:
    estimates = estimated(THREE)
    fitted = fit_areas(estimates, budget=0)
    for join in joins(estimate(fitted, estimates.statistics)):
        assert [area.lazy for area in join.areas] == [0, 0]
    outer = joins(estimate(fitted, estimates.statistics))[-1]
    assert outer.areas[0].partitions == MOST


def test_with_memory_to_spare_expiry_is_lazy_and_partitions_are_few() -> None:
    estimates = estimated(THREE)
    fitted = fit_areas(estimates, budget=1e12)
    outer = joins(estimate(fitted, estimates.statistics))[-1]
    assert outer.areas[1].lazy == LAZIEST * 10 * SECOND, "5 % of the window, as G5 has it"
    assert outer.areas[0].partitions == FEWEST


@settings(max_examples=20)
@given(st.floats(1.0, 3.0))
def test_what_is_fitted_fits(times: float) -> None:
    estimates = estimated(THREE)
    eager = estimate(fit_areas(estimates, 0), estimates.statistics)
    budget = eager.bytes * times
    fitted = fit_areas(estimates, budget)
    assert estimate(fitted, estimates.statistics).bytes <= budget * 1.01


def test_the_answer_is_the_same() -> None:
    rows = [{"ts": i, "k": i % 7} for i in range(300)]
    session = ms.Session(engine="local")
    for name in "AB":
        session.stream(name, rows, time="ts")
    sql = JOIN.replace("10 SECONDS", "40")
    query, other = session.sql(sql), session.sql(sql)
    fitted = fit_areas(query.estimates(), 1e9)
    other._planned = replace(other.planned, physical=fitted)
    assert other.run().equals(query.run())


def test_what_is_shared_stays_shared() -> None:
    estimates = estimated(JOIN)
    twice = Union(estimates.plan, estimates.plan, estimates.plan.schema)
    both = estimate(twice, estimates.statistics)
    fitted = fit_areas(both, budget=1e12)
    assert fitted.inputs[0] is fitted.inputs[1]


@settings(max_examples=20)
@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_more_memory_is_never_less_lazy(one: float, other: float) -> None:
    estimates = estimated(JOIN)
    (join,) = joins(estimates)
    given_side = estimates[join.left].output
    calendar = AreaChoice(calendar=True)
    less, more = (
        fitted_area(calendar, join.left, given_side, spare) for spare in sorted((one, other))
    )
    assert less.lazy <= more.lazy
    assert less.partitions >= more.partitions
    assert element_bytes(calendar, join.left, given_side) > 0


# --- G5 §5.4.1 ------------------------------------------------------------------------------------


def test_a_join_looks_at_its_own_window() -> None:
    """λ₁·N₁ + λ₂·N₂ = 2 · 100 · 1000, and one for each element of the five others."""
    estimates = estimated(JOIN)
    a_second = unit_cost(estimates) * SECOND
    stateless = 100 + 100 + 4000  # two windows, one map
    assert a_second == pytest.approx(200_000 + stateless)


def test_signed_elements_double_joins_and_not_aggregates() -> None:
    direct, signed = (unit_cost(estimated(JOIN, each)) for each in ("hybrid", "signed"))
    assert 1.8 < signed / direct < 2.2
    sql = "SELECT k, COUNT(*) AS n FROM A WINDOW(RANGE 10 SECONDS) GROUP BY k"
    direct, signed = (unit_cost(estimated(sql, each)) for each in ("hybrid", "signed"))
    assert signed / direct < 1.8


def test_a_negation_costs_by_its_early_retractions() -> None:
    """The less often keys of the right side come and go, the fewer rows go before their time."""
    sql = (
        "SELECT k FROM A WINDOW(RANGE 10 SECONDS) WHERE NOT EXISTS "
        "(SELECT 1 FROM B WINDOW(RANGE {} SECONDS) WHERE B.k = A.k) EMIT CHANGES"
    )
    rarely, often = (estimated(sql.format(seconds)) for seconds in (10, 1))
    shares = [
        own.output.retracted
        for estimates in (rarely, often)
        for node, own in estimates
        if type(node).__name__ == "SemiJoin"
    ]
    assert all(0 < share < 1 for share in shares)
