"""What people see of tables, queries and running queries: text, HTML, and results as they come."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

import millstream as ms
from millstream.model.display import rows_of, table_html, text_lines, text_of

BIDS = [{"t": 1, "item": "vase", "price": 5}, {"t": 3, "item": "<b>", "price": 12}]


def session() -> ms.Session:
    session = ms.Session()
    session.stream("Bid", BIDS, time="t")
    return session


def test_a_table_as_text() -> None:
    table = pa.table(
        {"name": ["日本", "a\tb\x1b[0m", None], "n": pa.array([1, -20, None], pa.int64())}
    )
    assert text_lines(table) == [
        "name            n",
        "-----------  ----",
        "日本            1",
        "a\\tb\\x1b[0m   -20",
        "NULL         NULL",
    ]


def test_what_never_ends() -> None:
    answer = session().sql("SELECT item FROM Bid WINDOW(RANGE UNBOUNDED)").run()
    assert [str(row[-1]) for row in rows_of(answer)] == ["∞", "∞"]
    moment = pa.array([datetime.datetime(2026, 1, 1)], pa.timestamp("us"))
    assert text_of(rows_of(pa.table({"valid_to": moment}))[0][0]) == "2026-01-01 00:00:00"


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (b"\x00\xff", "00ff"), (1.5, "1.5"), ([1, None], "[1, None]"), ("é", "é")],
)
def test_values(value: object, text: str) -> None:
    assert text_of(value) == text


def test_html_is_escaped_and_short() -> None:
    html = table_html(pa.table({"<i>": ["<b>"] * 25}))
    assert "<th>&lt;i&gt;</th>" in html
    assert html.count("<td>&lt;b&gt;</td>") == 20
    assert html.endswith("<p>… and 5 more</p>")


def test_a_query_in_a_notebook() -> None:
    query = session().sql("SELECT item FROM Bid WHERE price < 10")
    html = query._repr_html_()
    assert html.startswith("<p><b>query_1</b> (registered)</p><pre>SELECT item FROM Bid")
    assert "Filter where=Bid.price &lt; " in html


def test_a_running_query_in_a_notebook() -> None:
    running = session().sql("SELECT item FROM Bid").start()
    running.wait()
    html = running._repr_html_()
    assert "2 rows in, 2 rows out" in html
    assert "<td>&lt;b&gt;</td>" in html
    with_sink = session().sql("SELECT item FROM Bid").start("noop")
    with_sink.wait()
    assert "<table>" not in with_sink._repr_html_()


def test_results_as_they_come() -> None:
    session = ms.Session()
    feed = session.feed("S", {"t": "BIGINT", "v": "BIGINT"}, time="t")
    running = session.sql("SELECT v FROM S").start()
    pieces = iter(running)
    for t in range(3):
        feed.send({"t": t, "v": t * t})
        feed.heartbeat(t + 1)
        assert next(pieces).to_pylist() == [{"v": t * t, "valid_from": t, "valid_to": t + 1}]
    feed.send([{"t": 3, "v": 9}, {"t": 4, "v": 16}])
    feed.close()
    assert [v for table in pieces for v in table["v"].to_pylist()] == [9, 16]
    again = [v for table in running for v in table["v"].to_pylist()]
    assert again == [0, 1, 4, 9, 16]


def test_equal_rows_come_each_once() -> None:
    session = ms.Session()
    session.stream("S", [{"t": 1, "v": 7}] * 3, time="t")
    running = session.sql("SELECT v FROM S").start()
    assert sum(table.num_rows for table in running) == 3


def test_iteration_tells_what_went_wrong() -> None:
    session = ms.Session()

    def broken() -> object:
        yield {"t": 1}
        raise OSError("no more")

    session.source("broken", broken)
    session.sql("CREATE STREAM S (t BIGINT) SOURCE broken() ORDERED BY t")
    running = session.sql("SELECT t FROM S").start()
    with pytest.raises(ms.QueryError, match="no more"):
        list(running)
    with_sink = session.sql("SELECT t FROM S").start("noop")
    with pytest.raises(ms.QueryError, match="keeps no results"):
        next(iter(with_sink))
