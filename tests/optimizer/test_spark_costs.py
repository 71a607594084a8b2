"""The costs of the Spark engine: what it takes beside the operators, how they are measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import millstream as ms
from millstream.api import spark_calibration as calibration
from millstream.api.query import Query
from millstream.api.spark_calibration import RunTiming, fitted, processor_time
from millstream.fragments.cutting import placing
from millstream.optimizer.cost.work import (
    SPARK,
    Constants,
    Handling,
    calibration_file,
    known_constants,
)

JOIN = """SELECT A.v, B.v AS w FROM A WINDOW(RANGE 1 SECOND), B WINDOW(RANGE 1 SECOND)
WHERE A.k = B.k AND A.v < B.v"""

# Processors that `JOIN` took over two streams of 350,000 rows per second, started, with one job per
# second, all processes together: docs/decisions/2026-11-18-spark-costs.md.
MEASURED = 1.6


def shares_kept(query: Query) -> Mapping[str, float]:
    """What is kept of each stream when the query is started."""
    return query._admission.shares()


def session(engine: str, rate: int = 350_000, **options: float) -> ms.Session:
    made = ms.Session(engine=engine, **options)  # type: ignore[arg-type]
    for name in "AB":
        made.sql(
            f"CREATE STREAM {name} (t BIGINT, k BIGINT, v BIGINT) SOURCE parquet('/') "
            f"ORDERED BY t UNIT MICROSECONDS WITH (rate = {rate}, distinct(k) = 1000000)"
        )
    return made


@pytest.fixture(autouse=True)
def defaults(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("settings")))


def test_a_join_is_estimated_within_a_factor_of_two() -> None:
    estimated = session("spark", processors=2).sql(JOIN).estimates().share
    assert MEASURED / 2 <= estimated <= 2 * MEASURED
    assert session("local").sql(JOIN).estimates().share < MEASURED / 5


def test_explain_shows_what_the_engine_takes() -> None:
    lines = session("spark", processors=2).sql(JOIN).explain(costs=True).splitlines()
    told = [line.split("  ")[-1] for line in lines]
    first = told.index("Spark jobs")
    assert told[first : first + 5] == [
        "Spark jobs",
        "values to tasks",
        "values between tasks",
        "values to the driver",
        "in all",
    ]
    assert "Spark jobs" not in session("local").sql(JOIN).explain(costs=True)


def test_edges_that_are_cut_are_counted() -> None:
    made = session("spark", processors=2)
    joined = placing(made.sql(JOIN).physical_plan, 2)
    assert [len(each.node.schema) for each in joined.exchanged] == [2, 2]
    assert joined.levels == 1
    stateless = placing(made.sql("SELECT v FROM A").physical_plan, 2)
    assert (list(stateless.exchanged), stateless.levels) == ([], 0)


def test_a_query_that_spark_cannot_carry_is_refused() -> None:
    """The operators alone would take a tenth of a processor."""
    query = session("spark", processors=1).sql(JOIN)
    with pytest.raises(ms.QueryError, match=r"needs 1\.\d+ processors at the rates"):
        shares_kept(query)
    assert shares_kept(session("local", processors=1).sql(JOIN)) == {}


def test_constants_are_found_that_explain_what_was_observed() -> None:
    random = np.random.default_rng(1)
    true = {h: SPARK[h] * float(random.uniform(0.5, 2)) for h in Handling}
    observations = []
    for _ in range(12):
        counts = {h: float(random.integers(0, 5_000_000)) for h in Handling}
        counts |= {Handling.JOB: 1.0, Handling.LEVEL: float(random.integers(0, 3))}
        took = sum(counts[h] * true[h] for h in Handling)
        observations.append(RunTiming(counts, took))
    assert fitted(observations) == pytest.approx(true, rel=0.05)
    only_jobs = fitted([RunTiming({Handling.JOB: 1.0}, 5e8)])
    assert only_jobs == SPARK | {Handling.JOB: pytest.approx(5e8)}


def test_constants_are_written_and_read() -> None:
    own = replace(Constants(), spark=dict(SPARK) | {Handling.READ: 123.0})
    own.write(calibration_file())
    assert known_constants() == own


def test_processor_time_is_that_of_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    before = processor_time()
    sum(range(10_000_000))
    assert processor_time() > before
    monkeypatch.setattr(calibration, "Path", lambda path: _Nowhere())
    with pytest.raises(ms.QueryError, match="cannot be measured on this system"):
        processor_time()


class _Nowhere:
    def glob(self, pattern: str) -> list[object]:
        return []
