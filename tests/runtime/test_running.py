"""A query's life: started, watched, asked for snapshots, stopped."""

from __future__ import annotations

import datetime
import math
import threading
from typing import Any

import pyarrow as pa
import pytest

import millstream as ms
from runtime.live import BID, SOON, Seen, bid, bid_feed, live_session, values

COUNT = "SELECT COUNT(*) AS n FROM Bid WINDOW(RANGE 10)"


def test_what_is_sent_is_answered() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    seen = Seen()
    running = session.sql("SELECT k, price FROM Bid WHERE price > 5").start(seen)
    assert feed.send([bid(1, 1, 3), bid(2, 2, 7)]) == 2
    assert seen.await_rows(1) == [{"k": 2, "price": 7, "valid_from": 2, "valid_to": 3}]
    feed.send(bid(4, 3, 9))
    assert values(seen.await_rows(2), "k") == [2, 3]
    assert running.stop()
    assert seen.ended


def test_batches_are_numbered_and_tell_the_frontier() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    seen = Seen()
    with session.sql("SELECT k FROM Bid").start(seen) as running:
        assert running.frontier is None
        for t in (1, 5, 9):
            feed.send(bid(t))
            seen.await_frontier(t)
        assert running.frontier == 9
    assert [(b.id, b.frontier) for b in seen.batches] == [(0, 1), (1, 5), (2, 9)]
    assert len(seen.threads) == 1
    assert threading.get_ident() not in seen.threads


def test_the_frontier_of_timestamps_is_a_moment() -> None:
    session, _ = live_session()
    feed = session.feed("s", {"ts": "TIMESTAMP"}, "ts")
    seen = Seen()
    with session.sql("SELECT ts FROM s").start(seen):
        feed.send([{"ts": datetime.datetime(2024, 5, 1, 12)}])
        seen.await_rows(1)
        assert seen.batches[0].frontier == datetime.datetime(2024, 5, 1, 12)
        feed.close()
        seen.await_frontier(datetime.datetime(9999, 1, 1))


def test_changes_have_an_instant_and_a_sign() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    seen = Seen()
    with session.sql(COUNT + " EMIT CHANGES").start(seen):
        feed.send([bid(1), bid(4)])
        feed.heartbeat(12)
        seen.await_frontier(12)
    assert values(seen.rows(), "n", "at", "change") == [
        (1, 1, 1), (1, 4, -1), (2, 4, 1), (2, 11, -1), (1, 11, 1),
    ]  # fmt: skip


def test_a_frontier_moves_without_rows() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    seen = Seen()
    with session.sql("SELECT k FROM Bid").start(seen):
        feed.heartbeat(7)
        seen.await_frontier(7)
    assert [table.num_rows for table in seen.tables] == [0]
    assert seen.tables[0].column_names == ["k", "valid_from", "valid_to"]


# --- results --------------------------------------------------------------------------------------


def test_without_a_sink_results_are_kept() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    running = session.sql("SELECT k FROM Bid").start()
    assert running.results().num_rows == 0
    feed.send([bid(1, 1), bid(2, 2)])
    running.snapshot(1, SOON)
    assert values(running.results().to_pylist(), "k") == [1, 2]
    feed.close()
    assert running.wait(SOON)
    assert running.results().column_names == ["k", "valid_from", "valid_to"]


def test_a_query_with_a_sink_keeps_no_results() -> None:
    session, _ = live_session()
    bid_feed(session)
    with session.sql("SELECT k FROM Bid").start("noop") as running:
        with pytest.raises(ms.QueryError, match="has a sink and keeps no results"):
            running.results()
        with pytest.raises(ms.QueryError, match="keeps no answers for snapshots"):
            running.snapshot(1)


def test_the_console_prints_rows(capsys: pytest.CaptureFixture[str]) -> None:
    session, _ = live_session()
    session.stream("s", [{"t": 1, "x": "a"}, {"t": 2, "x": "b"}], time="t")
    session.sql("SELECT x FROM s WINDOW(RANGE UNBOUNDED)").start("console").wait(SOON)
    assert capsys.readouterr().out == (
        "x | valid_from | valid_to\na | 1 | ∞\nb | 2 | ∞\n"
    )  # fmt: skip


def test_rstream_gives_rows_anew_in_each_granule() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    query = session.sql("SELECT RSTREAM(COUNT(*) AS n) FROM Bid WINDOW(RANGE 20) GRANULARITY(5)")
    with query.start() as running:
        feed.send([bid(5), bid(30)])
        feed.heartbeat(50)
        running.snapshot(40, SOON)
        given = running.results().to_pylist()
    assert values(given[:3], "n", "valid_from", "valid_to") == [
        (1, 5, 10),
        (1, 10, 15),
        (1, 15, 20),
    ]


# --- snapshots ------------------------------------------------------------------------------------


@pytest.mark.parametrize("emit", ["", " EMIT CHANGES"])
@pytest.mark.parametrize("sink", [None, "noop"])
def test_a_snapshot_waits_for_the_frontier(emit: str, sink: str | None) -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    query = session.sql(COUNT + emit)
    with query.start(sink, snapshots=True):
        feed.send([bid(1), bid(3)])
        answers: list[pa.Table] = []
        asking = threading.Thread(target=lambda: answers.append(query.snapshot(5, SOON)))
        asking.start()
        feed.send(bid(5))
        assert answers == []
        feed.send([bid(6), bid(100)])  # past it at once: what held at 5 must not be forgotten
        asking.join(SOON)
        assert answers[0].to_pylist() == [{"n": 3}]
        assert query.snapshot(99).to_pylist() == [{"n": 0}]
    assert query.snapshot(99).to_pylist() == [{"n": 0}]


def test_a_snapshot_that_does_not_become_final() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    query = session.sql(COUNT)
    running = query.start()
    feed.send(bid(4))
    feed.send(bid(5))
    with pytest.raises(ms.QueryError, match="at 5 is not final: its frontier is"):
        query.snapshot(5, timeout=0.01)
    running.stop()
    with pytest.raises(ms.QueryError, match="frontier is 5 and the query has stopped"):
        query.snapshot(5)


@pytest.mark.parametrize("emit", ["", " EMIT CHANGES"])
def test_what_has_ended_is_forgotten(emit: str) -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    query = session.sql("SELECT t FROM Bid WINDOW(RANGE 10)" + emit)
    with query.start("noop", snapshots=True) as running:
        for first in range(0, 20_000, 500):
            feed.send([bid(t) for t in range(first, first + 500)])
            running.snapshot(first + 498, SOON)
        kept = running._rounds.delivery.kept
        assert kept is not None
        assert len(kept.batch()) < 10_000
        assert values(query.snapshot(19_998).to_pylist(), "t") == [*range(19_989, 19_999)]
        with pytest.raises(ms.QueryError, match="has forgotten the answer at 7"):
            query.snapshot(7)


def test_a_snapshot_leaves_the_running_query_as_it_is() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    text = "SELECT k, COUNT(*) AS n, MAX(price) AS best FROM Bid WINDOW(RANGE 10) GROUP BY k"
    query = session.sql(text)
    rows = [bid(t, t % 3, t * 7 % 11) for t in range(40)]
    with query.start() as running:
        for row in rows:
            feed.send(row)
            if row["t"]:
                query.snapshot(row["t"] - 1, SOON)
        feed.close()
        running.wait(SOON)
        assert len(running._rounds.executor.context.sources) == 1
        given = sorted(map(tuple, map(dict.values, running.results().to_pylist())))
    session.stream("Old", rows, time="t")
    expected = session.sql(text.replace("Bid", "Old")).run().to_pylist()
    assert given == sorted(map(tuple, map(dict.values, expected)))


# --- ends -----------------------------------------------------------------------------------------


def test_bounded_inputs_come_to_an_end() -> None:
    session, _ = live_session()
    session.stream("Bid", [bid(1), bid(4)], time="t")
    query = session.sql(COUNT)
    running = query.start()
    assert running.wait(SOON)
    assert running.state == "stopped"
    assert running.results().to_pylist() == query.run().to_pylist()
    assert running.frontier == 2**63 - 1
    assert query.snapshot(4).to_pylist() == [{"n": 2}]


@pytest.mark.parametrize("timeout", ["x", True, math.nan])
def test_timeouts_are_numbers(timeout: Any) -> None:
    session, _ = live_session()
    session.stream("Bid", [bid(1)], time="t")
    with session.sql(COUNT).start() as running:
        for wait in (running.wait, running.stop, lambda timeout: running.snapshot(1, timeout)):
            with pytest.raises(ms.QueryError, match="the timeout must be a number of seconds"):
                wait(timeout)


def test_a_closed_feed_ends_its_queries() -> None:
    session, _ = live_session()
    with bid_feed(session) as feed:
        running = session.sql(COUNT).start()
        feed.send(bid(1))
        assert not running.wait(0.01)
    assert running.wait(SOON)
    assert values(running.results().to_pylist(), "n", "valid_to") == [(1, 11), (0, 2**63 - 1)]
    late_comer = session.sql(COUNT).start()
    assert late_comer.wait(SOON)
    with pytest.raises(ms.QueryError, match='the feed of stream "Bid" is closed'):
        feed.send(bid(2))


def test_stop_answers_what_was_accepted_and_ends_nothing_early() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    hold = threading.Event()
    seen = Seen()

    def slow(table: pa.Table, batch: object) -> None:
        hold.wait(SOON)
        seen(table, batch)

    running = session.sql("SELECT t FROM Bid WINDOW(RANGE 10)").start(slow)
    for t in range(5):
        feed.send(bid(t))
    stopping = threading.Thread(target=running.stop)
    stopping.start()
    hold.set()
    stopping.join(SOON)
    assert values(seen.rows(), "t") == [0, 1, 2, 3, 4]
    assert seen.batches[-1].frontier == 4
    feed.send(bid(9))  # without a listener
    assert len(seen.rows()) == 5


def test_a_sink_may_stop_its_query() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    query = session.sql("SELECT t FROM Bid")
    running = query.start(lambda table, batch: query.running and query.running.stop())
    feed.send(bid(1))
    assert running.wait(SOON)


def test_a_query_may_be_started_again_but_not_twice_at_once() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    query = session.sql("SELECT t FROM Bid")
    first = query.start(name="watch")
    with pytest.raises(ms.QueryError, match='query "watch" is running already'):
        query.start()
    feed.send(bid(1))
    first.stop()
    with query.start() as second:
        feed.send(bid(2))
        second.snapshot(1, SOON)
        assert values(second.results().to_pylist(), "t") == [2]
    assert values(first.results().to_pylist(), "t") == [1]


def test_no_thread_is_left_behind() -> None:
    before = set(threading.enumerate())
    session, _ = live_session()
    bid_feed(session)
    session.stream("Ask", ({"t": t, "k": 1} for t in range(10**9)), "t", schema={"t": "BIGINT"})
    queries = [session.sql(text).start() for text in (COUNT, "SELECT t FROM Ask")]
    for running in queries:
        running.stop()
    left = [thread for thread in threading.enumerate() if thread not in before]
    for thread in left:
        thread.join(SOON)
    assert not any(thread.is_alive() for thread in left)


# --- the catalog ----------------------------------------------------------------------------------


def states(session: ms.Session) -> list[str]:
    return session.sql("SHOW QUERIES").column("state").to_pylist()


def test_the_catalog_shows_and_stops_running_queries() -> None:
    session, _ = live_session()
    bid_feed(session)
    query = session.sql("SELECT t FROM Bid")
    assert states(session) == ["registered"]
    query.start(name="watch")
    assert states(session) == ["running"]
    assert session.queries["watch"].state == "running"
    with pytest.raises(ms.CatalogError, match='query "watch" is running') as error:
        session.sql("DROP QUERY watch")
    assert "STOP QUERY watch" in str(error.value)
    session.sql("STOP QUERY watch")
    assert states(session) == ["stopped"]
    with pytest.raises(ms.CatalogError, match='query "watch" is not running'):
        session.sql("STOP QUERY watch")
    session.sql("DROP QUERY watch; DROP STREAM Bid")
    assert session.catalog.streams == []


def test_a_dropped_feed_is_closed() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    session.sql("DROP STREAM Bid")
    assert feed.closed


# --- triggers -------------------------------------------------------------------------------------


def test_a_trigger_gives_batches_at_most_so_often() -> None:
    session, clock = live_session()
    feed = bid_feed(session)
    seen = Seen()
    with session.sql("SELECT t FROM Bid").start(seen, trigger="500 milliseconds"):
        feed.send(bid(1))
        seen.await_rows(1)
        feed.send(bid(2))
        feed.send(bid(3))
        clock.move(499_999)
        assert len(seen.tables) == 1
        clock.move(1)
        assert values(seen.await_rows(3), "t") == [1, 2, 3]
        assert len(seen.tables) == 2


def test_available_now_reads_to_the_end() -> None:
    session, _ = live_session()
    session.stream("Bid", [bid(t) for t in range(50_000)], time="t")
    running = session.sql("SELECT t FROM Bid").start(trigger="available_now")
    assert running.wait(SOON)
    assert running.results().num_rows == 50_000
    bid_feed(session, "Live")
    with pytest.raises(ms.QueryError, match='"Live" is pushed by a program: it has no available'):
        session.sql("SELECT t FROM Live").start(trigger="available_now")


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trigger": "now and then"}, "'now and then' is not a trigger"),
        ({"sink": "consol"}, 'sink "consol" does not exist'),
        ({"sink": 5}, "a sink is a name, ms.sink(…) or a function f(table, batch), not int"),
        ({"late": 5}, "the output for late rows must be a function or a list, not int"),
        ({"errors": 5}, "the output for errors must be a function or a list, not int"),
        ({"name": ""}, "a query needs a name"),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], message: str) -> None:
    session, _ = live_session()
    bid_feed(session)
    query = session.sql("SELECT t FROM Bid")
    with pytest.raises(ms.MillstreamError) as error:
        query.start(**options)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert states(session) == ["registered"]


def test_what_cannot_be_started() -> None:
    reference = ms.Session(engine="reference")
    reference.feed("Bid", BID, "t")
    with pytest.raises(ms.QueryError, match="reference engine does not run queries contin"):
        reference.sql("SELECT t FROM Bid").start()
    with pytest.raises(ms.QueryError, match='stream "Bid" is pushed by a program'):
        reference.sql("SELECT t FROM Bid").run()


# --- what it tells of itself ----------------------------------------------------------------------


def test_metrics_and_progress() -> None:
    session, clock = live_session()
    feed = bid_feed(session)
    seen = Seen()
    text = "SELECT k, COUNT(*) AS n FROM Bid WINDOW(RANGE 10) WHERE price > 5 GROUP BY k"
    with session.sql(text + " EMIT CHANGES").start(seen) as running:
        feed.send([bid(1), bid(2, 2), bid(3, 1, 0)])
        feed.send(bid(3))
        seen.await_frontier(3)
        clock.move(2_000_000)
        feed.send([bid(2), bid(None)])
        feed.heartbeat(4)
        seen.await_frontier(4)
        told = running.metrics
    by_name = {operator.name: operator for operator in told.operators}
    where = by_name["Filter"]
    assert (where.rows_in, where.rows_out, where.selectivity) == (4, 3, 0.75)
    assert where.rate == 2.0
    assert where.frontier == 4
    assert by_name["Aggregate"].state_rows > 0
    assert by_name["Aggregate"].state_bytes > 0
    assert by_name["Aggregate"].seconds > 0
    source = told.sources["Bid"]
    assert (source.rows, source.late, source.errors, source.queued) == (6, 1, 1, 0)
    assert source.frontier == 4
    assert told.to_dict()["sources"]["Bid"]["late"] == 1
    progress = running.progress
    assert (progress.state, progress.rows_in, progress.late, progress.errors) == (
        "stopped", 6, 1, 1,
    )  # fmt: skip
    assert progress.rows_out == len(seen.rows())
    assert progress.batches == len(seen.batches)
    assert progress.frontier == 4
