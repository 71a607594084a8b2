"""A query has one plan: what `start` runs, and what `run` runs, is what `explain` shows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.gain import QUERIES, streams
from hypothesis import HealthCheck, given, settings

import millstream as ms
from effort import examples
from millstream.fragments.cutting import fragments_of
from millstream.fragments.text import fragments_text
from millstream.physical.operator import PhysicalPlan
from millstream.physical.signature import Signatures
from millstream.physical.text import physical_text
from millstream.runtime.executor import InlineExecutor
from oracle.judged_streams import JudgedStream, session_of
from oracle.query_generator import cases


def session_with(**options: Any) -> ms.Session:
    session = ms.Session(**options)
    for name, table in streams().items():
        session.stream(name, table, time="t", unit="MICROSECONDS")
    return session


def query_of(session: ms.Session, text: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return session.sql(text)


def explained(query: Any) -> str:
    return str(query.explain(physical=True).split("\n\n", 1)[1])


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[PhysicalPlan]]:
    """The plans of queries that are started; none of them runs."""
    plans: list[PhysicalPlan] = []
    monkeypatch.setattr(
        "millstream.runtime.running.Running", lambda launch: plans.append(launch.plan)
    )
    return plans  # type: ignore[return-value]


@pytest.mark.parametrize(
    "options",
    [{}, {"memory": 1e5}, {"memory": 1e9}, {"approach": "intervals"}, {"approach": "signed"}],
    ids=str,
)
def test_a_started_query_runs_what_is_explained(
    options: dict[str, Any], started: list[PhysicalPlan]
) -> None:
    session = session_with(engine="local", **options)
    for text in QUERIES.values():
        query = query_of(session, text)
        query.start("noop")
        assert physical_text(started.pop(), query.plan.domain, Signatures()) == explained(query)


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_random_queries(case: tuple[list[JudgedStream], str], started: list[PhysicalPlan]) -> None:
    streams, text = case
    query = query_of(session_of(streams, []), text)
    query.start("noop")
    assert physical_text(started.pop(), query.plan.domain, Signatures()) == explained(query)


@pytest.mark.xdist_group("spark")
def test_on_spark(started: list[PhysicalPlan]) -> None:
    session = session_with(engine="spark")
    for text in QUERIES.values():
        query = query_of(session, text)
        query.start("noop")
        assert fragments_text(fragments_of(started.pop()), query.plan.domain) == explained(query)


@pytest.mark.xdist_group("spark")
@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_random_queries_on_spark(
    case: tuple[list[JudgedStream], str], started: list[PhysicalPlan]
) -> None:
    streams, text = case
    query = query_of(session_of(streams, [], "spark"), text)
    query.start("noop")
    assert fragments_text(fragments_of(started.pop()), query.plan.domain) == explained(query)


def test_streams_out_of_order_are_planned_so(started: list[PhysicalPlan]) -> None:
    session = ms.Session(engine="local")
    for name in "AB":
        session.feed(name, {"t": "BIGINT", "k": "BIGINT"}, time="t", delay="5")
    query = query_of(session, "SELECT A.k FROM A WINDOW(RANGE 9) JOIN B WINDOW(RANGE 9) USING (k)")
    assert "pattern=WEAKEST" not in explained(query)
    query.start("noop")
    assert physical_text(started[0]) == physical_text(query.physical_plan)


def test_what_is_dropped_is_explained(tmp_path: Path, started: list[PhysicalPlan]) -> None:
    (tmp_path / "a.csv").write_text("t,k\n1,2\n")
    session = ms.Session(engine="local", processors=1e-3, shed=True)
    session.sql(
        f"CREATE STREAM A (t BIGINT, k BIGINT) SOURCE csv('{tmp_path}/a.csv') "
        "ORDERED BY t UNIT SECONDS WITH (rate = 1000)"
    )
    query = query_of(session, "SELECT k FROM A WHERE k > 1")
    query.start("noop")
    shown = explained(query)
    assert physical_text(started[0], query.plan.domain, Signatures()) == shown
    assert "1327217885" in shown, "the drops are shown"


def test_tables_that_grow_are_planned_anew() -> None:
    session = ms.Session(engine="local")
    table = session.table("T", schema={"k": "BIGINT"})
    session.feed("A", {"t": "BIGINT", "k": "BIGINT"}, time="t")
    query = query_of(session, "SELECT A.k FROM A WINDOW(RANGE 9) JOIN T ON A.k = T.k")
    planned = query.planned
    assert query.planned is planned
    table.insert([{"k": k} for k in range(100_001)])
    assert query.planned is not planned
    assert query.planned is query.planned


def test_a_running_query_is_explained_as_it_runs() -> None:
    session = ms.Session(engine="local")
    table = session.table("T", schema={"k": "BIGINT"})
    session.feed("A", {"t": "BIGINT", "k": "BIGINT"}, time="t")
    query = query_of(session, "SELECT A.k FROM A WINDOW(RANGE 9) JOIN T ON A.k = T.k")
    with query.start("noop"):
        planned = query.planned
        table.insert([{"k": k} for k in range(100_001)])
        assert query.planned is planned
    assert query.planned is not planned


def test_the_rows_of_a_started_query_are_those_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """DISTINCT is coalesced in both: a row is given once, not in a piece for each equal row."""
    plans: list[PhysicalPlan] = []
    opened = InlineExecutor.__init__

    def noted(self: InlineExecutor, plan: PhysicalPlan, *rest: Any) -> None:
        plans.append(plan)
        opened(self, plan, *rest)

    monkeypatch.setattr(InlineExecutor, "__init__", noted)
    query = query_of(session_with(engine="local"), QUERIES["distinct pairs"])
    rows = query.run().num_rows
    given = 0

    def count(table: Any, _: Any) -> None:
        nonlocal given
        given += table.num_rows

    query.start(count).wait(60)
    assert plans == [query.physical_plan]
    assert given <= 3 * rows
