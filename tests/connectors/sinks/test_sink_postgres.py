"""PostgreSQL as a sink: types, tables that are there, batches that come again, lost connections."""

from __future__ import annotations

import datetime
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import millstream as ms
from millstream.connectors.contracts import GivenBatch, Sink, SinkContext
from millstream.connectors.registry import Connectors
from millstream.connectors.sinks import postgres_rows

psycopg = pytest.importorskip("psycopg", reason="pip install 'millstream[postgres]'")

pytestmark = pytest.mark.xdist_group("postgres")  # they share one server

SCHEMA = pa.schema([("x", pa.int64())])
TABLE = pa.table({"x": [1, 2]}, schema=SCHEMA)


@pytest.fixture
def database(url: str) -> Iterator[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def opened(url: str, token: str = "one", next_batch: int = 0, table: str = "answers") -> Sink:
    context = SinkContext("q", SCHEMA, "FINAL", token, next_batch)
    return Connectors().open_sink(ms.sink("postgres", url=url, table=table), context)


def given(url: str, *numbers: int, token: str = "one") -> None:
    sink = opened(url, token, min(numbers))
    for number in numbers:
        sink.give(TABLE, GivenBatch(number, None))
    sink.close()


def rows_session(count: int = 100) -> ms.Session:
    session = ms.Session()
    session.stream("S", [{"t": i, "x": i * i} for i in range(count)], time="t")
    return session


# --- types ----------------------------------------------------------------------------------------


def test_types(url: str, database: Any) -> None:
    day = datetime.date(2024, 2, 29)
    rows = [
        {
            "t": datetime.datetime(2024, 1, 1, 0, 0, i, 5),
            "s": ["a", None, "", 'quo"te,\nline \\N é'][i],
            "f": [1.5, float("nan"), float("-inf"), None][i],
            "d": [Decimal("1.50"), Decimal("-0.01"), None, Decimal("0.00")][i],
            "b": [b"\x00\xff", b"", None, b"x"][i],
            "l": [[1, None], [], None, [2]][i],
            "o": [{"u": 1, "v": "z"}, None, {"u": None, "v": ""}, {"u": 2, "v": '"'}][i],
            "day": [day, None, day, None][i],
            "yes": [True, False, None, True][i],
        }
        for i in range(4)
    ]
    session = ms.Session()
    session.stream("S", rows, time="t")
    query = session.sql(
        """SELECT *, t - TIMESTAMP '2024-01-01 00:00:01' AS ago, CAST(1 AS INT) AS i, 2 AS n,
        CAST(0.5 AS FLOAT) AS r, NULL AS nothing FROM S WINDOW(RANGE UNBOUNDED)"""
    )
    query.start(ms.sink("postgres", url=url, table="answers")).wait()
    types = database.execute(
        """SELECT column_name, data_type FROM information_schema.columns
        WHERE table_name = 'answers' ORDER BY ordinal_position"""
    ).fetchall()
    assert dict(types) == {
        "t": "timestamp with time zone",
        "s": "text",
        "f": "double precision",
        "d": "numeric",
        "b": "bytea",
        "l": "jsonb",
        "o": "jsonb",
        "day": "date",
        "yes": "boolean",
        "ago": "interval",
        "i": "integer",
        "n": "integer",
        "r": "real",
        "nothing": "text",
        "valid_from": "timestamp with time zone",
        "valid_to": "timestamp with time zone",
    }
    columns = ", ".join(rows[0])
    found = database.execute(f"SELECT {columns} FROM answers ORDER BY t").fetchall()
    expected = [{**row, "t": row["t"].replace(tzinfo=datetime.UTC)} for row in rows]  # type: ignore[attr-defined]
    assert repr(found) == repr([tuple(row.values()) for row in expected]).replace(
        "datetime.timezone.utc", found[0][0].tzinfo.__repr__()
    )
    more = "SELECT ago, i, n, r, nothing, valid_to = 'infinity' FROM answers ORDER BY t LIMIT 1"
    ago = datetime.timedelta(microseconds=-999_995)
    assert database.execute(more).fetchall() == [(ago, 1, 2, 0.5, None, True)]


def test_changes_and_raw_time(url: str, database: Any) -> None:
    query = rows_session(3).sql("SELECT x FROM S WINDOW(RANGE 2) EMIT CHANGES")
    query.start(ms.sink("postgresql", url=url, table="public.answers")).wait()
    found = database.execute("SELECT x, at, change FROM answers").fetchall()
    assert sorted(found) == sorted(tuple(row.values()) for row in query.run().to_pylist())


def test_names_that_need_quotes(url: str, database: Any) -> None:
    session = rows_session(1)
    session.sql('SELECT x AS `Größe "in" m` FROM S').start(
        ms.sink("postgres", url=url, table="My table")
    ).wait()
    assert database.execute('SELECT "Größe ""in"" m" FROM "My table"').fetchall() == [(0,)]


def test_insert_into(url: str, database: Any) -> None:
    session = rows_session()
    insert = "INSERT INTO postgres(url => :url, table => 'answers') SELECT x FROM S"
    session.sql(insert, url=url).run()
    session.sql(insert, url=url).run()  # a table takes more than one query
    assert database.execute("SELECT count(*) FROM answers").fetchone() == (200,)


# --- tables that are there ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "definition",
    [
        "x bigint, valid_from bigint, valid_to bigint",
        "id serial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), note text, "
        "valid_to numeric, valid_from bigint, x numeric",
    ],
)
def test_tables_that_fit(url: str, database: Any, definition: str) -> None:
    database.execute(f"CREATE TABLE answers ({definition})")
    rows_session().sql("SELECT x FROM S").start(
        ms.sink("postgres", url=url, table="answers")
    ).wait()
    assert database.execute("SELECT sum(x) FROM answers").fetchone() == (328350,)


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("x text, valid_from bigint, valid_to bigint", '"x" is text but must be bigint'),
        ("x bigint, valid_from bigint", 'it has no column "valid_to"'),
        (
            "x bigint, valid_from bigint, valid_to bigint, who text NOT NULL",
            'the query has no "who", which must not be NULL',
        ),
    ],
)
def test_tables_that_do_not_fit(url: str, database: Any, definition: str, message: str) -> None:
    database.execute(f"CREATE TABLE answers ({definition})")
    with pytest.raises(ms.QueryError) as error:
        rows_session().sql("SELECT x FROM S").start(ms.sink("postgres", url=url, table="answers"))
    assert 'table "answers" of PostgreSQL does not fit the query: ' + message in str(error.value)


def test_a_schema_that_is_not_there(url: str) -> None:
    with pytest.raises(ms.QueryError, match='cannot be written: schema "no" does not exist'):
        opened(url, table="no.answers")


@pytest.mark.parametrize("table", ["", "a.b.c", "a.", 5])
def test_names_that_are_none(url: str, table: Any) -> None:
    with pytest.raises(ms.QueryError, match=r'a table is named "name" or "schema\.name", not'):
        opened(url, table=table)


def test_two_queries_make_the_tables_at_once(url: str, database: Any) -> None:
    threads = [
        threading.Thread(target=given, args=(url, 0), kwargs={"token": str(i)}) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert database.execute("SELECT count(*) FROM answers").fetchone() == (16,)


# --- each batch once ------------------------------------------------------------------------------


def test_a_batch_that_comes_again_is_not_inserted_again(url: str, database: Any) -> None:
    given(url, 0, 1)
    given(url, 1, 2)
    given(url, 0, token="two")
    assert database.execute("SELECT count(*) FROM answers").fetchone() == (8,)
    noted = database.execute("SELECT token, query, batch FROM millstream_batches ORDER BY token")
    assert noted.fetchall() == [("one", "q", 2), ("two", "q", 0)]


def test_a_checkpoint_that_is_older_than_the_table(url: str) -> None:
    given(url, 0, 1, 2, 3, 4)
    with pytest.raises(ms.QueryError, match="has batch 4 of this query, but its checkpoint is at"):
        opened(url, next_batch=3)
    opened(url, next_batch=4).close()


def test_a_batch_is_whole_or_not_there(url: str, database: Any) -> None:
    database.execute("CREATE TABLE answers (x bigint CHECK (x < 2))")
    with pytest.raises(ms.QueryError, match='violates check constraint "answers_x_check"'):
        given(url, 0)
    assert database.execute("SELECT count(*) FROM answers").fetchone() == (0,)
    assert database.execute("SELECT count(*) FROM millstream_batches").fetchone() == (0,)


# --- connections that are lost --------------------------------------------------------------------

_OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def cut(database: Any) -> None:
    assert database.execute(f"SELECT pg_terminate_backend(pid) {_OTHERS}").fetchall()


def test_a_connection_that_is_lost_is_made_again(url: str, database: Any) -> None:
    sink = opened(url)
    sink.give(TABLE, GivenBatch(0, None))
    cut(database)
    sink.give(TABLE, GivenBatch(1, None))
    sink.close()
    assert database.execute("SELECT count(*) FROM answers").fetchone() == (4,)


def test_an_answer_of_the_server_that_is_lost(
    url: str, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch is there, but the commit was not confirmed."""
    write, calls = postgres_rows.Postgres._write, []

    def lossy(self: postgres_rows.Postgres, rows: bytes, batch: int) -> None:
        write(self, rows, batch)
        calls.append(batch)
        if len(calls) == 1:
            self._connection.close()
            raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(postgres_rows.Postgres, "_write", lossy)
    given(url, 0)
    assert calls == [0, 0]
    assert database.execute("SELECT count(*) FROM answers").fetchone() == (2,)


def test_a_server_that_stays_away(
    url: str, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query fails in words, others go on, and it is started again from its checkpoint."""
    monkeypatch.setattr(postgres_rows, "_PAUSES", (0.01, 0.02))
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    sink = ms.sink("postgres", url=url, table="answers")
    pause = threading.Event()

    def numbers() -> Iterator[dict[str, int]]:
        for i in range(200):
            if i == 100:
                pause.wait(20)
            yield {"t": i}

    session = ms.Session()
    session.source("numbers", numbers)
    session.sql("CREATE STREAM S (t BIGINT) SOURCE numbers() ORDERED BY t")
    query = session.sql("SELECT t FROM S").named("writer")
    failing = query.start(sink, checkpoint=str(tmp_path))
    other = session.sql("SELECT t FROM S").start()
    with psycopg.connect(server, autocommit=True) as database:
        database.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
        )
        pause.set()
        with pytest.raises(ms.QueryError) as error:
            failing.wait(20)
        database.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    assert 'query "writer": the sink failed: PostgreSQL cannot be reached: ' in str(error.value)
    assert "a checkpoint lets the query resume" in str(error.value)
    assert other.wait(20)
    assert other.results().num_rows == 200
    query.start(sink, checkpoint=str(tmp_path)).wait(20)
    with psycopg.connect(url) as database:
        found = database.execute("SELECT t FROM answers ORDER BY t").fetchall()
    assert found == [(i,) for i in range(200)]


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(ms.QueryError, match=r"PostgreSQL cannot be reached: .*Connection refused"):
        opened("postgresql://127.0.0.1:1/nothing")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ms.QueryError) as error:
        opened("postgresql://x")
    assert str(error.value) == (
        'error: sink "postgres" needs the package "psycopg"\n'
        "help: pip install 'millstream[postgres]'"
    )


# --- texts that PostgreSQL cannot store -----------------------------------------------------------

TEXTS = ["plain", "a\0b", "\\u0000", None, "\0"]
LISTED = [["x"], ["a\0b"], ["\\u0000"], None, ["\\", "\0"]]
UNFIT = 'the text in column "s" has a NUL character, which PostgreSQL cannot store'


def texts_session(**options: Any) -> ms.Session:
    session = ms.Session("local", **options)
    rows = [
        {"t": i, "s": s, "l": ["x"] if i == 1 else listed}
        for i, (s, listed) in enumerate(zip(TEXTS, LISTED, strict=True))
    ]
    session.stream("S", rows, time="t")
    return session


def test_texts_with_nul_are_refused_one_by_one(url: str, database: Any, tmp_path: Path) -> None:
    query = texts_session().sql("SELECT t, s, l FROM S")
    sink = ms.sink("postgres", url=url, table="answers")
    running = query.start(sink, checkpoint=str(tmp_path))
    running.wait()
    found = database.execute("SELECT s, l FROM answers ORDER BY t").fetchall()
    assert found == [("plain", ["x"]), ("\\u0000", ["\\u0000"]), (None, None)]
    assert [(row.message, (row.row or ())[0]) for row in running.errors] == [(UNFIT, 1), (UNFIT, 4)]
    alone = texts_session().sql("SELECT t, l FROM S WHERE t = 4")
    failed = alone.start(ms.sink("postgres", url=url, table="lists"))
    failed.wait()
    assert [row.message for row in failed.errors] == [UNFIT.replace('"s"', '"l"')]


def test_texts_with_nul_in_a_whole_run_and_where_errors_stop(url: str, database: Any) -> None:
    text = f"INSERT INTO postgres(url => '{url}', table => 'answers') SELECT t, s FROM S"
    query = texts_session().sql(text)
    with pytest.warns(ms.MillstreamWarning, match="has a NUL character"):
        assert query.run().num_rows == 5
    assert database.execute("SELECT COUNT(*) FROM answers").fetchall() == [(3,)]
    assert [message for _, message in query.errors] == [UNFIT, UNFIT]
    stopped = texts_session(on_error="stop").sql("SELECT t, s FROM S")
    running = stopped.start(ms.sink("postgres", url=url, table="others"))
    with pytest.raises(ms.QueryError, match="has a NUL character, which PostgreSQL cannot store"):
        running.wait()


def test_texts_with_nul_come_and_go_in_a_kept_table(url: str, database: Any) -> None:
    session = ms.Session("local")
    feed = session.feed("S", {"t": "BIGINT", "s": "STRING"}, time="t")
    query = session.sql("SELECT s FROM S WINDOW(RANGE 10) EMIT CHANGES")
    with query.start(ms.sink("postgres", url=url, table="kept", keep=True)) as running:
        feed.send([(1, "a"), (2, "a\0b"), (5, "b")])
        assert running._worker.await_frontier(4, 20)
        feed.send([(11, "c"), (14, "d")])
        feed.send([(30, "end")])
        feed.close()
        running.wait(60)
    assert {row.message for row in running.errors} == {UNFIT}
    assert database.execute("SELECT s FROM kept").fetchall() == []
