"""While nothing arrives, the clock moves the frontier: windows expire in silence."""

from __future__ import annotations

import datetime
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.runtime.inputs import Input
from millstream.runtime.silence import Silence
from runtime.live import SOON, Seen, bid, bid_feed, live_session, values

SECOND = 1_000_000
LAST_SECOND = "SELECT COUNT(*) AS n FROM s WINDOW(RANGE 1 SECOND) EMIT CHANGES"
LAST_TEN = "SELECT COUNT(*) AS n FROM Bid WINDOW(RANGE 10) EMIT CHANGES"


def arrivals(session: ms.Session, name: str = "s") -> ms.Feed:
    return session.feed(name, {"x": "BIGINT"})


def patient(session: ms.Session, **options: Any) -> ms.Feed:
    return bid_feed(session, **{"unit": "seconds", "idle": "3 seconds"} | options)


def count(rows: list[dict[str, Any]]) -> int:
    """What COUNT(*) AS n is after all changes."""
    held: dict[int, int] = {}
    for row in rows:
        held[row["n"]] = held.get(row["n"], 0) + row["change"]
    (present,) = (n for n, times in held.items() if times)
    return present


def taken(running: ms.Running, rows: int) -> None:
    """Wait until the query has taken so many rows."""
    deadline = time.monotonic() + SOON
    while running.progress.rows_in < rows:
        assert time.monotonic() < deadline, running.progress
        time.sleep(0.001)


# --- streams by arrival time ----------------------------------------------------------------------


def test_a_window_over_arrivals_expires_in_silence() -> None:
    session, clock = live_session()
    feed = arrivals(session)
    seen = Seen()
    with session.sql(LAST_SECOND).start(seen):
        feed.send([{"x": 1}, {"x": 2}, {"x": 3}])
        assert count(seen.await_rows(1)) == 3
        clock.pass_in_silence(4 * SECOND)
        assert count(seen.await_rows(3)) == 0
        assert values(seen.rows(), "at")[-1] == datetime.datetime(1970, 1, 1, 0, 0, 2)


def test_rows_that_arrive_after_silence_are_never_late() -> None:
    session, clock = live_session()
    feed = arrivals(session)
    seen = Seen()
    with session.sql(LAST_SECOND).start(seen) as running:
        for n in range(3):
            feed.send([{"x": n}])
            seen.await_rows(3 * n + 1)
            clock.pass_in_silence(2 * SECOND)
            seen.await_rows(3 * n + 3)
        assert running.progress.late == 0


def test_a_snapshot_waits_for_the_clock_alone() -> None:
    session, clock = live_session()
    feed = arrivals(session)
    query = session.sql("SELECT COUNT(*) AS n FROM s WINDOW(RANGE 1 SECOND)")
    with query.start() as running:
        feed.send([{"x": 1}])
        taken(running, 1)
        clock.pass_in_silence(5 * SECOND)
        at = datetime.datetime(1970, 1, 1, 0, 0, 5)
        assert query.snapshot(at, SOON).to_pylist() == [{"n": 0}]


def test_a_view_forgets_in_silence() -> None:
    session, clock = live_session()
    feed = arrivals(session)
    view = session.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT x FROM s WINDOW(RANGE 1 SECOND) RETAIN 10 SECONDS"
    )
    feed.send([{"x": 7}])
    taken(view.running[0], 1)
    start = datetime.datetime(1970, 1, 1, 0, 0, 1)
    clock.pass_in_silence(100)
    assert view.as_of(start, SOON).to_pylist() == [{"x": 7}]
    clock.pass_in_silence(3 * SECOND)
    assert view.as_of(start + datetime.timedelta(seconds=2), SOON).to_pylist() == []
    view.stop()


# --- IDLE AFTER -----------------------------------------------------------------------------------


def test_a_single_stream_continues_by_the_time_since_its_last_row() -> None:
    session, clock = live_session()
    feed = patient(session)
    seen = Seen()
    with session.sql(LAST_TEN).start(seen) as running:
        feed.send([bid(100), bid(104)])
        seen.await_frontier(104)
        clock.pass_in_silence(3 * SECOND - 1)
        running._worker.await_frontier(104, 0.05)
        assert running.frontier == 104  # not idle yet
        clock.pass_in_silence(1)
        seen.await_frontier(107)
        assert running.frontier == 107
        clock.pass_in_silence(8 * SECOND)
        seen.await_frontier(115)
        assert count(seen.rows()) == 0
        assert running.metrics.sources["Bid"].idle


def test_a_delay_still_holds_the_frontier_back() -> None:
    session, clock = live_session()
    feed = patient(session, delay="5 seconds")
    seen = Seen()
    with session.sql(LAST_TEN).start(seen) as running:
        feed.send([bid(90), bid(100)])
        seen.await_frontier(95)
        clock.pass_in_silence(4 * SECOND)
        seen.await_frontier(99)
        assert running.frontier == 99


def test_rows_below_a_frontier_that_the_clock_moved_are_late() -> None:
    session, clock = live_session()
    feed = patient(session)
    seen = Seen()
    with session.sql(LAST_TEN).start(seen) as running:
        feed.send([bid(99), bid(100)])
        seen.await_frontier(100)
        clock.pass_in_silence(10 * SECOND)
        seen.await_frontier(110)
        feed.send([bid(109), bid(110), bid(111)])
        seen.await_frontier(111)
        assert running.progress.late == 1
        assert running.late["Bid"].column("t").to_pylist() == [109]
        assert not running.metrics.sources["Bid"].idle


def test_coarse_units_lose_no_time() -> None:
    session, clock = live_session()
    feed = patient(session)
    seen = Seen()
    with session.sql(LAST_TEN).start(seen) as running:
        feed.send([bid(99), bid(100)])
        seen.await_frontier(100)
        clock.pass_in_silence(3 * SECOND)
        seen.await_frontier(103)
        for look in range(1, 11):  # each in the midst of a unit
            sleeps = clock.sleeps
            clock.pass_in_silence(1_400_000)
            seen.await_frontier(103 + look * 14 // 10)
            clock.await_sleep(sleeps + 1)
        assert running.frontier == 117


def test_nothing_is_known_of_a_stream_without_rows() -> None:
    session, clock = live_session()
    patient(session)
    with session.sql(LAST_TEN).start("noop") as running:
        clock.await_sleep(1)
        clock.pass_in_silence(60 * SECOND)
        clock.await_sleep(2)
        assert running.frontier is None


def test_idle_streams_beside_one_that_is_awake_wait_for_it() -> None:
    session, clock = live_session()
    a, b = bid_feed(session, "A", unit="seconds"), patient(session, name="B")
    text = "SELECT k FROM A UNION ALL SELECT k FROM B EMIT CHANGES"
    seen = Seen()
    with session.sql(text).start(seen) as running:
        a.send(bid(10))
        b.send(bid(50))
        seen.await_frontier(10)
        sleeps = clock.sleeps
        clock.pass_in_silence(100 * SECOND)
        clock.await_sleep(sleeps + 1)
        assert running.frontier == 10
        assert running.metrics.sources["B"].frontier == 50


def test_a_busy_query_does_not_count_as_silence() -> None:
    session, clock = live_session()
    feed = patient(session)
    seen = Seen()

    def slow(table: Any, batch: Any) -> None:
        if not seen.batches:
            clock.move(100 * SECOND)
        seen(table, batch)

    with session.sql(LAST_TEN).start(slow) as running:
        feed.send([bid(99), bid(100)])
        seen.await_frontier(100)
        feed.send(bid(101))
        seen.await_frontier(101)
        assert running.progress.late == 0


# --- what never moves by the clock ----------------------------------------------------------------


@pytest.mark.parametrize("trigger", [None, "available_now"])
def test_files_that_are_read_to_their_end_are_never_idle(
    tmp_path: Path, trigger: str | None
) -> None:
    (tmp_path / "a.csv").write_text("t\n1\n2\n90\n")
    session, _ = live_session()
    follow = ", follow => TRUE" if trigger else ""
    session.sql(
        f"CREATE STREAM s (t BIGINT) SOURCE csv('{tmp_path}'{follow}) "
        "ORDERED BY t UNIT SECONDS IDLE AFTER 1 SECOND"
    )
    running = session.sql("SELECT COUNT(*) AS n FROM s WINDOW(RANGE 5)").start(trigger=trigger)
    rounds = running._rounds
    assert running.wait(SOON)
    assert not rounds._silence._patient()
    assert running.progress.late == 0


# --- tables alone ---------------------------------------------------------------------------------


def test_a_change_of_a_table_that_lies_ahead_takes_effect_in_its_time() -> None:
    session, clock = live_session()
    table = session.sql("CREATE TABLE t (id INT)")
    seen = Seen()
    with session.sql("SELECT COUNT(*) AS n FROM t EMIT CHANGES").start(seen):
        seen.await_rows(1)
        table.insert([{"id": 1}], at=datetime.datetime(1970, 1, 1, 0, 0, 5))
        seen.await_frontier(datetime.datetime(1970, 1, 1, 0, 0, 1))
        clock.pass_in_silence(3 * SECOND)
        assert count(seen.rows()) == 0
        clock.pass_in_silence(3 * SECOND)
        assert count(seen.await_rows(3)) == 1


def test_tables_alone_sleep_while_nothing_lies_ahead() -> None:
    session, clock = live_session()
    session.sql("CREATE TABLE t (id INT)")
    seen = Seen()
    with session.sql("SELECT COUNT(*) AS n FROM t EMIT CHANGES").start(seen) as running:
        seen.await_rows(1)
        batches = running.progress.batches
        sleeps = clock.sleeps
        clock.pass_in_silence(1_000 * SECOND)
        clock.await_sleep(sleeps + 1)
        assert running.progress.batches == batches


# --- restarts -------------------------------------------------------------------------------------


def test_a_frontier_that_the_clock_moved_outlasts_a_restart(tmp_path: Path) -> None:
    given: list[dict[str, Any]] = []
    session, clock = live_session()
    feed = patient(session)
    query = session.sql(LAST_TEN)
    seen = Seen()
    with query.start(seen, checkpoint=str(tmp_path)):
        feed.send([bid(99), bid(100)])
        seen.await_frontier(100)
        clock.pass_in_silence(6 * SECOND)
        seen.await_frontier(106)
    given += seen.rows()
    again, clock = live_session()
    feed = patient(again)
    seen = Seen()
    with again.sql(LAST_TEN).start(seen, checkpoint=str(tmp_path)) as running:
        assert running.frontier == 106
        feed.send([bid(105), bid(107)])
        seen.await_frontier(107)
        assert running.progress.late == 1
        clock.pass_in_silence(20 * SECOND)
        seen.await_frontier(127)
    given += seen.rows()
    # The row at 105 was late.
    changes = [(row["at"], row["n"]) for row in given if row["change"] > 0]
    assert changes == [(99, 1), (100, 2), (107, 3), (109, 2), (110, 1), (117, 0)]


# --- the timer ------------------------------------------------------------------------------------


class Still(Input):
    """An idle stream from which nothing comes."""

    ready = False
    queued = 0
    take = close = None  # type: ignore[assignment]


@pytest.mark.parametrize(("took", "most"), [(0, 3_800), (100, 3_800), (500_000, 200)])
def test_the_clock_is_looked_at_less_and_less_often(took: int, most: int) -> None:
    """Within an hour of silence; a look takes some microseconds."""
    session, clock = live_session()
    arrivals(session)
    input = Still(session.catalog.streams[0], [])
    silence = Silence([input], clock, by_clock=True, by_granule=False, bounded=False)
    silence.begin(clock.ticks())
    silence.heard([input])
    began, looks = clock.ticks(), []
    while clock.ticks() < began + 3_600 * SECOND:
        look = silence.next_look([], 0)
        assert look is not None
        clock.move(look - clock.ticks())
        looks.append(clock.ticks() - began)
        at = clock.ticks()
        clock.move(took)
        silence.looked(at)
    assert len(looks) <= most
    gaps = [(before, after - before) for before, after in pairwise(looks)]
    assert all(gap <= max(before / 15, 50_000 + 10 * took) for before, gap in gaps)
