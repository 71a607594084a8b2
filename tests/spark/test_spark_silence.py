"""While Spark gives no batches, the clock moves the frontier of queries on Spark."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millstream as ms

pytestmark = pytest.mark.xdist_group("spark")

SOON = 120.0  # seconds: what does not happen by then does not happen


def count(changes: list[dict[str, Any]]) -> list[int]:
    """What COUNT(*) AS n was, one after the other."""
    return [row["n"] for row in changes if row["change"] > 0]


def await_count(given: list[dict[str, Any]], wanted: list[int]) -> None:
    deadline = time.monotonic() + SOON
    while count(given) != wanted:
        assert time.monotonic() < deadline, given
        time.sleep(0.05)


def test_a_window_over_arrivals_expires_in_silence() -> None:
    session = ms.Session(engine="spark")
    feed = session.feed("s", {"x": "BIGINT"})
    given: list[dict[str, Any]] = []
    query = session.sql("SELECT COUNT(*) AS n FROM s WINDOW(RANGE 1 SECOND) EMIT CHANGES")
    with query.start(lambda table, _: given.extend(table.to_pylist())) as running:
        feed.send([{"x": 1}, {"x": 2}, {"x": 3}])
        await_count(given, [3, 0])
        assert running.progress.late == 0


def test_a_frame_that_is_idle_continues_by_the_clock(tmp_path: Path) -> None:
    folder, checkpoint = tmp_path / "rows", str(tmp_path / "checkpoint")
    folder.mkdir()

    def write(name: str, *times: int) -> None:
        pq.write_table(pa.table({"t": times}), tmp_path / name)
        (tmp_path / name).rename(folder / name)

    def start() -> tuple[ms.Running, list[dict[str, Any]]]:
        session = ms.Session(engine="spark")
        frame = session.spark.readStream.schema("t bigint").parquet(str(folder))
        session.stream("s", frame, time="t", unit="seconds", idle="1 second")
        given: list[dict[str, Any]] = []
        query = session.sql("SELECT COUNT(*) AS n FROM s WINDOW(RANGE 3) EMIT CHANGES")
        sink = query.start(lambda table, _: given.extend(table.to_pylist()), checkpoint=checkpoint)
        return sink, given

    write("a.parquet", 100, 101)
    running, given = start()
    with running:
        await_count(given, [1, 2, 1, 0])
        reached = running.frontier
        assert isinstance(reached, int)
        assert reached > 104
    running, given = start()
    with running:
        assert running.frontier >= reached  # type: ignore[operator]
        write("b.parquet", 103, 10_000, 10_001)
        await_count(given, [1, 2, 1, 0])
        assert running.progress.late == 1
