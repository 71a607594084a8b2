"""Queries that fall behind say so once; metrics answer at once, whatever the operators do."""

from __future__ import annotations

import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import millstream as ms
from millstream.logical.catalog import Stream
from millstream.runtime.inputs import Input
from millstream.runtime.lag import Lag
from runtime.live import SOON, HandClock, bid, bid_feed, live_session

SECOND = 1_000_000


class Played(Input):
    """An input whose counts a test sets."""

    queued: int | None = 0  # type: ignore[assignment]
    ready = False
    take = close = None  # type: ignore[assignment]


def played(rate: float | None = None, queued: int | None = 0) -> Played:
    session, _ = live_session()
    bid_feed(session)
    stream = session.catalog.streams[0]
    assert isinstance(stream, Stream)
    input = Played(replace(stream, rate=rate), [])
    input.queued = queued
    return input


def told(
    input: Played, steps: list[tuple[float, int, int | None]], sheds: bool = False
) -> list[str]:
    """What is warned of in rounds that take some seconds and some rows, and leave some waiting."""
    clock = HandClock()
    lag = Lag("q", [input], clock, sheds)
    lag.begin(clock.ticks())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for seconds, rows, queued in steps:
            began = clock.ticks()
            clock.move(int(seconds * SECOND))
            input.received += rows
            input.queued = queued
            lag.look(began)
    assert all(w.category is ms.OverloadWarning for w in caught)
    return [str(w.message) for w in caught]


BEHIND: list[tuple[float, int, int | None]] = [
    (2, 2_000, 8_000),
    (2, 2_000, 16_000),
    (2, 2_000, 24_000),
]


def test_rows_that_wait_for_long_are_warned_of_once() -> None:
    assert told(played(), BEHIND) == [
        'warning: query "q" falls behind: rows of stream "Bid" wait for about 16 seconds; 5,000 '
        "rows per second arrive (no rate is declared), and 1,000 are taken\n"
        "help: allow dropping rows with SHED, or run the query on more processors"
    ]


@pytest.mark.parametrize(
    ("rate", "told_rate", "help"),
    [
        (None, "no rate is declared", "start the query again WITH (rate = 5000)"),
        (1_000, "1,000 are declared", "start the query again WITH (rate = 5000)"),
        (6_000, "6,000 are declared", "measure it with millstream calibrate"),
    ],
)
def test_what_helps_where_rows_may_be_dropped(rate: float, told_rate: str, help: str) -> None:
    (text,) = told(played(rate), BEHIND, sheds=True)
    assert f"arrive ({told_rate})" in text
    assert text.endswith(help)


@pytest.mark.parametrize(
    "steps",
    [
        [(5, 10, 5_000), (2, 5_000, 0), (2, 5_000, 0)],  # the first batch compiles
        [(2, 2_000, 4_000), (2, 2_000, 4_000), (2, 2_000, 4_000)],  # it keeps up
        [(0.1, 100, 9_000)] * 5,  # no second has passed
    ],
)
def test_rows_that_wait_for_a_moment_are_not(steps: list[tuple[float, int, int | None]]) -> None:
    assert told(played(), steps) == []


def test_batches_of_spark_that_grow_are_warned_of() -> None:
    grows = [(2.0, 2_000, None), (4.0, 4_000, None), (8.0, 8_000, None)]
    (text,) = told(played(queued=None), grows)
    assert "wait for about 8 seconds; 2,000 rows per second arrive" in text
    assert "and 1,000 are taken" in text
    steady = [(8.0, 8_000, None)] * 5
    assert told(played(queued=None), steady) == []


@pytest.mark.parametrize("checkpoint", [False, True])
def test_metrics_answer_while_a_batch_is_worked_on(tmp_path: Path, checkpoint: bool) -> None:
    session = ms.Session(engine="local")
    feed = bid_feed(session)
    goes_on, at_work = threading.Event(), threading.Event()

    def slow(values: pa.Array) -> pa.Array:
        if values.to_pylist() == [7]:
            at_work.set()
            assert goes_on.wait(SOON)
        return values

    session.function("slow", slow, returns="BIGINT")
    query = session.sql(
        "SELECT slow(price) AS p, COUNT(*) AS n FROM Bid WINDOW(RANGE 9) GROUP BY 1"
    )
    folder = str(tmp_path) if checkpoint else None
    with query.start("noop", checkpoint=folder) as running:
        feed.send(bid(1, price=6))
        running._worker.await_frontier(0, SOON)
        before = {m.name for m in running.metrics.operators}
        feed.send(bid(2, price=7))
        assert at_work.wait(SOON)
        feed.send(bid(3, price=8))
        began = time.monotonic()
        try:
            metrics, progress, size = running.metrics, running.progress, running.state_bytes
        finally:
            goes_on.set()
        assert time.monotonic() - began < SOON / 2
        assert {m.name for m in metrics.operators} == before
        assert metrics.sources["Bid"].queued == 1
        assert progress.rows_in == 2
        assert size >= 0
    assert running.metrics.sources["Bid"].rows == 3
