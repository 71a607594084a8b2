"""Rows that fail are missing from the answer, so there is a warning, once per query."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import millstream as ms
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
