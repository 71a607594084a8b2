"""Queries that are too much for their processors: refused, or shed if the session allows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import millstream as ms
from millstream.api.query import Query
from millstream.logical import plan as logical
from millstream.logical.evaluate import evaluator
from millstream.logical.plan import Field
from millstream.logical.reference import Reference
from millstream.model.elements import Element
from millstream.model.errors import QueryError
from millstream.model.time import RAW_TIME
from millstream.model.types import BIGINT
from millstream.optimizer.choice import choose
from millstream.optimizer.shedding.queries import MOST, demand, selectivities, with_drops
from optimizer.shed_queries import JOIN, answer, query_of, session, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("A", "B"):
        write(tmp_path, name, 1_000)
    return tmp_path


def shares_kept(query: Query) -> Mapping[str, float]:
    """What is kept of each stream when the query is started."""
    return query._admission.shares()


# --- consent --------------------------------------------------------------------------------------


def test_what_is_too_much_is_refused(folder: Path) -> None:
    query = query_of(session(folder, 10_000)).named("big")
    with pytest.raises(QueryError) as caught:
        query.start(trigger="available_now")
    assert str(caught.value).startswith('error: query "big" needs ')
    assert "at the rates that its streams declare; there are 1" in str(caught.value)
    assert "Session(shed=True)" in str(caught.value)


def test_nothing_is_dropped_without_need(folder: Path) -> None:
    plain = answer(query_of(session(folder, 10)))
    assert plain == answer(query_of(session(folder, 10, shed=True)))
    assert plain == answer(query_of(session(folder, 10_000, processors=1e6)))
    assert len(plain) > 10_000


def test_what_is_shed_is_a_part_of_the_answer(folder: Path) -> None:
    whole = answer(query_of(session(folder, 10)))
    made = session(folder, 10_000, shed=True)
    shed = answer(query_of(made))
    shares = shares_kept(query_of(made))
    assert set(shares) == {"A", "B"}
    assert not shed - whole
    expected = shares["A"] * shares["B"]
    assert len(shed) / len(whole) == pytest.approx(expected, rel=0.1)
    assert shed == answer(query_of(made)), "the same again"


def test_a_statement_may_allow_it(folder: Path) -> None:
    made = session(folder, 10_000)
    shed = query_of(made, f"{JOIN} SHED")
    assert answer(shed) == answer(query_of(session(folder, 10_000, shed=True)))
    lost = 1 - min(shares_kept(shed).values())
    more, less = (lost + each for each in (0.05, -0.05))
    allowed = query_of(made, f"{JOIN} SHED AT MOST {100 * more:.1f} PERCENT")
    assert shares_kept(allowed) == shares_kept(shed)
    refused = query_of(made, f"{JOIN} SHED AT MOST {100 * less:.1f} PERCENT")
    with pytest.raises(
        QueryError, match=f"SHED allows dropping {less:.0%} of a stream, not {lost:.0%}"
    ):
        refused.start(trigger="available_now")
    assert refused.explain(costs=True).endswith("it cannot be started")


def test_a_statement_knows_better_than_its_session(folder: Path) -> None:
    query = query_of(session(folder, 10_000, shed=True), f"{JOIN} SHED AT MOST 1 PERCENT")
    with pytest.raises(
        QueryError, match=r"SHED allows dropping 1% of a stream.*\n.*allow dropping more"
    ):
        query.start(trigger="available_now")


def test_a_bounded_run_drops_nothing(folder: Path) -> None:
    """It takes as long as it takes."""
    whole = query_of(session(folder, 10)).run()
    assert query_of(session(folder, 10_000, shed=True)).run() == whole


def test_explain_says_what_is_kept(folder: Path) -> None:
    refused = query_of(session(folder, 10_000)).explain(costs=True).splitlines()[-1]
    assert refused.startswith("it needs ")
    assert refused.endswith(" processors, but there are 1: it cannot be started")
    shed = query_of(session(folder, 10_000, shed=True)).explain(costs=True).splitlines()[-1]
    assert ": when started it keeps " in shed
    assert '% of "A", ' in shed
    estimates = query_of(session(folder, 10_000, shed=True, processors=0.5)).estimates()
    assert estimates.share == pytest.approx(0.5, rel=0.1), "with what is dropped"
    fine = query_of(session(folder, 10)).explain(costs=True)
    assert "processors, but there are" not in fine


def test_metrics_tell_what_was_dropped(folder: Path) -> None:
    made = session(folder, 10_000, shed=True)
    query = query_of(made)
    running = query.start(trigger="available_now")
    assert running.wait(300)
    filters = [each for each in running.metrics.operators if each.name == "Filter"]
    kept = sorted(each.rows_out / each.rows_in for each in filters)
    assert [each.rows_in for each in filters] == [1_000, 1_000]
    assert kept == pytest.approx(sorted(shares_kept(query).values()), abs=0.002)


def test_streams_without_rates_are_taken_as_they_come(folder: Path) -> None:
    made = ms.Session(engine="local", processors=1e-9)
    for name in ("A", "B"):
        made.sql(
            f"CREATE STREAM {name} (t BIGINT, k INT, n INT) SOURCE json('{folder / name}') "
            "ORDERED BY t UNIT MICROSECONDS"
        )
    assert len(answer(query_of(made))) > 10_000


def test_processors_are_a_positive_number() -> None:
    with pytest.raises(QueryError, match="processors is a positive number, not 0"):
        ms.Session(engine="local", processors=0)


def test_it_is_too_much_whatever_is_dropped(folder: Path) -> None:
    query = query_of(session(folder, 1e12, shed=True, processors=1e-12))
    with pytest.raises(QueryError, match="whatever is dropped; there are 1e-12") as caught:
        query.start(trigger="available_now")
    assert caught.value.diagnostic.help == "provide more with Session(processors=…)"


def test_a_checkpoint_goes_on(folder: Path, tmp_path: Path) -> None:
    """With the same drops, also where other processors would allow others now; not without any."""
    made = session(folder, 10_000, shed=True)
    place = str(tmp_path / "checkpoint")
    first = answer(query_of(made), checkpoint=place)
    assert first
    assert not answer(query_of(made), checkpoint=place), "all rows have been answered"
    less = session(folder, 10_000, shed=True, processors=0.9)
    assert not answer(query_of(less), checkpoint=place)
    with pytest.raises(ms.MillstreamError, match="the checkpoint belongs to another query"):
        query_of(session(folder, 10, shed=True)).start(checkpoint=place, trigger="available_now")


def test_shedding_without_rates_is_warned_of(folder: Path) -> None:
    """Nothing is dropped, so a warning says so."""
    made = ms.Session(engine="local", processors=1e-9, shed=True)
    made.sql(
        f"CREATE STREAM A (t BIGINT, k INT, n INT) SOURCE json('{folder / 'A'}') "
        "ORDERED BY t UNIT MICROSECONDS"
    )
    made.sql(
        f"CREATE STREAM B (t BIGINT, k INT, n INT) SOURCE json('{folder / 'B'}') "
        "ORDERED BY t UNIT MICROSECONDS WITH (rate = 10)"
    )
    with pytest.warns(ms.OverloadWarning) as caught:
        answer(query_of(made).named("q"))
    assert str(caught[0].message) == (
        'warning: query "q" may drop rows but drops none, because no rate of "A" is declared\n'
        "help: declare how many rows come per second: WITH (rate = …)"
    )


def test_shedding_without_a_unit_is_warned_of(folder: Path) -> None:
    made = ms.Session(engine="local", shed=True)
    made.sql(
        f"CREATE STREAM A (t BIGINT, k INT, n INT) SOURCE json('{folder / 'A'}') "
        "ORDERED BY t WITH (rate = 10)"
    )
    with pytest.warns(ms.OverloadWarning, match="because its time has no unit\n"):
        made.sql("SELECT n FROM A").start(trigger="available_now").wait(60)


def test_streams_without_numbers_are_not_dropped(folder: Path) -> None:
    """Those that Spark reads: a feed beside them is dropped in their place."""
    made = ms.Session(engine="spark", processors=1, shed=True)
    made.sql(
        f"CREATE STREAM A (t BIGINT, k INT, n INT) SOURCE parquet('{folder}') "
        "ORDERED BY t UNIT MICROSECONDS WITH (rate = 10000, distinct(k) = 7)"
    )
    made.feed("B", {"t": "BIGINT", "k": "INT", "n": "INT"}, time="t", unit="microseconds")
    feed = replace(made._origins.stream("B"), rate=10_000.0, distinct=(("k", 7.0),))
    made.catalog._streams["b"] = feed
    join = query_of(made)
    assert list(shares_kept(join)) == ["B"]
    assert ": when started it keeps " in join.explain(costs=True).splitlines()[-1]
    alone = made.sql("SELECT n FROM A WHERE n > 3").named("alone")
    made._workspace.settings = replace(made._workspace.settings, processors=1e-9)
    told = '; rows of "A" have no numbers, so none of them can be dropped'
    assert alone.explain(costs=True).endswith(f"it cannot be started{told}")
    with pytest.raises(QueryError, match=told):
        alone.start(trigger="available_now")


# --- drops ----------------------------------------------------------------------------------------


SOURCE = logical.Source("S", "S", (Field("n", BIGINT),), RAW_TIME)


def kept(share: float, rows: int) -> list[int]:
    """The numbers of the rows that pass, by the meaning of the predicate."""
    plan = with_drops(SOURCE, {"S": share})
    (filtered,) = (node for node in plan.walk() if isinstance(node, logical.Filter))
    passes = evaluator(filtered.predicate, filtered.schema, {})
    return [n for n in range(rows) if passes((n, n))]


def test_drops_mean_the_same_everywhere() -> None:
    rows = {"S": [Element((i,), i, i + 1) for i in range(40)]}
    result = Reference(with_drops(SOURCE, {"S": 0.3}), rows).result()
    assert sorted(element.row for element in result) == [(n,) for n in kept(0.3, 40)]


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1, 0.01])
def test_a_share_of_every_stretch_is_kept(share: float) -> None:
    """Also of every second and of every tenth row."""
    found = kept(share, 2_000)
    assert len(found) == pytest.approx(2_000 * share, abs=3)
    for first in range(0, 2_000, 500):
        there = [n for n in found if first <= n < first + 500]
        assert len(there) == pytest.approx(500 * share, abs=3)
    for step in (2, 10):
        assert sum(n % step == 0 for n in found) == pytest.approx(2_000 / step * share, abs=3)


def test_a_plan_with_drops_has_its_columns() -> None:
    plan = with_drops(SOURCE, {"S": 0.25})
    assert plan.schema == SOURCE.schema
    assert [share for _, share in selectivities(plan)] == [0.25]
    assert with_drops(SOURCE, {}) is SOURCE
    assert with_drops(SOURCE, {"S": 1.0}) is SOURCE
    ordered = logical.Source("S", "S", (Field("n", BIGINT),), RAW_TIME, arrival=True)
    assert with_drops(ordered, {"S": 0.5}).schema == ordered.schema


def test_rows_without_numbers_cannot_be_dropped() -> None:
    source = logical.Source("S", "S", (Field("n", BIGINT),), RAW_TIME, numbered=False)
    with pytest.raises(QueryError, match='rows of stream "S" have no numbers'):
        with_drops(source, {"S": 0.5})


# --- shares ---------------------------------------------------------------------------------------


def test_shares_are_what_the_cost_model_can_afford(folder: Path) -> None:
    made = session(folder, 10_000)
    query = query_of(made)
    known = made._origins.statistics(query.plan)
    found = demand(query.physical_plan, known, ["A", "B"], 0.5)
    assert found.processors > 0.5
    assert 0.45 <= found.least <= 0.5005
    assert found.shares["A"] == pytest.approx(found.shares["B"]), "they are alike"
    dropped = choose(with_drops(query.optimized_plan, found.shares), query.emit)
    assert dropped.schema == query.physical_plan.schema


def test_many_streams_keep_the_same_share(folder: Path) -> None:
    made = ms.Session(engine="local")
    names = [f"S{i}" for i in range(MOST + 1)]
    for name in names:
        made.sql(
            f"CREATE STREAM {name} (t TIMESTAMP, k INT) SOURCE json('{folder}') ORDERED BY t "
            "WITH (rate = 100000000)"
        )
    union = " UNION ALL ".join(f"SELECT k FROM {name}" for name in names)
    query = query_of(made, f"SELECT k, count(*) AS n FROM ({union}) GROUP BY k")
    known = made._origins.statistics(query.plan)
    need = demand(query.physical_plan, known, names, 1e9).processors
    found = demand(query.physical_plan, known, names, need / 2)
    assert len(set(found.shares.values())) == 1
    assert found.least <= need / 2 * 1.001
