"""Time in running queries: frontiers, late rows, the time of arrival, idle sources."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

import millstream as ms
from runtime.live import BID, SOON, Seen, bid, bid_feed, live_session, values

NOON = datetime.datetime(2024, 1, 1, 12)


def moment(seconds: int) -> datetime.datetime:
    return NOON + datetime.timedelta(seconds=seconds)


# --- disorder -------------------------------------------------------------------------------------


def test_rows_of_one_batch_need_no_order() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    with session.sql("SELECT t FROM Bid WINDOW(ROWS 2)").start() as running:
        feed.send([bid(5), bid(1), bid(3)])
        feed.close()
        assert running.wait(SOON)
    given = running.results().to_pylist()
    assert sorted(values(given, "t", "valid_from", "valid_to")) == [
        (1, 1, 5), (3, 3, 2**63 - 1), (5, 5, 2**63 - 1),
    ]  # fmt: skip


def test_a_delay_holds_the_frontier_back() -> None:
    session, _ = live_session()
    feed = bid_feed(session, delay=4)
    seen = Seen()
    with session.sql("SELECT COUNT(*) AS n FROM Bid WINDOW(RANGE 2) EMIT CHANGES").start(seen):
        feed.send(bid(10))
        feed.send(bid(7))  # within the delay
        feed.send(bid(20))
        seen.await_frontier(16)
    assert _summed(seen) == {7: 1, 9: 0, 10: 1, 12: 0}


def _summed(seen: Seen) -> dict[int, int]:
    """The count after each instant of change."""
    counts: dict[int, int] = {}
    present: dict[int, int] = {}
    for row in seen.rows():
        present[row["n"]] = present.get(row["n"], 0) + row["change"]
        held = [n for n, times in present.items() if times > 0]
        counts[row["at"]] = max(held, default=0)
    return counts


def test_a_row_of_the_frontier_itself_is_not_late() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    seen = Seen()
    with session.sql("SELECT DISTINCT k FROM Bid WINDOW(RANGE 3)").start(seen) as running:
        feed.send(bid(5, 1))
        seen.await_frontier(5)
        feed.send(bid(5, 2))
        seen.await_rows(2)
        assert running.progress.late == 0


def test_late_rows_are_counted_kept_and_handed_over() -> None:
    session, _ = live_session()
    feed = bid_feed(session, delay=2)
    seen = Seen()
    handed: list[pa.Table] = []
    query = session.sql("SELECT k FROM Bid WINDOW(RANGE 3) GROUP BY k")
    with query.start(seen, late=handed) as running:
        feed.send(bid(10, 1))
        seen.await_frontier(8)
        feed.send([bid(7, 2), bid(8, 3), bid(3, 4)])
        feed.heartbeat(30)
        seen.await_frontier(30)
        assert sorted(values(seen.rows(), "k")) == [1, 3]
        assert running.late["Bid"].to_pylist() == [bid(3, 4), bid(7, 2)]
        assert running.metrics.sources["Bid"].late == 2
    (table,) = handed
    assert table.to_pylist() == [bid(3, 4), bid(7, 2)]
    assert table.schema.metadata == {b"stream": b"Bid"}


def test_the_output_for_late_rows_may_be_a_function() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    handed: list[int] = []
    query = session.sql("SELECT COUNT(*) AS n FROM Bid WINDOW(RANGE 2)")
    with query.start("noop", late=lambda table: handed.append(table.num_rows)) as running:
        feed.send(bid(10))
        feed.heartbeat(11)
        running._worker.await_frontier(10, SOON)
        feed.send(bid(9))
    assert handed == [1]


def test_only_the_last_late_rows_are_kept() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    with session.sql("SELECT DISTINCT k FROM Bid WINDOW(RANGE 2)").start("noop") as running:
        feed.heartbeat(100_000)
        running._worker.await_frontier(99_999, SOON)
        for first in range(0, 30_000, 1_000):
            feed.send([bid(first + i) for i in range(1_000)])
    assert running.progress.late == 30_000
    kept = running.late["Bid"]
    assert 10_000 <= kept.num_rows < 30_000
    assert kept.column("t")[-1].as_py() == 29_999


def test_a_query_without_state_has_no_late_rows() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    seen = Seen()
    with session.sql("SELECT t FROM Bid WINDOW(RANGE 5) WHERE k = 1").start(seen) as running:
        feed.send(bid(10))
        seen.await_rows(1)
        feed.send(bid(2))
        assert values(seen.await_rows(2), "t", "valid_from") == [(10, 10), (2, 2)]
        assert running.progress.late == 0
        assert running.frontier == 10


def test_ties_go_by_arrival_also_across_batches() -> None:
    session, _ = live_session()
    feed = bid_feed(session, delay=5)
    query = session.sql("SELECT LAST(price) AS p, FIRST(price) AS q FROM Bid WINDOW(RANGE 2)")
    with query.start() as running:
        for price in (4, 9, 2):
            feed.send(bid(3, price=price))
        feed.heartbeat(8)
        assert query.snapshot(3, SOON).to_pylist() == [{"p": 2, "q": 4}]
        assert running.progress.late == 0


def test_first_and_last_go_by_time_then_by_arrival() -> None:
    session, _ = live_session()
    feed = bid_feed(session, delay=5)
    query = session.sql("SELECT LAST(price) AS p, FIRST(price) AS q FROM Bid WINDOW(RANGE 9)")
    with query.start() as running:
        for t, price in ((3, 1), (5, 2), (4, 3), (3, 4), (5, 5), (2, 6)):
            feed.send(bid(t, price=price))
        feed.heartbeat(4)
        assert query.snapshot(3, SOON).to_pylist() == [{"p": 4, "q": 6}]
        assert running.metrics.sources["Bid"].held == 3
        feed.heartbeat(10)
        assert query.snapshot(5, SOON).to_pylist() == [{"p": 5, "q": 6}]


# --- the time of arrival --------------------------------------------------------------------------


def arrivals(session: ms.Session, name: str = "s", **options: Any) -> ms.Feed:
    return session.feed(name, {"x": "BIGINT"}, **options)


def microseconds(moments: list[Any]) -> list[int]:
    epoch = datetime.datetime(1970, 1, 1)
    return [(m - epoch) // datetime.timedelta(microseconds=1) for m in moments]


def test_rows_get_the_time_at_which_they_arrive() -> None:
    session, clock = live_session()
    feed = arrivals(session)
    seen = Seen()
    with session.sql("SELECT x FROM s").start(seen):
        feed.send([{"x": 1}, {"x": 2}])
        seen.await_rows(2)
        feed.send([{"x": 3}])  # the clock has not moved
        seen.await_rows(3)
        clock.move(50)
        feed.send([{"x": 4}])
        seen.await_rows(4)
    assert microseconds(values(seen.rows(), "valid_from")) == [
        1_000_000, 1_000_000, 1_000_001, 1_000_050,
    ]  # fmt: skip
    assert microseconds([b.frontier for b in seen.batches]) == [1_000_001, 1_000_002, 1_000_051]


def test_a_stream_with_the_time_of_arrival_holds_no_other_back() -> None:
    session, _ = live_session()
    arrivals(session, "a")
    feed = session.feed("b", {"ts": "TIMESTAMP", "x": "BIGINT"}, "ts")
    seen = Seen()
    text = "SELECT x FROM a UNION ALL SELECT x FROM b EMIT CHANGES"
    with session.sql(text).start(seen):
        feed.send([{"ts": datetime.datetime(1970, 1, 1, 0, 0, 0, 500), "x": 1}])
        feed.heartbeat(datetime.datetime(1970, 1, 1, microsecond=600))
        seen.await_rows(2)
        assert microseconds([seen.batches[-1].frontier]) == [600]


# --- idle sources ---------------------------------------------------------------------------------

BOTH = "SELECT a.k FROM A a WINDOW(RANGE 10), B b WINDOW(RANGE 10) WHERE a.k = b.k EMIT CHANGES"


def pair(session: ms.Session, **options: Any) -> tuple[ms.Feed, ms.Feed]:
    return (
        bid_feed(session, "A", unit="seconds"),
        bid_feed(session, "B", unit="seconds", idle="3 seconds", **options),
    )


def test_an_idle_source_does_not_hold_the_others_back() -> None:
    session, clock = live_session()
    a, b = pair(session)
    seen = Seen()
    with session.sql(BOTH).start(seen) as running:
        b.send(bid(1))
        a.send(bid(1))
        seen.await_frontier(1)
        a.send(bid(50))
        clock.move(2_999_999)
        a.heartbeat(60)
        running._worker.await_frontier(1, 0.01)
        assert running.frontier == 1
        clock.move(1)
        seen.await_frontier(60)
        assert running.metrics.sources["B"].idle
        a.heartbeat(70)  # while it is idle, it follows
        seen.await_frontier(70)
        b.send([bid(65), bid(80)])  # it wakes: the first is late
        a.heartbeat(75)
        seen.await_frontier(75)
        assert running.late["B"].column("t").to_pylist() == [65]
        assert not running.metrics.sources["B"].idle
        a.heartbeat(100)
        running._worker.await_frontier(85, 0.01)
        assert running.frontier == 80


def test_where_all_sources_are_idle_the_furthest_one_counts() -> None:
    session, clock = live_session()
    a = bid_feed(session, "A", unit="seconds", idle="5 seconds")
    b = bid_feed(session, "B", unit="seconds", idle="5 seconds")
    seen = Seen()
    with session.sql(BOTH).start(seen):
        a.send(bid(50))
        b.send(bid(20))
        seen.await_frontier(20)
        clock.move(5_000_000)
        seen.await_frontier(50)


def test_a_query_sleeps_while_its_only_source_is_idle() -> None:
    session, clock = live_session()
    feed = bid_feed(session, unit="seconds", idle="5 seconds")
    seen = Seen()
    with session.sql("SELECT t FROM Bid").start(seen) as running:
        clock.await_sleep(1)
        clock.move(6_000_000)
        clock.await_sleep(2)
        assert running.metrics.sources["Bid"].idle
        feed.send(bid(1))
        seen.await_rows(1)


def test_idle_needs_a_unit() -> None:
    session, _ = live_session()
    session.feed("s", BID, "t", idle=5)
    with pytest.raises(ms.QueryError, match='"s" has BIGINT time in raw units: it is not known'):
        session.sql("SELECT t FROM s").start()


def test_idle_times_do_not_apply_to_bounded_data() -> None:
    session, clock = live_session()
    session.stream("A", [bid(1), bid(5)], time="t", unit="seconds", idle="1 second")
    session.stream("B", [bid(1), bid(900)], time="t", unit="seconds", idle="1 second")
    query = session.sql(BOTH)
    running = query.start()
    clock.move(10_000_000)
    running.wait(SOON)
    assert running.results().num_rows == query.run().num_rows
    assert running.progress.late == 0


# --- intervals ------------------------------------------------------------------------------------


def test_rows_may_bring_their_own_interval() -> None:
    session, _ = live_session()
    schema = {"a": "BIGINT", "b": "BIGINT", "x": "STRING"}
    feed = session.feed("s", schema, ("a", "b"))
    with session.sql("SELECT COUNT(*) AS n FROM s").start() as running:
        feed.send([(1, 9, "long"), (2, None, "endless"), (3, 3, "never")])
        feed.send([(5, 6, "short")])
        feed.heartbeat(20)
        counts = [running.snapshot(t, SOON).to_pylist()[0]["n"] for t in (1, 2, 5, 6, 9)]
        assert counts == [1, 2, 3, 2, 1]
        assert "the row is valid to 3, where it begins" in str(running.errors[0])
