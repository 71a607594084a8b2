"""Rows that fail are missing from the answer, so there is a warning, once per query."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import millstream as ms
from millstream.runtime.outputs import ErrorRow
from runtime.live import SOON

ROWS = [{"t": 1, "name": "ann"}, {"t": 2, "name": "bob"}]
FAILING = "SELECT name + 1 AS x FROM s"


@contextmanager
def warned() -> Iterator[list[str]]:
    """The texts of what is warned of in the block, wherever it runs."""
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield told
    told += [str(w.message) for w in caught if issubclass(w.category, ms.RowErrorWarning)]


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_a_run_and_a_snapshot_warn_once(engine: str) -> None:
    session = ms.Session(engine=engine)
    session.stream("s", ROWS, time="t")
    query = session.sql(FAILING)
    with warned() as told:
        assert query.run().num_rows == 0
        query.run()
        query.snapshot(2)
    assert told == [
        'warning: query "query_1" could not use 2 rows: cannot cast "ann" to BIGINT in row '
        "(1, 'ann')\nhelp: query.errors has all of them"
    ]
    with warned() as told:
        session.sql(FAILING).snapshot(2)
    assert [text.partition(":")[0] for text in told] == ["warning"]


def test_a_row_of_a_megabyte_makes_no_message_of_a_megabyte() -> None:
    session = ms.Session(engine="local")
    row = {"t": 1, "name": "x" * 1_000_000}
    session.stream("s", [row], time="t")
    query = session.sql(FAILING)
    with warned() as told:
        query.run()
    [(found, message)] = query.errors
    assert found == (1, row["name"])
    assert len(message) < 2_000
    assert len(told[0]) < 2_000
    feed = session.feed("f", {"t": "BIGINT", "name": "STRING"}, time="t")
    errors: list[ErrorRow] = []
    with session.sql(FAILING.replace("FROM s", "FROM f")).start(errors=errors) as running:
        feed.send([row])
        feed.close()
        running.wait(SOON)
    assert len(str(errors[0])) < 2_000
    assert errors[0].message == message


def test_a_warning_is_at_the_line_of_the_caller() -> None:
    session = ms.Session(engine="local")
    session.stream("s", ROWS, time="t")
    with pytest.warns(ms.RowErrorWarning) as caught:
        session.sql(FAILING).run()
    assert caught[0].filename == __file__


def test_a_started_query_warns_once() -> None:
    session = ms.Session(engine="local")
    feed = session.feed("s", {"t": "BIGINT", "name": "STRING"}, time="t")
    with warned() as told:
        with session.sql(FAILING).start() as running:
            feed.send([{"t": "soon", "name": "cid"}, *ROWS])
            feed.heartbeat(2)
            assert running._worker.await_frontier(1, SOON)
            feed.send([{"t": 3, "name": "dan"}])
        assert running.progress.errors == 4
    assert told == [
        'warning: query "query_1" could not use 3 rows: \'soon\' in column "t" is not BIGINT in '
        'row 1 of stream "s"\n'
        "help: running.errors has the last ones, and start(errors=…) receives all"
    ]


def test_who_takes_the_errors_is_not_warned() -> None:
    session = ms.Session(engine="local")
    feed = session.feed("s", {"t": "BIGINT", "name": "STRING"}, time="t")
    errors: list[object] = []
    with warned() as told, session.sql(FAILING).start(errors=errors):
        feed.send(ROWS)
    assert told == []
    assert len(errors) == 2


def test_views_and_pull_queries_warn() -> None:
    session = ms.Session(engine="local")
    session.sql("CREATE TABLE s (name STRING); INSERT INTO s VALUES ('ann')")
    with warned() as told:
        session.sql(FAILING).run()
        view = session.sql(f"CREATE MATERIALIZED VIEW v AS {FAILING}")
        view.stop(SOON)
    assert [text.split(":")[1] for text in told] == [
        ' query "pull" could not use 1 row',
        ' query "v" could not use 1 row',
    ]


def _with_a_table(engine: str) -> ms.Query:
    """The join of a stream and a table, one of whose rows fails whatever the stream has."""
    session = ms.Session(engine=engine)
    session.sql("CREATE TABLE t (id STRING)")
    session.sql("INSERT INTO t VALUES ('x'), ('5')")
    session.stream("s", [{"ts": 1, "k": 5}, {"ts": 3, "k": 6}], time="ts")
    query = session.sql(
        "SELECT s.k FROM s WINDOW(RANGE 10) "
        "JOIN (SELECT CAST(id AS INT) AS n FROM t) u ON s.k = u.n"
    )
    assert isinstance(query, ms.Query)
    return query


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_rows_of_tables_that_fail_before_time_begins_are_reported(engine: str) -> None:
    query = _with_a_table(engine)
    with pytest.warns(ms.RowErrorWarning, match="cannot cast"):
        assert query.run().num_rows == 1
    assert query.errors == [(("x",), 'cannot cast "x" to INT')]


@pytest.mark.parametrize("durable", [False, True])
def test_started_queries_report_rows_of_tables_that_fail(durable: bool, tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "checkpoint") if durable else None
    errors: list[ms.ErrorRow] = []
    running = _with_a_table("local").start(errors=errors, checkpoint=checkpoint)
    assert running.wait(SOON)
    assert [(error.row, error.message) for error in errors] == [(("x",), 'cannot cast "x" to INT')]


def test_rows_of_tables_deleted_before_time_begins_are_not_reported() -> None:
    session = ms.Session(engine="local")
    feed = session.feed("s", {"ts": "BIGINT", "k": "BIGINT"}, time="ts")
    session.sql("CREATE TABLE t (id STRING)")
    session.sql("INSERT INTO t VALUES ('x') EFFECTIVE AT 1")
    session.sql("DELETE FROM t WHERE id = 'x' EFFECTIVE AT 5")
    query = session.sql("SELECT s.k FROM s JOIN t ON s.k = CAST(t.id AS INT)")
    errors: list[ms.ErrorRow] = []
    with query.start(errors=errors):
        feed.send({"ts": 7, "k": 1})
    assert errors == []
