"""What the benchmark beside Spark's own operators compares is the same work."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.spark.data import make_streams
from benchmarks.spark.workloads import WORKLOADS

import millstream as ms
from millstream.spark.starting import for_batches, local_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.xdist_group("spark")

ROWS = 4_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_streams(tmp_path_factory.mktemp("streams") / "files", "AB", ROWS, 5)


def query(name: str, files: Path) -> ms.Query:
    session = ms.Session(engine="local")
    for stream in "AB":
        session.stream(stream, pq.read_table(files / stream), time="ts")
    return session.sql(WORKLOADS[name].sql)


def own(name: str, files: Path) -> DataFrame:
    """Spark's answer; over files that are all there it is that of the stream."""
    spark = for_batches(local_spark())
    return WORKLOADS[name].own({s: spark.read.parquet(str(files / s)) for s in "AB"})


def rows(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def test_join(files: Path) -> None:
    running = query("join", files).start()  # it gives each pair; `run` gives equal ones together
    assert running.wait(60)
    given = running.results().select(["k", "av", "bv"])
    assert rows(given) == rows(own("join", files).toArrow())


def test_hopping_at_the_ends_of_windows(files: Path) -> None:
    windows = own("hopping", files).selectExpr("window.end AS until", "k", "n", "m").toArrow()
    ours = query("hopping", files)
    for seconds in (1, 7, 10, 15):
        until = EPOCH + timedelta(seconds=seconds)
        expected = {(r["k"], r["n"], r["m"]) for r in windows.to_pylist() if r["until"] == until}
        at = ours.snapshot(until - timedelta(microseconds=1))
        assert {tuple(row.values()) for row in at.to_pylist()} == expected
