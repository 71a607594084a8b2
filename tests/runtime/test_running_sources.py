"""Sources of running queries: feeds, iterators, connectors; what they do wrong; full queues."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from typing import Any

import polars
import pyarrow as pa
import pytest

import millstream as ms
from millstream.runtime.outputs import ErrorRow
from runtime.live import BID, SOON, Script, Seen, bid, bid_feed, live_session, values

SQL = """CREATE STREAM Bid (t BIGINT, k BIGINT, price BIGINT) SOURCE script() ORDERED BY t;
SELECT t, price FROM Bid WINDOW(RANGE 5)"""


def scripted(session: ms.Session, decode: Any = None) -> Script:
    script = Script()
    session.source("script", script.connect, decode)
    return script


# --- what can be sent -----------------------------------------------------------------------------

TABLE = pa.Table.from_pylist([bid(1), bid(2)])

KINDS: dict[str, Any] = {
    "a row": bid(1),
    "rows": [bid(1), bid(2)],
    "tuples": [(1, 1, 10), [2, 1, 10]],
    "a generator": (bid(t) for t in (1, 2)),
    "a table": TABLE,
    "a batch": TABLE.to_batches()[0],
    "batches": TABLE.to_batches(max_chunksize=1),
    "columns in another order": TABLE.select(["price", "t", "k"]),
    "polars": polars.from_arrow(TABLE),
    "pandas": TABLE.to_pandas(),
    "keys in another case": [{"T": 1, "K": 1, "Price": 10}],
    "nothing": [],
}


@pytest.mark.parametrize("kind", KINDS)
def test_data_of_every_kind_is_sent(kind: str) -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    with session.sql("SELECT t, k, price FROM Bid").start() as running:
        count = feed.send(KINDS[kind])
    found = running.results().to_pylist()
    expected = [bid(1), bid(2)][:count]
    assert values(found, "t", "k", "price") == values(expected, "t", "k", "price")
    assert running.errors == []


@pytest.mark.parametrize("data", [5, "text", None])
def test_what_cannot_be_sent(data: object) -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    with pytest.raises(ms.DataError, match='stream "Bid" cannot be sent'):
        feed.send(data)
    with pytest.raises(ms.DataError, match='the data has no column "k"'):
        feed.send(TABLE.select(["t", "price"]))
    with pytest.raises(ms.QueryError, match="'soon' is not an instant of BIGINT time"):
        feed.heartbeat("soon")


def test_a_key_that_a_row_lacks_is_null() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    with session.sql("SELECT t, k FROM Bid").start() as running:
        feed.send([{"t": 1, "price": 1}])
        feed.send([{"t": 2, "k": 5}, {"t": 3}])
    assert values(running.results().to_pylist(), "t", "k") == [(1, None), (2, 5), (3, None)]


def test_a_row_without_any_column_is_an_error() -> None:
    session, _ = live_session()
    script = scripted(session)
    with session.sql(SQL).start() as running:
        script.give({"other": 3})
        script.end()
        running.wait(SOON)
    assert str(running.errors[0]).endswith("row 1: the row has none of the stream's columns")


@pytest.mark.parametrize(
    ("rows", "unknown", "help"),
    [
        ({"t": 1, "pricee": 1}, "pricee", 'did you mean "price"?'),
        ([bid(1), {**bid(2), "x": 3}], "x", 'the columns are "t", "k" and "price"'),
        ([{"other": 3}], "other", 'the columns are "t", "k" and "price"'),
    ],
)
def test_a_key_that_is_no_column_cannot_be_sent(rows: Any, unknown: str, help: str) -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    with session.sql("SELECT t FROM Bid").start() as running, pytest.raises(ms.DataError) as caught:
        feed.send(rows)
    assert caught.value.diagnostic.message == f'column "{unknown}" does not exist in stream "Bid"'
    assert caught.value.diagnostic.help == help
    assert running.results().num_rows == 0


def test_a_tuple_of_values_cannot_be_sent() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    with pytest.raises(ms.DataError) as caught:
        feed.send((1, 2, 3))
    assert caught.value.diagnostic.message == 'stream "Bid" cannot be sent (1, 2, 3)'
    assert "as a tuple in a list" in str(caught.value.diagnostic.help)
    assert feed.send(((1, 2, 3), (2, 2, 3))) == 2


def test_large_tables_are_sent_in_order_of_time() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    size = 200_000
    table = pa.table({name: pa.array(range(size, 0, -1)) for name in BID})
    with session.sql("SELECT t FROM Bid WINDOW(ROWS 1)").start() as running:
        feed.send(table)
        feed.heartbeat(size + 1)
        running.snapshot(size, SOON)
        assert running.progress.late == 0
        assert running.results().num_rows == size - 1


# --- many queries ---------------------------------------------------------------------------------


def test_queries_see_what_is_sent_from_their_start_on() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    feed.send(bid(1))
    first = session.sql("SELECT t FROM Bid").start()
    feed.send(bid(2))
    second = session.sql("SELECT t FROM Bid").start()
    feed.send(bid(3))
    feed.close()
    first.wait(SOON)
    second.wait(SOON)
    assert values(first.results().to_pylist(), "t") == [2, 3]
    assert values(second.results().to_pylist(), "t") == [3]


def test_bounded_data_is_read_from_its_beginning_by_all() -> None:
    session, _ = live_session()
    session.stream("Bid", [bid(t) for t in range(20)], time="t")
    queries = [session.sql("SELECT t FROM Bid") for _ in range(3)]
    for running in [query.start() for query in queries]:
        running.wait(SOON)
        assert running.results().num_rows == 20


def test_a_stream_that_occurs_twice_is_read_once() -> None:
    session, _ = live_session()
    script = scripted(session)
    query = session.sql(SQL.split(";")[0] + "; " + (
        "SELECT a.t FROM Bid a WINDOW(RANGE 5), Bid b WINDOW(RANGE 9) WHERE a.k = b.k"
    ))  # fmt: skip
    script.give(bid(1), bid(2))
    script.end()
    running = query.start()
    running.wait(SOON)
    assert script.connected == 1
    assert running.results().num_rows == 4


# --- iterators and connectors ---------------------------------------------------------------------


def test_an_iterator_is_read_while_a_query_runs() -> None:
    session, _ = live_session()
    script = Script()
    session.stream("Bid", script.connect(), "t", schema=BID)
    seen = Seen()
    running = session.sql("SELECT t FROM Bid").start(seen)
    script.give(bid(1))
    seen.await_rows(1)
    script.give(TABLE.slice(1), bid(7), ms.Heartbeat(9))
    seen.await_frontier(9)
    assert values(seen.rows(), "t") == [1, 2, 7]
    script.end()
    assert running.wait(SOON)


def test_an_iterator_goes_on_where_the_last_query_left_off() -> None:
    session, _ = live_session()
    session.stream("Bid", iter([bid(t) for t in range(100)]), "t", schema=BID)
    seen: list[int] = []
    for _ in range(200):
        query = session.sql("SELECT t FROM Bid")
        with query.start(capture(seen)) as running:
            if running.wait(0.001):
                break
    assert seen == [*range(100)]


def capture(seen: list[int]) -> Any:
    return lambda table, batch: seen.extend(table.column("t").to_pylist())


def test_an_iterator_may_be_run_to_its_end() -> None:
    session, _ = live_session()
    session.stream("Bid", iter([bid(3), bid(1)]), "t", schema=BID)
    query = session.sql("SELECT t FROM Bid")
    assert values(query.run().to_pylist(), "t") == [1, 3]
    assert values(query.run().to_pylist(), "t") == [1, 3]
    running = query.start()
    running.wait(SOON)
    assert values(running.results().to_pylist(), "t") == [1, 3]


def test_an_iterator_that_is_being_read_cannot_be_run() -> None:
    session, _ = live_session()
    script = Script()
    session.stream("Bid", script.connect(), "t", schema=BID)
    query = session.sql("SELECT t FROM Bid")
    with query.start("noop"), pytest.raises(ms.QueryError, match="a running query has read from"):
        query.run()
    script.end()


def test_each_query_has_a_connection_of_its_own() -> None:
    session, _ = live_session()
    session.source("script", lambda: iter([bid(1), bid(2)]))
    first = session.sql(SQL)
    second = session.sql("SELECT t FROM Bid")
    for running in [first.start(), second.start()]:
        running.wait(SOON)
        assert values(running.results().to_pylist(), "t") == [1, 2]


def test_a_connector_may_give_a_table() -> None:
    session, _ = live_session()
    session.source("script", lambda: TABLE)
    running = session.sql(SQL).start()
    running.wait(SOON)
    assert values(running.results().to_pylist(), "t") == [1, 2]


def test_items_are_decoded_and_those_that_cannot_be_are_errors() -> None:
    session, _ = live_session()
    script = scripted(session, lambda text: (int(text), 1, 1))
    script.give("4", "vier", "5")
    script.end()
    running = session.sql(SQL).start()
    running.wait(SOON)
    assert values(running.results().to_pylist(), "t") == [4, 5]
    (error,) = running.errors
    assert str(error) == (
        'query "query_1", stream "Bid", row 2: \'vier\' cannot be decoded: '
        "invalid literal for int() with base 10: 'vier'"
    )


def test_a_connector_that_does_not_exist() -> None:
    session, _ = live_session()
    query = session.sql(SQL)
    with pytest.raises(ms.QueryError, match='connector "script" does not exist'):
        query.start()


def test_stopping_does_not_wait_for_a_source_that_blocks() -> None:
    session, _ = live_session()
    script = scripted(session)
    seen = Seen()
    running = session.sql(SQL).start(seen)
    script.give(bid(1))
    seen.await_rows(1)
    assert running.stop(SOON)
    assert not script.closed.is_set()
    script.give(bid(2))  # it wakes, sees that it has no consumer, and ends
    assert script.closed.wait(SOON)
    assert len(seen.rows()) == 1


def test_a_source_that_can_be_closed_is() -> None:
    class Socket:
        def __init__(self) -> None:
            self.begun = threading.Event()
            self.closed = threading.Event()

        def __iter__(self) -> Iterator[Any]:
            return self

        def __next__(self) -> Any:
            self.begun.set()
            self.closed.wait(SOON)
            raise OSError("closed")

        def close(self) -> None:
            self.closed.set()

    session, _ = live_session()
    socket = Socket()
    session.source("script", lambda: socket)
    running = session.sql(SQL).start()
    assert socket.begun.wait(SOON)
    running.stop()
    assert socket.closed.wait(SOON)
    assert running.exception is None


# --- full queues ----------------------------------------------------------------------------------


def test_who_sends_waits_while_a_queue_is_full() -> None:
    session, _ = live_session()
    feed = bid_feed(session, capacity=3)
    hold, began = threading.Event(), threading.Event()
    seen = Seen()

    def slow(table: pa.Table, batch: Any) -> None:
        began.set()
        hold.wait(SOON)
        seen(table, batch)

    running = session.sql("SELECT t FROM Bid").start(slow)
    feed.send(bid(0))
    began.wait(SOON)  # the query is busy; what follows is queued
    sent: list[int] = []

    def send() -> None:
        for t in range(1, 7):
            feed.send(bid(t))
            sent.append(t)

    sender = threading.Thread(target=send)
    sender.start()
    while len(sent) < 3:
        time.sleep(0.001)
    sender.join(0.02)
    assert sent == [1, 2, 3]
    assert running.metrics.sources["Bid"].queued == 3
    hold.set()
    sender.join(SOON)
    running.stop()
    assert values(seen.rows(), "t") == [*range(7)]


def test_what_has_arrived_is_one_batch() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    hold, began = threading.Event(), threading.Event()
    sizes: list[int] = []

    def slow(table: pa.Table, batch: Any) -> None:
        began.set()
        hold.wait(SOON)
        sizes.append(table.num_rows)

    with session.sql("SELECT t FROM Bid").start(slow):
        feed.send(bid(0))
        began.wait(SOON)
        for t in range(1, 100):
            feed.send(bid(t))
        hold.set()
    assert sizes == [1, 99]


def test_stop_frees_those_who_wait() -> None:
    session, _ = live_session()
    feed = bid_feed(session, capacity=1)
    hold, began = threading.Event(), threading.Event()

    def stuck(table: pa.Table, batch: Any) -> None:
        began.set()
        hold.wait(SOON)

    running = session.sql("SELECT t FROM Bid").start(stuck)
    feed.send(bid(0))
    began.wait(SOON)
    sender = threading.Thread(target=lambda: [feed.send(bid(t)) for t in range(1, 10)])
    sender.start()
    assert not running.stop(0.01)
    sender.join(SOON)
    assert not sender.is_alive()
    hold.set()
    assert running.wait(SOON)


def test_a_sink_may_send_to_the_stream_that_its_query_reads() -> None:
    session, _ = live_session()
    feed = bid_feed(session, capacity=1)
    seen = Seen()

    def echo(table: pa.Table, batch: Any) -> None:
        seen(table, batch)
        for t in table.column("t").to_pylist():
            if t < 20:
                feed.send([bid(t + 1), bid(t + 2)] if t == 0 else bid(t + 2))

    with session.sql("SELECT t FROM Bid").start(echo):
        feed.send(bid(0))
        seen.await_rows(21)


# --- bad rows -------------------------------------------------------------------------------------

BAD: dict[str, tuple[Any, str]] = {
    "type": (bid(3, price="much"), "'much' in column \"price\" is not BIGINT"),
    "null time": (bid(None), 'the time column "t" is NULL'),
    "length": ((3, 4), "expected 3 values, found"),
    "no row": (5, "expected"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_rows_go_to_the_error_output_and_the_rest_goes_on(kind: str) -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    row, message = BAD[kind]
    handed: list[ErrorRow] = []
    with session.sql("SELECT t FROM Bid").start(name="q", errors=handed) as running:
        feed.send([bid(1), bid(2)])
        feed.send([bid(2), row, bid(4)])
    assert values(running.results().to_pylist(), "t") == [1, 2, 2, 4]
    assert handed == running.errors
    (error,) = handed
    assert (error.query, error.stream, error.number) == ("q", "Bid", 4)
    assert str(error).startswith('query "q", stream "Bid", row 4: ')
    assert message in error.message


def test_bad_rows_of_an_iterator() -> None:
    session, _ = live_session()
    rows = [bid(1), bid(2, price="x"), bid(3), bid(None), bid(5)]
    session.stream("Bid", iter(rows), "t", schema=BID)
    running = session.sql("SELECT t FROM Bid").start()
    running.wait(SOON)
    assert values(running.results().to_pylist(), "t") == [1, 3, 5]
    assert [error.number for error in running.errors] == [2, 4]


def test_bad_rows_of_a_table() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    texts = pa.table({"t": ["1", "zwei", "3"], "k": [1, 1, 1], "price": [1, 1, 1]})
    with session.sql("SELECT t FROM Bid").start() as running:
        feed.send(texts)
        feed.send(texts.slice(1, 1))
    assert values(running.results().to_pylist(), "t") == [1, 3]
    assert [error.number for error in running.errors] == [2, 4]


def test_rows_that_cannot_be_evaluated_go_to_the_error_output() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    query = session.sql("SELECT t, 100 / price AS x FROM Bid")
    with query.start(errors=print) as running:
        feed.send([bid(1, 1, 10), bid(2, 1, 0), bid(3, 1, 5)])
    assert values(running.results().to_pylist(), "t") == [1, 3]
    (error,) = running.errors
    assert error.row == (2, 1, 0)
    assert str(error).startswith('query "query_1" failed on row (2, 1, 0): ')
    assert running.exception is None


def test_rows_for_which_a_function_of_the_user_raises() -> None:
    def root(column: pa.Array) -> pa.Array:
        return pa.array([int(math.sqrt(x)) for x in column.to_pylist()])

    session, _ = live_session()
    session.function("root", root, returns="BIGINT")
    feed = bid_feed(session)
    with session.sql("SELECT root(price) AS x FROM Bid").start() as running:
        feed.send([bid(1, 1, 16), bid(2, 1, -1), bid(3, 1, 25)])
    assert values(running.results().to_pylist(), "x") == [4, 5]
    assert [error.row for error in running.errors] == [(2, 1, -1)]


def test_errors_that_stop_a_query() -> None:
    session, _ = live_session(on_error="stop")
    feed = bid_feed(session)
    other = session.sql("SELECT t FROM Bid WHERE k = 1").start()
    running = session.sql("SELECT 100 / price AS x FROM Bid").start(name="risky")
    feed.send(bid(1, 1, 4))
    running.snapshot(0, SOON)
    feed.send([bid(2, 1, 0), bid(3)])
    with pytest.raises(ms.QueryError, match=r'query "risky" failed on row \(2, 1, 0\)'):
        running.wait(SOON)
    assert running.state == "failed"
    assert values(running.results().to_pylist(), "x") == [25]
    feed.send(bid(4))
    other.stop()
    assert values(other.results().to_pylist(), "t") == [1, 2, 3, 4]
    assert session.sql("SHOW QUERIES").column("state").to_pylist() == ["stopped", "failed"]


def test_a_bad_row_that_stops_a_query_comes_after_those_before_it() -> None:
    session, _ = live_session(on_error="stop")
    feed = bid_feed(session)
    running = session.sql("SELECT t FROM Bid").start()
    feed.send([bid(1), bid(2), bid(None), bid(4)])
    with pytest.raises(ms.QueryError, match='stream "Bid", row 3: the time column "t" is NULL'):
        running.wait(SOON)
    assert values(running.results().to_pylist(), "t") == [1, 2]


# --- failures -------------------------------------------------------------------------------------


def test_a_source_that_crashes_ends_its_query_after_what_it_gave() -> None:
    session, _ = live_session()
    script = scripted(session)
    feed = bid_feed(session, "Other")
    other = session.sql("SELECT t FROM Other").start()
    query = session.sql(SQL + " UNION ALL SELECT t, price FROM Other")
    seen = Seen()
    running = query.start(seen)
    feed.send(bid(1, 1, 77))
    script.give(*[bid(t) for t in range(50)])
    script.crash(OSError("the line is dead"))
    with pytest.raises(ms.QueryError) as error:
        running.wait(SOON)
    assert str(error.value) == (
        'error: query "query_2": stream "Bid" cannot be read: the line is dead'
    )
    assert isinstance(error.value.__cause__, OSError)
    assert running.exception is error.value
    assert len(seen.rows()) == 51
    assert seen.ended
    feed.send(bid(2))
    other.stop()
    assert values(other.results().to_pylist(), "t") == [1, 2]


def test_a_connection_that_fails() -> None:
    def refuse() -> Any:
        raise ConnectionError("refused")

    session, _ = live_session()
    session.source("script", refuse)
    with (
        pytest.raises(ms.QueryError, match='stream "Bid" cannot be read: refused'),
        session.sql(SQL).start() as running,
    ):
        running._worker.done.wait(SOON)
    session.source("script", lambda: 5)
    with pytest.raises(ms.QueryError, match="it returns int, which is not an iterable"):
        session.sql("SELECT t FROM Bid").start().wait(SOON)


def test_a_batch_without_a_column_ends_the_query() -> None:
    session, _ = live_session()
    script = scripted(session)
    script.give(bid(1), TABLE.select(["t"]))
    with pytest.raises(ms.QueryError, match='the data has no column "k"'):
        session.sql(SQL).start().wait(SOON)


def test_a_sink_that_fails_ends_its_query_only() -> None:
    session, _ = live_session()
    feed = bid_feed(session)

    def broken(table: pa.Table, batch: Any) -> None:
        raise ValueError("the disk is full")

    failing = session.sql("SELECT t FROM Bid").start(broken, name="writer")
    other = session.sql("SELECT t FROM Bid").start()
    feed.send(bid(1))
    with pytest.raises(ms.QueryError, match='query "writer": the sink failed: the disk is full'):
        failing.wait(SOON)
    feed.send(bid(2))
    other.stop()
    assert values(other.results().to_pylist(), "t") == [1, 2]
    assert failing.stop()


def test_a_sink_that_fails_at_the_end() -> None:
    class Closing(Seen):
        def close(self) -> None:
            raise OSError("cannot be renamed")

    session, _ = live_session()
    session.stream("Bid", [bid(1)], time="t")
    with pytest.raises(ms.QueryError, match="the sink failed: cannot be renamed"):
        session.sql("SELECT t FROM Bid").start(Closing()).wait(SOON)


def test_outputs_that_fail_end_the_query() -> None:
    def broken(item: object) -> None:
        raise ValueError("no room")

    session, _ = live_session()
    feed = bid_feed(session)
    running = session.sql("SELECT t FROM Bid").start(errors=broken)
    feed.send(bid(None))
    with pytest.raises(ms.QueryError, match='"query_1": the output for errors failed: no room'):
        running.wait(SOON)


def test_an_aggregate_of_the_user_that_raises() -> None:
    def fail(*_: object) -> object:
        raise ValueError("cannot merge")

    session, _ = live_session()
    session.aggregate("broken", lambda x: x, fail, lambda x: x, returns="BIGINT")
    feed = bid_feed(session)
    with session.sql("SELECT broken(price) AS x FROM Bid WINDOW(RANGE 5)").start() as running:
        feed.send([bid(1), bid(2)])
        feed.heartbeat(20)
        running._worker.await_frontier(19, SOON)
    assert "cannot merge" in str(running.errors[0] if running.errors else running.exception)


def test_time_begins_with_the_earliest_row_though_it_comes_later() -> None:
    """A window over a total reaches back to the first row of the query, whichever stream has it."""
    session = ms.Session()
    late, early = (session.feed(name, {"t": "BIGINT"}, time="t") for name in "AB")
    query = session.sql(
        "SELECT n FROM (SELECT COUNT(*) AS n FROM A WINDOW(RANGE 3)) WINDOW(RANGE 4 SLIDE 2) "
        "GRANULARITY(2) UNION ALL SELECT t AS n FROM B"
    )
    with query.start() as running:
        late.send({"t": 10})
        early.send([{"t": 1}, {"t": 20}])
        late.close()
        early.close()
        running.wait(timeout=30)
        rows = running.results().to_pylist()
    assert {"n": 0, "valid_from": 2, "valid_to": 6} in rows
    assert {"n": 0, "valid_from": 8, "valid_to": 12} in rows


@pytest.mark.parametrize("capacity", [0, -1, "x", True])
def test_a_capacity_that_is_none(capacity: object) -> None:
    session = ms.Session()
    with pytest.raises(ms.DataError, match="the capacity must be a number of rows, at least 1"):
        session.feed("A", {"t": "BIGINT"}, time="t", capacity=capacity)  # type: ignore[arg-type]
    session.feed("A", {"t": "BIGINT"}, time="t")  # the name is still free


def test_a_heartbeat_beyond_all_time() -> None:
    feed = ms.Session().feed("A", {"t": "BIGINT"}, time="t")
    with pytest.raises(ms.QueryError, match="is not an instant"):
        feed.heartbeat(2**70)


def test_what_held_before_the_first_row_is_cropped_when_it_is_known_where() -> None:
    session = ms.Session(approach="intervals")
    schema = {"t": "BIGINT", "v": "BIGINT"}
    late, early = (session.feed(name, schema, time="t") for name in "AB")
    query = session.sql("SELECT COUNT(*) AS n FROM A WINDOW(RANGE 3) UNION ALL SELECT v FROM B")
    with query.start() as running:
        late.send({"t": 10, "v": 1})
        late.heartbeat(30)
        early.send([{"t": 1, "v": 7}, {"t": 20, "v": 7}])
        late.close()
        early.close()
        running.wait(timeout=30)
        assert {"n": 0, "valid_from": 1, "valid_to": 10} in running.results().to_pylist()


def test_interval_plans_refuse_partitions_that_may_fall_silent() -> None:
    session = ms.Session(approach="intervals")
    feed = session.feed("A", {"t": "BIGINT", "k": "BIGINT"}, time="t")
    query = session.sql("SELECT k FROM A WINDOW(PARTITION BY k ROWS 1)")
    with pytest.raises(ms.QueryError) as error:
        query.start()
    assert str(error.value) == (
        'error: approach="intervals" cannot run a partitioned window over stream "A": a partition '
        "that falls silent would hold back all results\n"
        'help: use approach="hybrid", which passes rows on and retracts them later, or query.run() '
        "on data that ends"
    )
    feed.close()
    session.stream("B", [{"t": 1, "k": 1}, {"t": 2, "k": 2}], time="t")
    bounded = session.sql("SELECT k FROM B WINDOW(PARTITION BY k ROWS 1)")
    assert bounded.run().num_rows == 2
