"""Statistics: declared, from a look at rows, measured while a query runs, or assumed."""

from __future__ import annotations

import datetime
import math

import pytest

import millstream as ms
from millstream.model.metrics import Metrics, SourceMetrics
from millstream.model.time import TIMESTAMP_TIME
from millstream.optimizer.sampling import in_the_long_run, measured
from millstream.optimizer.statistics import (
    DISTINCT,
    RATE,
    ColumnStatistics,
    Statistics,
    StreamStatistics,
)


def known(session: ms.Session, sql: str) -> Statistics:
    return session.sql(sql).estimates().statistics


def test_what_is_declared() -> None:
    session = ms.Session(engine="local")
    session.sql(
        "CREATE STREAM s (ts TIMESTAMP, k BIGINT, v DOUBLE) SOURCE f() ORDERED BY ts "
        "WITH (rate = 250, distinct(k) = 40, min(v) = -5, max(v) = 5, size = 100)"
    )
    statistics = known(session, "SELECT k FROM s")
    stream = statistics.stream("s")
    assert stream.rate == 250
    assert stream.size == 100
    assert stream.column("k") == ColumnStatistics(distinct=40)
    assert stream.column("v") == ColumnStatistics(low=-5, high=5)
    assert stream.column("ts").distinct == float("inf")
    assert statistics.distance("s") == 4000, "microseconds"
    estimates = session.sql("SELECT k FROM s WHERE v < 0").estimates()
    assert estimates.output.elements * 1e6 == pytest.approx(125)
    assert estimates[estimates.plan.inputs[0].inputs[0]].output.width == pytest.approx(100)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ("min(v) = 3, max(v) = 2", 'the min of column "v" is above its max'),
        ("max(v) = -1, min(v) = 0", 'the min of column "v" is above its max'),
        ("min(name) = 3", 'column "name" is STRING and has no min that is a number'),
        ("max(w) = 3", 'column "w" does not exist in stream "s"'),
        ("min(v) = 3, MIN(v) = 2", "min is given twice"),
        ("size = 0", "size must be positive"),
    ],
)
def test_what_cannot_be(told: str, message: str) -> None:
    session = ms.Session(engine="local")
    with pytest.raises(ms.MillstreamError, match=message):
        session.sql(f"CREATE STREAM s (v BIGINT, name STRING) SOURCE f() WITH ({told})")


@pytest.mark.parametrize(
    ("time", "unit", "distance"),
    [("TIMESTAMP", "", 10_000), ("BIGINT", "UNIT MILLISECONDS", 10), ("BIGINT", "", 0.01)],
)
def test_a_rate_is_rows_a_second_or_a_unit_of_raw_time(
    time: str, unit: str, distance: float
) -> None:
    session = ms.Session(engine="local")
    session.sql(f"CREATE STREAM s (t {time}) SOURCE f() ORDERED BY t {unit} WITH (rate = 100)")
    assert known(session, "SELECT t FROM s").distance("s") == pytest.approx(distance)


def test_what_nobody_said_is_assumed_and_told() -> None:
    session = ms.Session(engine="local")
    session.feed("s", {"ts": "TIMESTAMP", "k": "BIGINT", "b": "BOOLEAN"}, time="ts")
    statistics = known(session, "SELECT k, b FROM s")
    assert statistics.rate("s") == RATE
    columns = session.catalog.streams[0].columns
    assert list(statistics.assumed("s", columns)) == [
        f"rate = {RATE:g}",
        f"distinct(k) = {DISTINCT:g}",
    ]


def test_a_look_at_rows() -> None:
    session = ms.Session(engine="local")
    start = datetime.datetime(2026, 1, 1)
    second = datetime.timedelta(seconds=1)
    rows = [
        {"ts": start + i * second / 4, "k": i % 20, "v": i / 2, "name": "ab"} for i in range(4001)
    ]
    session.stream("s", rows, time="ts")
    statistics = known(session, "SELECT k FROM s")
    stream = statistics.stream("s")
    assert stream.rate == pytest.approx(4)
    assert stream.regular
    assert stream.column("k").distinct == pytest.approx(20)
    assert (stream.column("v").low, stream.column("v").high) == (0, 2000)
    assert stream.column("v").distinct == float("inf")
    assert statistics.ahead == pytest.approx(1000 * 1_000_000)


def test_a_look_at_columns_without_a_number() -> None:
    session = ms.Session(engine="local")
    rows = [{"t": t, "x": math.nan if t else None, "y": None} for t in range(3)]
    session.stream("s", rows, time="t", schema={"t": "BIGINT", "x": "DOUBLE", "y": "DOUBLE"})
    for name in ("x", "y"):
        column = known(session, "SELECT x FROM s").stream("s").column(name)
        assert (column.low, column.high) == (None, None)


def test_a_look_at_no_rows_and_at_one() -> None:
    session = ms.Session(engine="local")
    session.stream("none", [], time="t", schema={"t": "BIGINT", "x": "STRING"})
    session.stream("one", [{"t": 1, "x": None, "y": [1]}], time="t")
    for name in ("none", "one"):
        assert known(session, f"SELECT x FROM {name}").rate(name) == 1


def test_rows_that_bring_their_own_interval() -> None:
    session = ms.Session(engine="local")
    rows = [{"a": i, "b": i + 10 + i % 3} for i in range(100)]
    session.stream("s", rows, time=("a", "b"))
    output = session.sql("SELECT a FROM s").estimates().output
    assert output.length == pytest.approx(11, abs=0.1)
    assert not output.fixed


@pytest.mark.parametrize("changes", ["retroactive", "non retroactive", "constant"])
def test_the_rows_of_a_table(changes: str) -> None:
    """It has them at every instant, however seldom it changes."""
    session = ms.Session(engine="local")
    session.stream("s", [{"t": t, "k": t % 7} for t in range(1000)], time="t")
    table = [{"k": k, "x": k % 5} for k in range(300)]
    session.table("r", table, key="k", changes=changes)
    estimates = session.sql("SELECT s.k, r.x FROM s, r WHERE s.k = r.k").estimates()
    stream = estimates.statistics.stream("r")
    assert (stream.rows, stream.column("k").distinct) == (300, 300)
    assert stream.column("x").distinct == pytest.approx(5)
    (join,) = (own for node, own in estimates if type(node).__name__ == "LookupJoin")
    assert join.rows == pytest.approx(300)
    assert join.output.rate == pytest.approx(1, rel=0.1)


@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
def test_a_table_without_rows() -> None:
    session = ms.Session(engine="local")
    session.stream("s", [{"t": t, "k": t % 7} for t in range(1000)], time="t")
    session.table("r", schema={"k": "BIGINT"}, key="k")
    for window in ("", "WINDOW(RANGE 10)"):
        for kind in ("JOIN", "LEFT JOIN"):
            query = session.sql(f"SELECT s.k FROM s {window} {kind} r ON s.k = r.k")
            assert 0 <= query.estimates().cost < 1e6


def test_what_is_declared_wins_over_a_look() -> None:
    declared = StreamStatistics(rate=5.0, columns={"k": ColumnStatistics(distinct=3)})
    seen = StreamStatistics(
        7.0, {"k": ColumnStatistics(9, 0, 8), "v": ColumnStatistics(2)}, regular=True
    )
    both = declared.filled(seen)
    assert both.rate == 5
    assert not both.regular, "a rate that was declared says nothing of distances"
    assert both.column("k") == ColumnStatistics(3, 0, 8)
    assert both.column("v") == ColumnStatistics(2)


@pytest.mark.parametrize("values", [10, 1000, 100_000])
def test_values_in_the_long_run(values: int) -> None:
    import numpy as np

    sample = np.random.default_rng(values).integers(0, values, 20_000)
    assert in_the_long_run(20_000, len(np.unique(sample))) == pytest.approx(values, rel=0.1)


# --- measured while a query runs ------------------------------------------------------------------


def reading(rows: int, seconds: float | None) -> Metrics:
    start = datetime.datetime(2026, 1, 1)
    frontier = None if seconds is None else start + datetime.timedelta(seconds=seconds)
    return Metrics([], {"s": SourceMetrics("s", rows, 0, 0, 0, 0, False, frontier)})


def test_rates_are_smoothed() -> None:
    statistics = Statistics({"s": StreamStatistics(rate=100.0)}, TIMESTAMP_TIME)
    once = measured(statistics, reading(0, 0), reading(2000, 10), weight=0.25)
    assert once.rate("s") == pytest.approx(0.25 * 200 + 0.75 * 100)
    again = measured(once, reading(2000, 10), reading(4000, 20), weight=0.25)
    assert again.rate("s") == pytest.approx(0.25 * 200 + 0.75 * 125)


def test_the_first_rate_is_what_was_measured() -> None:
    statistics = Statistics({}, TIMESTAMP_TIME)
    assert measured(statistics, reading(0, 0), reading(50, 10)).rate("s") == pytest.approx(5)


@pytest.mark.parametrize("later", [reading(10, 0), reading(10, None), reading(0, 10)])
def test_time_that_stands_still_and_rows_that_do_not_come_tell_nothing(later: Metrics) -> None:
    statistics = Statistics({}, TIMESTAMP_TIME)
    assert measured(statistics, reading(0, 0), later) == statistics


def test_metrics_of_a_running_query() -> None:
    session = ms.Session(engine="local")
    feed = session.feed("s", {"ts": "TIMESTAMP", "k": "BIGINT"}, time="ts")
    query = session.sql("SELECT k FROM s WINDOW(RANGE 1 SECOND)")
    start = datetime.datetime(2026, 1, 1)
    running = query.start(snapshots=True)
    readings = []
    for first in (0, 10):
        rows = range(first, first + 11)
        feed.send([{"ts": start + datetime.timedelta(seconds=i), "k": i} for i in rows])
        running.snapshot(start + datetime.timedelta(seconds=first + 9), timeout=60)
        readings.append(running.metrics)
    feed.close()
    running.wait()
    found = measured(query.estimates().statistics, *readings)
    assert found.rate("s") == pytest.approx(1.1)
