"""INSERT, UPDATE, DELETE and MERGE: what they change, when, and that it is all or nothing."""

from __future__ import annotations

import datetime
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.cli.main import run_command
from runtime.live import Seen

WINDOWED = "SELECT S.t, v FROM S WINDOW(RANGE 10) JOIN R ON S.k = R.k EMIT CHANGES"


@pytest.fixture
def session() -> ms.Session:
    session = ms.Session("local")
    session.sql("CREATE TABLE R (k INT, v STRING, PRIMARY KEY (k))")
    return session


def rows(session: ms.Session, table: str = "R") -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in session.sql(f"SELECT * FROM {table}").run().to_pylist()]


# --- what is changed ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "count", "left"),
    [
        ("INSERT INTO R VALUES (3, 'c'), (4, NULL)", 2, [(1, "a"), (2, "b"), (3, "c"), (4, None)]),
        ("INSERT INTO R (v, k) VALUES ('c', 1 + 2)", 1, [(1, "a"), (2, "b"), (3, "c")]),
        ("INSERT INTO R SELECT k + 10, v FROM R", 2, [(1, "a"), (2, "b"), (11, "a"), (12, "b")]),
        ("INSERT INTO R (SELECT k + 10, v FROM R WHERE k = 1)", 1, [(1, "a"), (2, "b"), (11, "a")]),
        ("UPDATE R SET v = upper(v) WHERE k = 1", 1, [(1, "A"), (2, "b")]),
        ("UPDATE R SET k = k + 1", 2, [(2, "a"), (3, "b")]),
        ("UPDATE R SET k = 3 - k", 2, [(1, "b"), (2, "a")]),
        ("UPDATE R SET v = v", 2, [(1, "a"), (2, "b")]),
        ("UPDATE R AS x SET v = x.v || :end WHERE x.k > 1", 1, [(1, "a"), (2, "b!")]),
        ("UPDATE R SET v = (SELECT MAX(v) FROM R)", 2, [(1, "b"), (2, "b")]),
        ("DELETE FROM R WHERE k = (SELECT MAX(k) FROM R)", 1, [(1, "a")]),
        ("DELETE FROM R", 2, []),
        ("DELETE FROM R WHERE NULL", 0, [(1, "a"), (2, "b")]),
        (
            "MERGE INTO R USING R AS o ON R.k = o.k + 1 WHEN MATCHED THEN UPDATE SET v = o.v "
            "WHEN NOT MATCHED THEN INSERT VALUES (o.k + 1, o.v)",
            2,
            [(1, "a"), (2, "a"), (3, "b")],
        ),
        (
            "MERGE INTO R USING (SELECT 1 AS k, 'x' AS v FROM R WHERE k = 1) s ON R.k = s.k "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY SOURCE THEN DELETE",
            2,
            [(1, "x")],
        ),
        (
            "MERGE INTO R USING (VALUES (2, 'x'), (5, 'y')) AS s (k, v) ON R.k = s.k "
            "WHEN NOT MATCHED THEN INSERT *",
            1,
            [(1, "a"), (2, "b"), (5, "y")],
        ),
    ],
)
def test_rows(session: ms.Session, text: str, count: int, left: list[tuple[Any, ...]]) -> None:
    session.sql("INSERT INTO R VALUES (1, 'a'), (2, 'b')")
    assert session.sql(text, end="!") == count
    assert rows(session) == left


def test_rows_that_are_there_twice() -> None:
    session = ms.Session("local")
    session.sql(
        "CREATE TABLE R (k INT, v STRING); INSERT INTO R VALUES (1, 'a'), (1, 'a'), (2, 'b')"
    )
    assert session.sql("UPDATE R SET v = 'x' WHERE k = 1") == 2
    assert session.sql("DELETE FROM R WHERE v = 'x'") == 2
    assert rows(session) == [(2, "b")]


def test_a_statement_that_fails_changes_nothing(session: ms.Session) -> None:
    session.sql("INSERT INTO R VALUES (1, 'a'), (2, 'b')")
    for text in (
        "INSERT INTO R VALUES (3, 'c'), (1, 'twice')",
        "UPDATE R SET k = 7",
        "UPDATE R SET k = 1 / (k - 1)",
        "MERGE INTO R USING (VALUES (1, 'x'), (1, 'y')) AS s (k, v) ON R.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED BY SOURCE THEN DELETE",
        "INSERT INTO R VALUES (9, 'c') EFFECTIVE AT 'no time'",
    ):
        with pytest.raises(ms.MillstreamError):
            session.sql(text)
        assert rows(session) == [(1, "a"), (2, "b")], text


def test_types_are_those_of_the_table() -> None:
    session = ms.Session("local")
    session.sql("CREATE TABLE T (at TIMESTAMP, d DATE, n DECIMAL(6, 2), x DOUBLE, a ARRAY<INT>)")
    session.sql("INSERT INTO T VALUES ('2026-01-02 03:04:05', '2026-01-02', 1, 2, ARRAY(1, 2))")
    when = datetime.datetime(2026, 1, 2, 3, 4, 5)
    assert session.sql("UPDATE T SET at = :now, n = n + 0.005", now=when) == 1
    ((at, day, number, double, array),) = rows(session, "T")
    assert (at, str(day), str(number), double, array) == (when, "2026-01-02", "1.01", 2.0, [1, 2])


def test_statements_read_views(session: ms.Session) -> None:
    feed = session.feed("S", {"t": "BIGINT", "k": "INT"}, time="t")
    view = session.sql("CREATE MATERIALIZED VIEW V AS SELECT k FROM S WINDOW(RANGE 100)")
    feed.send([{"t": 1, "k": 5}])
    feed.heartbeat(3)
    view.as_of(2, timeout=20)
    assert session.sql("INSERT INTO R SELECT k, 'seen' FROM V") == 1
    assert rows(session) == [(5, "seen")]
    with pytest.raises(ms.BindError, match='"V" is a view, and DELETE changes tables'):
        session.sql("DELETE FROM V")
    view.stop()


def test_a_table_that_lives_elsewhere_is_changed_there(tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_text("k\n1\n")
    session = ms.Session("local")
    session.sql("CREATE TABLE R (k INT) SOURCE csv(:file)", file=str(file))
    with pytest.raises(ms.BindError, match='table "R" is external'):
        session.sql("DELETE FROM R")
    session.sql("CREATE TABLE T (k INT)")
    assert session.sql("INSERT INTO T SELECT k FROM R") == 1


# --- when it takes effect -------------------------------------------------------------------------


def running(session: ms.Session, **options: Any) -> tuple[ms.Feed, Seen, Any]:
    feed = session.feed("S", {"t": "BIGINT", "k": "INT"}, time="t")
    seen = Seen()
    return feed, seen, session.sql(WINDOWED).start(seen, **options)


def test_a_running_query_sees_a_change_whole(session: ms.Session) -> None:
    feed, seen, query = running(session)
    session.sql("INSERT INTO R VALUES (1, 'a'), (2, 'b')")
    feed.send([{"t": 1, "k": 1}, {"t": 1, "k": 2}])
    feed.send([{"t": 5, "k": 9}])
    seen.await_rows(2)
    session.sql("UPDATE R SET v = upper(v) EFFECTIVE AT 7")
    feed.close()
    query.wait(20)
    at_7 = [(row["t"], row["v"], row["change"]) for row in seen.rows() if row["at"] == 7]
    assert sorted(at_7) == [(1, "A", 1), (1, "B", 1), (1, "a", -1), (1, "b", -1)]
    assert len({id(t) for t in seen.tables if 7 in t["at"].to_pylist()}) == 1


def test_what_is_final_does_not_change(session: ms.Session) -> None:
    feed, seen, query = running(session)
    session.sql("INSERT INTO R VALUES (1, 'a')")
    feed.send([{"t": 8, "k": 1}])
    feed.heartbeat(20)
    seen.await_frontier(20)
    with pytest.raises(ms.DataError) as error:
        session.sql("DELETE FROM R EFFECTIVE AT 19")
    assert str(error.value).startswith('error: table "R" cannot change at 19: it is final up to 20')
    assert session.sql("DELETE FROM R EFFECTIVE AT 20") == 1
    query.stop()


def test_a_constant_table_does_not_change_while_it_is_read() -> None:
    session = ms.Session("local")
    session.sql("CREATE TABLE R (k INT, v STRING) CONSTANT; INSERT INTO R VALUES (1, 'a')")
    feed, _, query = running(session)
    with pytest.raises(ms.DataError, match='table "R" is CONSTANT, and a query reads it'):
        session.sql("DELETE FROM R")
    query.stop()
    assert session.sql("DELETE FROM R") == 1
    feed.close()


def test_a_column_that_gives_the_time() -> None:
    session = ms.Session("local")
    session.sql("CREATE TABLE R (k INT, since BIGINT, PRIMARY KEY (k)) ORDERED BY since")
    session.stream("S", [{"t": 1, "k": 1}, {"t": 9, "k": 1}], time="t")
    session.sql("INSERT INTO R VALUES (1, 5)")
    session.sql("UPDATE R SET since = 8 EFFECTIVE AT 8")
    text = "SELECT t, since FROM S WINDOW(RANGE 20) JOIN R ON S.k = R.k"
    assert [tuple(row.values()) for row in session.sql(text).run().to_pylist()] == [
        (1, 5, 5, 8),
        (1, 8, 8, 21),
        (9, 8, 9, 29),
    ]


def test_statements_of_several_threads(session: ms.Session) -> None:
    """Each is one change, whichever tables it reads, and none waits forever."""
    session.sql("CREATE TABLE Q (k INT, v STRING, PRIMARY KEY (k))")
    session.sql("INSERT INTO R VALUES (1, 'a'); INSERT INTO Q VALUES (1, 'a')")
    failures: list[BaseException] = []

    def work(own: str, other: str) -> None:
        try:
            for _ in range(20):
                session.sql(f"UPDATE {own} SET v = (SELECT MAX(v) FROM {other})")
                session.sql(f"SELECT * FROM {own} JOIN {other} ON {own}.k = {other}.k").run()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=names) for names in (("R", "Q"), ("Q", "R"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)


# --- the command line -----------------------------------------------------------------------------

SCRIPT = """
CREATE TABLE R (k INT, v STRING, PRIMARY KEY (k));
INSERT INTO R VALUES (1, 'a'), (2, 'b');
UPDATE R SET v = 'c' WHERE k = 2;
SELECT * FROM R;
"""


def test_a_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tables.sql"
    file.write_text(SCRIPT)
    assert run_command(["run", str(file), "--engine", "local", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "k,v\n1,a\n2,c\n"
    assert run_command(["check", str(file)]) == 0
    assert "4 statements" in capsys.readouterr().err


def test_a_script_with_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tables.sql"
    file.write_text(SCRIPT.replace("SET v", "SET w"))
    assert run_command(["check", str(file)]) == 1
    assert 'column "w" does not exist in table "R"' in capsys.readouterr().err


def test_nothing_is_warned_of(session: ms.Session) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.sql(SCRIPT.replace("CREATE TABLE R", "CREATE TABLE T").replace(" R", " T"))


# --- answers that never begin ---------------------------------------------------------------------

EMPTY = (
    "warning: the answer is empty: it begins with the first change that has a time, and no "
    "change of {} does\n"
    "help: leave EMIT out to get the current rows, give changes a time with EFFECTIVE AT, or "
    "start the query"
)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("emit", ["FINAL", "CHANGES"])
def test_a_history_without_times_is_told(engine: str, emit: str) -> None:
    session = ms.Session(engine=engine)
    for name in ("B", "A"):
        session.sql(f"CREATE TABLE {name} (id INT)")
        session.sql(f"INSERT INTO {name} VALUES (1)")
    for text, tables in [
        ("SELECT id FROM B", 'table "B"'),
        ("SELECT A.id FROM B JOIN A ON A.id = B.id", 'tables "A" and "B"'),
    ]:
        query = session.sql(f"{text} EMIT {emit}")
        for ask in (query.run, lambda query=query: query.snapshot("2026-01-01")):
            with pytest.warns(ms.MillstreamWarning) as told:
                assert ask().num_rows == 0
            assert [str(warning.message) for warning in told] == [EMPTY.format(tables)]
    session.sql("INSERT INTO A VALUES (2) EFFECTIVE AT TIMESTAMP '2026-01-01'")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert session.sql(f"SELECT id FROM A EMIT {emit}").run().num_rows
        assert session.sql("SELECT id FROM B").run().num_rows == 1


@pytest.mark.filterwarnings("error")
def test_a_history_with_times_or_streams_is_not_told() -> None:
    session = ms.Session(engine="local")
    session.sql("CREATE TABLE Own (id INT, a BIGINT, b BIGINT) VALID FROM a TO b")
    session.sql("CREATE TABLE Timed (id INT, t BIGINT) ORDERED BY t")
    session.sql("CREATE TABLE R (id INT)")
    session.stream("S", [{"t": 1}], time="t", schema={"t": "BIGINT"})
    for text in ("SELECT id FROM Own", "SELECT id FROM Timed", "SELECT id FROM R, S"):
        session.sql(f"{text} EMIT FINAL").run()
