"""The Spark engine gives the answers of the local one: whole runs, snapshots, and started queries
whose keepers and workers come and go. One Spark session serves all of it.

The usual run has a few of the texts that both engines answer, and of random queries;
MILLSTREAM_EXAMPLES=200 has all texts, and so many random queries.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from pyspark.sql import SparkSession

import millstream as ms
from effort import WANTED, examples
from millstream.model.elements import Element, normal_form
from oracle.agreement import Bench
from oracle.judged_streams import DERIVED, STREAMS, JudgedStream
from oracle.judged_streams import session_of as judged_session
from oracle.query_generator import cases
from oracle.query_texts import TEXTS

pytestmark = pytest.mark.xdist_group("spark")

ROWS = 400
JOIN = """SELECT a.k, COUNT(*) AS n, MAX(b.v) AS m FROM A WINDOW(RANGE 30) a
JOIN B WINDOW(RANGE 20) b ON a.k = b.k GROUP BY a.k"""


def session_of(engine: str) -> ms.Session:
    session = ms.Session(engine=engine)
    for name, factor in (("A", 3), ("B", 5)):
        rows = [{"t": i, "k": i * factor % 7, "v": i * i % 23} for i in range(ROWS)]
        session.stream(name, rows, time="t")
    return session


@pytest.mark.parametrize("text", TEXTS if WANTED else TEXTS[:: len(TEXTS) // 15], ids=str)
def test_texts(text: str) -> None:
    check(STREAMS, text, DERIVED)


@settings(max_examples=examples(5))
@given(cases())
def test_random_query(case: tuple[list[JudgedStream], str]) -> None:
    streams, text = case
    check(streams, text)


def check(streams: Iterable[JudgedStream], text: str, derived: Iterable[str] = ()) -> None:
    bench = Bench(streams, derived)
    query = bench.query(text)
    other = bench.query(text, judged_session(list(streams), list(derived), engine="spark"))
    assert repr(other.run().to_pylist()) == repr(query.run().to_pylist())
    assert set(other.errors) == set(query.errors)


def test_snapshot() -> None:
    spark, local = (session_of(engine).sql(JOIN) for engine in ("spark", "local"))
    assert spark.snapshot(100).equals(local.snapshot(100))


def test_user_functions_go_along() -> None:
    session = session_of("spark")
    session.function("twice", lambda x: pc.multiply(x, 2), returns="BIGINT")
    query = session.sql("SELECT SUM(twice(v)) AS s FROM A WINDOW(RANGE 5)")
    assert query.snapshot(2).to_pylist() == [{"s": 2 * (0 + 1 + 4)}]


def test_what_never_settles_is_told_in_our_words() -> None:
    query = session_of("spark").sql(
        "SELECT COUNT(*) AS n FROM (SELECT MAX(v) AS m FROM A WINDOW(RANGE 5)) x "
        "WINDOW(ROWS UNBOUNDED) GRANULARITY(1)"
    )
    with pytest.raises(ms.QueryError) as error:
        query.run()
    assert "Traceback" not in str(error.value)


def elements(tables: list[pa.Table]) -> list[Element]:
    rows = [row for table in tables for row in table.to_pylist()]
    return normal_form(
        Element((r["k"], r["n"], r["m"]), r["valid_from"], r["valid_to"]) for r in rows
    )


def started(tmp_path: Path, between: Callable[[], None]) -> list[pa.Table]:
    """The answers of the join, batch by batch of some rows; the sink may do something else."""
    given: dict[int, pa.Table] = {}

    def sink(table: pa.Table, batch: Any) -> None:
        given[batch.id] = table
        between()

    session = ms.Session(engine="spark")
    for name, factor in (("A", 3), ("B", 5)):
        session.source(f"numbers_{name}", lambda factor=factor: _rows(factor))
        session.sql(
            f"CREATE STREAM {name} (t BIGINT, k BIGINT, v BIGINT) SOURCE numbers_{name}() "
            "ORDERED BY t"
        )
    session.sql(JOIN).start(sink, checkpoint=str(tmp_path), trigger="1 second").wait()
    return list(given.values())


def _rows(factor: int) -> Any:
    import time

    for i in range(ROWS):
        if i % 50 == 0:
            time.sleep(0.3)
        yield {"t": i, "k": i * factor % 7, "v": i * i % 23}


def test_started(tmp_path: Path) -> None:
    expected = elements([session_of("local").sql(JOIN).run()])
    assert elements(started(tmp_path, lambda: None)) == expected


def test_keepers_that_are_killed(tmp_path: Path) -> None:
    def kill() -> None:
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if b"millstream.spark.keeper_process" in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)

    expected = elements([session_of("local").sql(JOIN).run()])
    assert elements(started(tmp_path, kill)) == expected


def test_the_active_session_of_the_user_stays_active() -> None:
    session = session_of("spark")
    session.sql(JOIN).run()
    assert SparkSession.getActiveSession() is session.spark
    session.sql(JOIN).start("noop").wait()
    assert SparkSession.getActiveSession() is session.spark
    assert ms.Session(engine="spark").spark is session.spark
