"""Tables in SQLite files: types by affinity and by value, changes, files that are wrong."""

from __future__ import annotations

import datetime
import os
import sqlite3
import threading
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from connectors.tables.followers import contents, declared, following
from millstream.connectors.registry import table_source
from millstream.logical.catalog import Table
from millstream.model import types
from millstream.model.errors import MillstreamError


def database(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def table(path: Path, columns: dict[str, pa.DataType], **more: Any) -> Table:
    return declared("sqlite", columns, path=str(path), table="t", **more)


def message(declaration: Table) -> str:
    with pytest.raises(MillstreamError) as error:
        contents(declaration)
    return str(error.value).removeprefix("error: ")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some data.db"


def test_types(path: Path) -> None:
    database(
        path,
        """CREATE TABLE t (yes BOOLEAN, i INTEGER, n BIGINT, r REAL, d DOUBLE, price DECIMAL(10, 2),
        exact TEXT, s VARCHAR(20), b BLOB, day DATE, ts DATETIME, free, more TEXT)""",
        """INSERT INTO t VALUES (1, 5, 9007199254740993, 0.5, 0.1, 10.10, '0.30', 'é', x'00ff',
        '2024-02-29', '2024-02-29 12:00:00.5', 7, '')""",
        "INSERT INTO t (more) VALUES ('')",
    )
    columns = {
        "YES": types.BOOLEAN,
        "i": types.INT,
        "n": types.BIGINT,
        "r": types.REAL,
        "d": types.DOUBLE,
        "price": types.decimal_type(10, 2),
        "exact": types.decimal_type(5, 3),
        "s": types.STRING,
        "b": types.BINARY,
        "day": types.DATE,
        "ts": types.TIMESTAMP,
        "free": types.BIGINT,
    }
    found = contents(table(path, columns))
    assert dict(zip(found.column_names, found.schema.types, strict=True)) == columns
    first, second = found.to_pylist()
    assert list(first.values()) == [
        True,
        5,
        9007199254740993,
        0.5,
        0.1,
        Decimal("10.10"),
        Decimal("0.300"),
        "é",
        b"\x00\xff",
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 12, 0, 0, 500000),
        7,
    ]
    assert set(second.values()) == {None}


@pytest.mark.parametrize(
    ("column", "type", "expected"),
    [
        ("x TEXT", types.INT, "is TEXT, and not all its values are INT"),
        ("x INTEGER", types.STRING, "is INTEGER, and not all its values are STRING"),
        ("x INTEGER", pa.list_(types.INT), "is INTEGER, and not all its values are ARRAY<INT>"),
    ],
)
def test_types_that_do_not_fit(path: Path, column: str, type: pa.DataType, expected: str) -> None:
    database(path, f"CREATE TABLE t ({column})")
    assert message(table(path, {"x": type})) == (
        f'table "T": column "x" of table "t" of the SQLite file "{path}" {expected}\n'
        "help: declare a type that can hold all its values"
    )


@pytest.mark.parametrize(
    ("column", "value", "type"),
    [
        ("x INTEGER", "'many'", types.BIGINT),
        ("x INTEGER", "2147483648", types.INT),
        ("x INTEGER", "0.5", types.BIGINT),
        ("x BOOLEAN", "2", types.BOOLEAN),
        ("x REAL", "0.1", types.REAL),
        ("x NUMERIC", "9007199254740993", types.DOUBLE),
        ("x DECIMAL", "0.125", types.decimal_type(10, 2)),
        ("x TEXT", "'abc'", types.decimal_type(10, 2)),
        ("x TEXT", "x'00'", types.STRING),
        ("x DATE", "20240101", types.DATE),
        ("x DATE", "'soon'", types.DATE),
        ("x DATETIME", "1700000000", types.TIMESTAMP),
    ],
)
def test_values_that_do_not_fit(path: Path, column: str, value: str, type: pa.DataType) -> None:
    database(path, f"CREATE TABLE t ({column})", f"INSERT INTO t VALUES (NULL), ({value})")
    text = message(table(path, {"x": type}))
    assert text.endswith(
        f'in column "x" of table "t" of the SQLite file "{path}" is not {types.sql_name(type)}'
    )


def test_what_is_not_there(path: Path) -> None:
    assert message(table(path, {"x": types.INT})) == f'table "T": there is no SQLite file "{path}"'
    assert not path.exists()
    database(path, "CREATE TABLE tt (name TEXT)")
    assert message(table(path, {"x": types.INT})) == (
        f'table "T": there is no table "t" of the SQLite file "{path}"\nhelp: the table is "tt"'
    )
    database(path, "CREATE TABLE t (name TEXT)", "INSERT INTO t VALUES (NULL)")
    assert message(table(path, {"nam": types.STRING})) == (
        f'table "T": table "t" of the SQLite file "{path}" has no column "nam"\n'
        'help: did you mean "name"?'
    )
    assert message(table(path, {"name": types.STRING}, required=("name",))) == (
        f'table "T": table "t" of the SQLite file "{path}" has a row that does not fit: column '
        '"name" is NOT NULL'
    )
    path.write_text("something else, which is long enough to be looked at")
    assert message(table(path, {"x": types.INT})).endswith("cannot be read: file is not a database")


def test_views_and_generated_columns(path: Path) -> None:
    database(
        path,
        "CREATE TABLE base (a INTEGER, b INTEGER AS (a * 2))",
        "INSERT INTO base VALUES (4)",
        "CREATE VIEW t AS SELECT a, b FROM base",
    )
    assert contents(table(path, {"b": types.BIGINT})).to_pylist() == [{"b": 8}]
    declaration = declared("sqlite", {"b": types.BIGINT}, path=str(path), table="base")
    assert contents(declaration).to_pylist() == [{"b": 8}]


COLUMNS = {"id": types.BIGINT, "name": types.STRING}


def test_rows_that_change(path: Path) -> None:
    database(path, "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
    declaration = table(path, COLUMNS, key=("id",), refresh="0.02 seconds")
    writer = sqlite3.connect(path, isolation_level=None)
    with following(declaration) as follower:
        expected: Counter[tuple[Any, ...]] = Counter()
        for i in range(5):
            writer.execute("BEGIN")
            writer.execute("INSERT INTO t VALUES (?, 'a')", [i])
            writer.execute("UPDATE t SET name = name || 'b' WHERE id < ?", [i])
            writer.execute("COMMIT")
            expected = Counter(dict.fromkeys(writer.execute("SELECT id, name FROM t"), 1))
            follower.until_rows(expected)
        assert len(follower.history) == 6
        writer.execute("ALTER TABLE t RENAME COLUMN name TO called")
        follower.until_trouble('has no column "name"')
        assert follower.rows == expected
        writer.execute("ALTER TABLE t RENAME COLUMN called TO name")
        follower.until_rows(expected)
        writer.execute("DELETE FROM t")
        follower.until_rows(Counter())
    writer.close()


def test_another_file_in_its_place(path: Path, tmp_path: Path) -> None:
    create = "CREATE TABLE t (id INTEGER, name TEXT)"
    database(path, create, "INSERT INTO t VALUES (1, 'a')")
    with following(table(path, COLUMNS, refresh="0.02 seconds")) as follower:
        other = tmp_path / "other.db"
        database(other, create, "INSERT INTO t VALUES (2, 'b')")
        os.replace(other, path)
        follower.until_rows(Counter({(2, "b"): 1}))
        path.unlink()
        follower.until_trouble("there is no SQLite file")
        database(path, create)
        follower.until_rows(Counter())


def test_files_that_do_not_change_are_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from millstream.connectors.tables.sqlite_file import SqliteTable

    database(path, "CREATE TABLE t (id INTEGER, name TEXT)")
    read, times = SqliteTable.read, []

    def counted(self: SqliteTable) -> pa.Table:
        times.append(1)
        return read(self)

    monkeypatch.setattr(SqliteTable, "read", counted)
    with following(table(path, COLUMNS, refresh="0.01 seconds")) as follower:
        threading.Event().wait(0.2)
        assert len(times) == 1
        database(path, "INSERT INTO t VALUES (1, 'a')")
        follower.until_rows(Counter({(1, "a"): 1}))
        assert len(times) == 2


def test_closing_wakes_whoever_reads(path: Path) -> None:
    endless = "WITH RECURSIVE c(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM c) SELECT id FROM c"
    database(path, f"CREATE VIEW t AS SELECT count(*) AS id FROM ({endless})")
    source = table_source(table(path, {"id": types.BIGINT}))
    failures = []

    def read() -> None:
        try:
            source.contents()
        except MillstreamError as error:
            failures.append(str(error))

    thread = threading.Thread(target=read)
    thread.start()
    threading.Event().wait(0.1)
    source.close()
    thread.join(5)
    assert not thread.is_alive()
    assert "cannot be read: interrupted" in failures[0]
