"""FIRST, LAST, ANY_VALUE and ARRAY_AGG over tables: rows in the order in which they came, and none
that went."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.relations import table_inlet, tables

pytestmark = pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")

SOON = 60.0
ENGINES = ("local", "reference")
ORDERED = "ARRAY_AGG(id) AS a, FIRST(id) AS f, LAST(id) AS l, ANY_VALUE(id) AS v"


def rows_of(view: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in view.table().to_pylist()]


def becomes(view: Any, expected: list[tuple[Any, ...]]) -> None:
    deadline = time.monotonic() + SOON
    while rows_of(view) != expected and time.monotonic() < deadline:
        time.sleep(0.001)
    assert rows_of(view) == expected


@pytest.fixture
def session() -> ms.Session:
    session = ms.Session(engine="local")
    session.sql("CREATE TABLE t (id INT)")
    return session


def asked(session: ms.Session) -> list[int] | None:
    """What the table has, in its order."""
    return session.sql("SELECT ARRAY_AGG(id) AS a FROM t").run()["a"][0].as_py()


# --- rows that go ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "t",
        "t WHERE id > 0",
        "(SELECT id FROM t) s",
        "(SELECT id FROM t WHERE id < 9) s WHERE id > 0",
    ],
)
def test_a_deleted_row_is_forgotten(session: ms.Session, source: str) -> None:
    session.sql(f"CREATE MATERIALIZED VIEW w AS SELECT COUNT(*) AS n, {ORDERED} FROM {source}")
    view = session.views["w"]
    session.sql("INSERT INTO t VALUES (1)")
    becomes(view, [(1, [1], 1, 1, 1)])
    session.sql("DELETE FROM t")
    becomes(view, [(0, None, None, None, None)])
    session.sql("INSERT INTO t VALUES (2), (1)")
    becomes(view, [(2, [2, 1], 2, 1, 2)])
    view.stop()


def test_a_deleted_row_is_forgotten_in_its_group(session: ms.Session) -> None:
    session.sql(
        "CREATE MATERIALIZED VIEW w AS SELECT id % 2 AS k, ARRAY_AGG(id) AS a FROM t GROUP BY 1"
    )
    view = session.views["w"]
    session.sql("INSERT INTO t VALUES (3), (1), (2), (5)")
    becomes(view, [(0, [2]), (1, [3, 1, 5])])
    session.sql("DELETE FROM t WHERE id IN (1, 2)")
    becomes(view, [(1, [3, 5])])
    view.stop()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_history_of_changes(engine: str) -> None:
    session = ms.Session(engine=engine)
    session.sql("CREATE TABLE t (id INT)")
    session.sql("INSERT INTO t VALUES (3), (1), (2)")
    session.sql("DELETE FROM t WHERE id = 1 EFFECTIVE AT 10")
    session.sql("UPDATE t SET id = 7 WHERE id = 3 EFFECTIVE AT 20")
    session.sql("INSERT INTO t VALUES (4) EFFECTIVE AT 40")
    session.sql("INSERT INTO t VALUES (5) EFFECTIVE AT 30")  # came later, and holds before
    query = session.sql("SELECT ARRAY_AGG(id) AS a FROM t EMIT FINAL")
    assert [(row["a"], row["valid_from"]) for row in query.run().to_pylist()] == [
        ([3, 2], 10),
        ([2, 7], 20),
        ([2, 7, 5], 30),
        ([2, 7, 4, 5], 40),
    ]


# --- which place a row has ------------------------------------------------------------------------


def test_rows_come_in_the_order_of_values(session: ms.Session) -> None:
    session.sql("INSERT INTO t VALUES (3), (1), (2), (1)")
    assert asked(session) == [3, 1, 2, 1]


def test_rows_made_of_others_come_in_their_order(session: ms.Session) -> None:
    session.sql("INSERT INTO t VALUES (3), (1), (2)")
    session.sql("INSERT INTO t SELECT id * 10 FROM t WHERE id > 1")
    assert asked(session) == [3, 1, 2, 30, 20]


def test_an_updated_row_comes_last(session: ms.Session) -> None:
    session.sql("INSERT INTO t VALUES (3), (1), (2)")
    session.sql("UPDATE t SET id = 30 WHERE id = 3")
    assert asked(session) == [1, 2, 30]


def test_updated_rows_keep_their_order_among_each_other(session: ms.Session) -> None:
    session.sql("INSERT INTO t VALUES (3), (1), (3), (2)")
    session.sql("UPDATE t SET id = id + 10 WHERE id > 1")
    assert asked(session) == [1, 13, 13, 12]


def test_a_row_that_is_left_as_it_is_keeps_its_place(session: ms.Session) -> None:
    session.sql("INSERT INTO t VALUES (3), (1), (2)")
    session.sql("UPDATE t SET id = id")
    session.sql("UPDATE t SET id = 3 WHERE id = 3")
    assert asked(session) == [3, 1, 2]


def test_merged_rows_come_by_clauses(session: ms.Session) -> None:
    session.sql("INSERT INTO t VALUES (3), (1), (2)")
    session.sql(
        "MERGE INTO t USING (VALUES (9), (3), (8), (1)) AS s(id) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET id = t.id * 10 WHEN NOT MATCHED THEN INSERT VALUES (s.id)"
    )
    assert asked(session) == [2, 30, 10, 9, 8]


def test_of_equal_rows_the_last_goes_first() -> None:
    session = ms.Session(engine="local")
    table = session.table("t", [{"id": 1}, {"id": 2}, {"id": 1}], schema={"id": "INT"})
    table.delete([{"id": 1}])
    assert asked(session) == [1, 2]
    table.insert([{"id": 1}])
    table.replace([{"id": 3}, {"id": 1}, {"id": 2}])
    assert asked(session) == [1, 2, 3]
    assert table.rows().to_pylist() == [{"id": 1}, {"id": 2}, {"id": 3}]


def test_the_last_row_of_a_key_comes_with_its_stream() -> None:
    session = ms.Session(engine="local")
    rows = [{"ts": t, "k": k, "x": x} for t, k, x in [(1, "b", 1), (2, "a", 2), (3, "b", 3)]]
    session.stream("s", rows, time="ts", schema={"ts": "BIGINT", "k": "STRING", "x": "INT"})
    session.sql("CREATE TABLE last AS LATEST BY k FROM s")
    query = session.sql("SELECT ARRAY_AGG(x) AS a FROM last EMIT FINAL")
    answer = [(row["a"], row["valid_from"]) for row in query.run().to_pylist()]
    assert answer == [([1], 1), ([1, 2], 2), ([2, 3], 3)]


# --- long lives -----------------------------------------------------------------------------------


def test_numbers_outlast_the_forgetting_of_rows(session: ms.Session) -> None:
    session.sql(f"CREATE MATERIALIZED VIEW w AS SELECT {ORDERED} FROM t")
    session.sql("INSERT INTO t VALUES (-1), (-2), (-1)")
    for first in range(0, 9000, 3000):
        session.sql(f"INSERT INTO t VALUES {', '.join(f'({first + n})' for n in range(3000))}")
        session.sql("DELETE FROM t WHERE id >= 0")
    becomes(session.views["w"], [([-1, -2, -1], -1, -1, -1)])
    session.sql("DELETE FROM t WHERE id = -1")
    becomes(session.views["w"], [([-2], -2, -2, -2)])
    session.views["w"].stop()


def test_versions_that_become_one_keep_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_MANY", 4)
    session = ms.Session(engine="local")
    table = session.table("t", [{"id": 2}, {"id": 1}], schema={"id": "INT"})
    table.insert([{"id": 3}], at=0)
    text = "SELECT ARRAY_AGG(t.id) AS a FROM t EMIT CHANGES"
    given: list[dict[str, Any]] = []
    running = session.sql(text).start(lambda rows, _: given.extend(rows.to_pylist()))
    for at in range(1, 30):
        table.delete([{"id": at}], at=at)
        table.insert([{"id": at + 3}], at=at)
        deadline = time.monotonic() + SOON
        while max((row["at"] for row in given), default=0) < at - 1:  # what is final
            assert time.monotonic() < deadline
            time.sleep(0.0005)
    late = session.sql(text).run().to_pylist()
    running.stop()
    assert [row["a"] for row in late if row["change"] > 0][-1] == [30, 31, 32]
    assert [row["a"] for row in given if row["change"] > 0][-1] == [29, 30, 31]


# --- restarts -------------------------------------------------------------------------------------


class Program:
    """A view of a table that its program creates at each start."""

    def __init__(self, folder: Path, rows: list[int]) -> None:
        self.session = ms.Session(engine="local")
        made = [{"id": row} for row in rows]
        self.table = self.session.table("t", made, schema={"id": "INT"})
        self.session.sql(
            f"CREATE MATERIALIZED VIEW w AS SELECT ARRAY_AGG(id) AS a FROM t IN '{folder}'"
        )
        self.view = self.session.views["w"]

    def changed(self, gone: list[int], come: list[int], expected: list[int] | None) -> None:
        if gone:
            self.table.delete([{"id": row} for row in gone])
        if come:
            self.table.insert([{"id": row} for row in come])
        becomes(self.view, [(expected,)])


@pytest.mark.parametrize("folds", [False, True])
def test_after_a_restart_rows_keep_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folds: bool
) -> None:
    if folds:  # what was received becomes one change at once
        monkeypatch.setattr(table_inlet, "_MANY_ENTRIES", 1)
    first = Program(tmp_path, [3, 1, 2])
    first.changed([], [1, 4], [3, 1, 2, 1, 4])
    first.changed([3], [3], [1, 2, 1, 4, 3])
    first.view.stop()
    second = Program(tmp_path, [5, 3, 4, 1, 2, 1])  # the same rows in another order, and one more
    second.changed([], [], [1, 2, 1, 4, 3, 5])
    second.changed([1], [], [1, 2, 4, 3, 5])
    second.changed([2, 5], [6], [1, 4, 3, 6])
    second.view.stop()
    third = Program(tmp_path, [6, 3, 3])
    third.changed([], [], [3, 6, 3])
    third.changed([3], [1], [3, 6, 1])
    third.view.stop()


# --- tables elsewhere -----------------------------------------------------------------------------


def test_a_table_elsewhere_that_is_compared(tmp_path: Path) -> None:
    file = tmp_path / "there.sqlite"

    def do(*statements: str) -> None:
        with closing(sqlite3.connect(file, timeout=60)) as there, there:
            for statement in statements:
                there.execute(statement)

    do("CREATE TABLE t (id INT)", "INSERT INTO t VALUES (3), (1), (2), (1)")
    session = ms.Session(engine="local")
    session.sql(
        f"CREATE TABLE t (id INT) SOURCE sqlite('{file}', table => 't', "
        "refresh => '20 milliseconds')"
    )
    session.sql(f"CREATE MATERIALIZED VIEW w AS SELECT {ORDERED} FROM t")
    view = session.views["w"]
    becomes(view, [([3, 1, 2, 1], 3, 1, 3)])
    do("DELETE FROM t WHERE id = 3", "INSERT INTO t VALUES (5)")
    becomes(view, [([1, 2, 1, 5], 1, 5, 1)])
    do("DELETE FROM t WHERE id = 1")
    becomes(view, [([2, 5], 2, 5, 2)])
    view.stop()


def test_a_constant_table_elsewhere_may_be_read_again(tmp_path: Path) -> None:
    """Reading the same rows is no change, also while a query reads them."""
    file = tmp_path / "there.csv"
    file.write_text("id\n3\n1\n")
    session = ms.Session(engine="local")
    session.sql(f"CREATE TABLE t (id INT) SOURCE csv('{file}') CONSTANT")
    session.feed("s", {"ts": "BIGINT"}, time="ts")
    for name in ("first", "second"):
        session.sql(f"CREATE MATERIALIZED VIEW {name} AS SELECT t.id FROM t, s WINDOW(RANGE 5)")
    assert asked(session) == [3, 1]
    for view in session.views.values():
        view.stop()
