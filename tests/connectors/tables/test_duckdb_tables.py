"""Tables in DuckDB files."""

from __future__ import annotations

import datetime
import subprocess
import sys
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

duckdb = pytest.importorskip("duckdb", reason="pip install 'millstream[duckdb]'")


def database(path: Path, *statements: str) -> None:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)


def table(path: Path, columns: dict[str, pa.DataType], **more: Any) -> Table:
    return declared("duckdb", columns, path=str(path), **{"table": "t", **more})


def message(declaration: Table) -> str:
    with pytest.raises(MillstreamError) as error:
        contents(declaration)
    return str(error.value).removeprefix("error: ")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.duckdb"


def test_types(path: Path) -> None:
    database(
        path,
        "CREATE TYPE mood AS ENUM ('good', 'bad')",
        "CREATE SCHEMA mine",
        """CREATE TABLE mine."a table" AS SELECT true AS yes, 1::TINYINT AS i, 2::UINTEGER AS n,
        3::HUGEINT AS h, 0.5::FLOAT AS r, 0.1::DOUBLE AS d, 1.50::DECIMAL(4, 2) AS p, 'é' AS s,
        'good'::mood AS m, '\\x00'::BLOB AS b, DATE '2024-02-29' AS day,
        TIMESTAMP '2024-02-29 12:00:00' AS ts, TIMESTAMPTZ '2024-02-29 12:00:00+01' AS tz,
        [1, NULL] AS l, {'u': 1, 'v': 'z'} AS o""",
        """INSERT INTO mine."a table" (yes) VALUES (NULL)""",
    )
    columns = {
        "yes": types.BOOLEAN,
        "i": types.INT,
        "n": types.BIGINT,
        "h": types.decimal_type(38, 0),
        "r": types.DOUBLE,
        "d": types.DOUBLE,
        "p": types.decimal_type(6, 3),
        "S": types.STRING,
        "m": types.STRING,
        "b": types.BINARY,
        "day": types.DATE,
        "ts": types.TIMESTAMP,
        "tz": types.TIMESTAMP,
        "l": pa.list_(types.BIGINT),
        "o": pa.struct([("u", types.INT), ("v", types.STRING)]),
    }
    found = contents(table(path, columns, table="mine.a table"))
    assert dict(zip(found.column_names, found.schema.types, strict=True)) == columns
    first, second = found.to_pylist()
    assert list(first.values()) == [
        True,
        1,
        2,
        Decimal(3),
        0.5,
        0.1,
        Decimal("1.500"),
        "é",
        "good",
        b"\x00",
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 12),
        datetime.datetime(2024, 2, 29, 11),
        [1, None],
        {"u": 1, "v": "z"},
    ]
    assert [value for value in second.values() if value is not None] == []


@pytest.mark.parametrize(
    ("found", "type"),
    [
        ("BIGINT", types.INT),
        ("VARCHAR", types.BIGINT),
        ("INTERVAL", types.INTERVAL),
        ("TIME", types.TIMESTAMP),
        ("DECIMAL(10,3)", types.decimal_type(10, 2)),
    ],
)
def test_types_that_do_not_fit(path: Path, found: str, type: pa.DataType) -> None:
    database(path, f"CREATE TABLE t (x {found})")
    assert message(table(path, {"x": type})) == (
        f'table "T": column "x" of table "t" of the DuckDB file "{path}" is {found}, and not all '
        f"its values are {types.sql_name(type)}\nhelp: declare a type that can hold all its values"
    )


def test_what_is_not_there(path: Path) -> None:
    assert message(table(path, {"x": types.INT})) == f'table "T": there is no DuckDB file "{path}"'
    assert not path.exists()
    database(path, "CREATE TABLE tt (x INTEGER)")
    assert "cannot be read: Catalog Error: Table with name t does not exist!" in message(
        table(path, {"x": types.INT})
    )
    database(path, "CREATE TABLE t (y TIMESTAMP_NS)", "INSERT INTO t VALUES ('2024-01-01')")
    assert 'has no column "x"' in message(table(path, {"x": types.INT}))
    assert contents(table(path, {"y": types.TIMESTAMP})).num_rows == 1
    database(path, "INSERT INTO t VALUES ('2024-01-01 00:00:00.123456789')")
    assert 'in column "y"' in message(table(path, {"y": types.TIMESTAMP}))


def test_rows_that_change(path: Path) -> None:
    database(path, "CREATE TABLE t (id BIGINT, name VARCHAR)", "INSERT INTO t VALUES (1, 'a')")
    columns = {"id": types.BIGINT, "name": types.STRING}
    with following(table(path, columns, key=("id",), refresh="0.05 seconds")) as follower:
        writer = duckdb.connect(str(path))  # of the same program: what it has open is shared
        writer.execute("BEGIN")
        writer.execute("DELETE FROM t")
        writer.execute("INSERT INTO t VALUES (2, 'b'), (3, 'c')")
        writer.execute("COMMIT")
        follower.until_rows(Counter({(2, "b"): 1, (3, "c"): 1}))
        assert len(follower.history) == 2
        writer.execute("INSERT INTO t VALUES (3, 'c')")
        follower.until_trouble("2 rows have the key (3)")
        writer.execute("DELETE FROM t WHERE id = 3")
        follower.until_rows(Counter({(2, "b"): 1}))
        writer.close()


WRITER = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1])
connection.execute("INSERT INTO t VALUES (2, 'b')")
print("written", flush=True)
sys.stdin.read()
"""


def test_another_program_that_writes(path: Path) -> None:
    """While it has the file open no other process may read it: the table stays as it was."""
    database(path, "CREATE TABLE t (id BIGINT, name VARCHAR)", "INSERT INTO t VALUES (1, 'a')")
    columns = {"id": types.BIGINT, "name": types.STRING}
    with following(table(path, columns, refresh="0.5 seconds")) as follower:
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
        follower.until_trouble("cannot be read: IO Error: Could not set lock on file")
        assert follower.rows == Counter({(1, "a"): 1})
        writer.communicate()
        follower.until_rows(Counter({(1, "a"): 1, (2, "b"): 1}))


def test_without_the_package(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MillstreamError) as error:
        table_source(table(path, {"x": types.INT}))
    assert str(error.value) == (
        'error: connector "duckdb" needs the package "duckdb"\n'
        "help: pip install 'millstream[duckdb]'"
    )
