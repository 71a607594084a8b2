"""Tables of PostgreSQL, read as a whole and refreshed: types, values, changes, what is wrong."""

from __future__ import annotations

import datetime
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from connectors.tables.followers import contents, declared, following
from millstream.connectors.registry import table_source
from millstream.logical.catalog import Table
from millstream.model import types
from millstream.model.errors import MillstreamError
from postgres_server import Server

psycopg = pytest.importorskip("psycopg", reason="pip install 'millstream[postgres]'")

pytestmark = pytest.mark.xdist_group("postgres")  # they share one server


@pytest.fixture
def database(url: str) -> Iterator[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def table(url: str, columns: dict[str, pa.DataType], **more: Any) -> Table:
    return declared("postgres", columns, **{"url": url, "table": "t", **more})


def message(declaration: Table) -> str:
    with pytest.raises(MillstreamError) as error:
        contents(declaration)
    return str(error.value).removeprefix("error: ")


# --- types ----------------------------------------------------------------------------------------

# By type: its columns in PostgreSQL, values there, and what they are here.
VALUES: dict[pa.DataType, list[tuple[str, str, Any]]] = {
    types.BOOLEAN: [("boolean", "true", True), ("boolean", "false", False)],
    types.INT: [("smallint", "-32768", -32768), ("integer", "2147483647", 2147483647)],
    types.BIGINT: [
        ("integer", "-1", -1),
        ("bigint", "-9223372036854775808", -(1 << 63)),
        ("positive", "7", 7),
    ],
    types.REAL: [("real", "0.1", 0.10000000149011612), ("real", "'-Infinity'", float("-inf"))],
    types.DOUBLE: [
        ("double precision", "0.1", 0.1),
        ("double precision", "5e-324", 5e-324),
        ("double precision", "'Infinity'", float("inf")),
        ("real", "0.5", 0.5),
        ("integer", "3", 3.0),
    ],
    types.decimal_type(12, 3): [
        ("numeric(12,3)", "1.5", Decimal("1.500")),
        ("numeric(10,2)", "-0.01", Decimal("-0.010")),
        ("numeric", "0.125", Decimal("0.125")),
    ],
    types.decimal_type(20, 0): [("bigint", "9223372036854775807", Decimal((1 << 63) - 1))],
    types.STRING: [
        ("text", "''", ""),
        ("text", "'NULL'", "NULL"),
        ("text", "E'quo\"te,\\n\\r\\nline\\t\\\\N \\\\. é€𝄞'", 'quo"te,\n\r\nline\t\\N \\. é€𝄞'),
        ("varchar(3)", "'abc'", "abc"),
        ("char(3)", "'a'", "a  "),
        ("mood", "'not so good'", "not so good"),
        (
            "uuid",
            "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
        ("jsonb", "'{\"a\":[1, null]}'", '{"a": [1, null]}'),
    ],
    types.BINARY: [("bytea", "'\\x00ff'", b"\x00\xff"), ("bytea", "''", b"")],
    types.DATE: [
        ("date", "'2024-02-29'", datetime.date(2024, 2, 29)),
        ("date", "'0001-01-01'", datetime.date(1, 1, 1)),
    ],
    types.TIMESTAMP: [
        (
            "timestamptz",
            "'2024-02-29 12:00:00.000005+02'",
            datetime.datetime(2024, 2, 29, 10, 0, 0, 5),
        ),
        ("timestamp", "'1969-12-31 23:59:59'", datetime.datetime(1969, 12, 31, 23, 59, 59)),
        (
            "timestamp(3)",
            "'2024-02-29 12:00:00.1239'",
            datetime.datetime(2024, 2, 29, 12, 0, 0, 124000),
        ),
        ("timestamptz", "'infinity'", datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ],
    types.INTERVAL: [
        ("interval", "'1 day 2 hours'", datetime.timedelta(days=1, hours=2)),
        ("interval", "'-0.5 seconds'", datetime.timedelta(seconds=-0.5)),
        ("interval", "'2 days -00:00:00.000001'", datetime.timedelta(days=2, microseconds=-1)),
        ("interval", "'0'", datetime.timedelta()),
    ],
}
FLAT = [(type, *value) for type, values in VALUES.items() for value in values]
NAMED = {f"c{number}": row for number, row in enumerate(FLAT)}


def make_table_of_all_types(database: Any) -> None:
    database.execute("CREATE TYPE mood AS ENUM ('good', 'not so good')")
    database.execute("CREATE DOMAIN positive AS integer CHECK (VALUE > 0)")
    columns = ", ".join(f"{name} {there}" for name, (_, there, _, _) in NAMED.items())
    database.execute(f"CREATE TABLE t (id integer PRIMARY KEY, {columns})")


def values_of_all_types() -> str:
    return ", ".join(value for _, _, value, _ in NAMED.values())


@pytest.mark.parametrize("follow", [False, True])
def test_types(url: str, database: Any, follow: bool) -> None:
    """They are the same in whole tables and in changes."""
    make_table_of_all_types(database)
    database.execute("SET standard_conforming_strings = on")
    columns = {name: type for name, (type, _, _, _) in NAMED.items()}
    how = {"follow": "decoding"} if follow else {"refresh": "0.02 seconds"}
    expected = tuple(value for _, _, _, value in NAMED.values())
    nothing = (None,) * len(expected)
    database.execute(f"INSERT INTO t VALUES (1, {values_of_all_types()})")
    database.execute("INSERT INTO t (id) VALUES (2)")
    database.execute(f"ALTER DATABASE {database.info.dbname} SET TimeZone = 'Asia/Tokyo'")
    database.execute(f"ALTER DATABASE {database.info.dbname} SET DateStyle = 'SQL, DMY'")
    with following(table(url, columns, **how)) as follower:
        assert follower.rows == Counter([expected, nothing])
        database.execute("DELETE FROM t")
        follower.until_rows(Counter())
        database.execute(f"INSERT INTO t VALUES (3, {values_of_all_types()})")
        follower.until_rows(Counter([expected]))
        database.execute("INSERT INTO t (id) VALUES (4)")
        follower.until_rows(Counter([expected, nothing]))
        database.execute("DELETE FROM t WHERE id = 3")
        follower.until_rows(Counter([nothing]))


@pytest.mark.parametrize(
    ("found", "type"),
    [
        ("bigint", types.INT),
        ("text", types.BIGINT),
        ("integer", types.STRING),
        ("double precision", types.REAL),
        ("numeric(10,3)", types.decimal_type(10, 2)),
        ("numeric(12,2)", types.decimal_type(10, 2)),
        ("bigint", types.decimal_type(18, 0)),
        ("integer[]", pa.list_(types.INT)),
        ("time without time zone", types.TIMESTAMP),
    ],
)
def test_types_that_do_not_fit(url: str, database: Any, found: str, type: pa.DataType) -> None:
    database.execute(f"CREATE TABLE t (x {found})")
    assert message(table(url, {"x": type})) == (
        f'table "T": column "x" of table "t" of PostgreSQL is {found}, and not all its values are '
        f"{types.sql_name(type)}\nhelp: declare a type that can hold all its values"
    )


@pytest.mark.parametrize(
    ("found", "value", "type"),
    [
        ("numeric", "NaN", types.decimal_type(10, 2)),
        ("numeric", "0.125", types.decimal_type(10, 2)),
        ("timestamp", "-infinity", types.TIMESTAMP),
        ("date", "infinity", types.DATE),
        ("date", "0044-03-15 BC", types.DATE),
        ("interval", "1 month", types.INTERVAL),
    ],
)
def test_values_that_do_not_fit(
    url: str, database: Any, found: str, value: str, type: pa.DataType
) -> None:
    database.execute(f"CREATE TABLE t (x {found})")
    database.execute(f"INSERT INTO t VALUES (NULL), ('{value}')")
    text = message(table(url, {"x": type}))
    assert text.endswith(f'in column "x" of table "t" of PostgreSQL is not {types.sql_name(type)}')


# --- reading --------------------------------------------------------------------------------------


def test_only_what_is_declared_is_read(url: str, database: Any) -> None:
    database.execute('CREATE SCHEMA "My schema"')
    database.execute('CREATE TABLE "My schema"."a ""t""" ("Größe" integer, secret text, b text)')
    database.execute("""INSERT INTO "My schema"."a ""t\""" VALUES (1, 'x', NULL), (2, 'y', '')""")
    columns = {"B": types.STRING, "größe": types.BIGINT}
    found = contents(table(url, columns, table='My schema.a "t"'))
    assert sorted(found.to_pylist(), key=str) == [
        {"B": "", "größe": 2},
        {"B": None, "größe": 1},
    ]


def test_one_column_that_is_null(url: str, database: Any) -> None:
    database.execute("CREATE TABLE t (x text)")
    assert contents(table(url, {"x": types.STRING})).num_rows == 0
    database.execute("INSERT INTO t VALUES (NULL), (''), (NULL), ('\\.')")
    found = contents(table(url, {"x": types.STRING}))
    assert found["x"].to_pylist() == [None, "", None, "\\."]


def test_a_table_that_is_not_followed(url: str, database: Any) -> None:
    database.execute("CREATE VIEW t AS SELECT 1 AS x UNION ALL SELECT 1")
    source = table_source(table(url, {"x": types.INT}))
    assert source.contents()["x"].to_pylist() == [1, 1]
    assert list(source.changes()) == []
    source.close()
    source.close()


def test_what_is_not_there(url: str, database: Any) -> None:
    assert message(table(url, {"x": types.INT})) == 'table "T": there is no table "t" of PostgreSQL'
    database.execute("CREATE TABLE persons (name text, height integer)")
    assert message(table(url, {"name": types.STRING}, table="public.person")) == (
        'table "T": there is no table "public.person" of PostgreSQL\nhelp: did you mean "persons"?'
    )
    assert message(table(url, {"nam": types.STRING}, table="persons")) == (
        'table "T": table "persons" of PostgreSQL has no column "nam"\nhelp: did you mean "name"?'
    )
    database.execute("INSERT INTO persons VALUES (NULL)")
    assert message(table(url, {"name": types.STRING}, required=("name",), table="persons")) == (
        'table "T": table "persons" of PostgreSQL has a row that does not fit: column "name" is '
        "NOT NULL"
    )
    database.execute("INSERT INTO persons VALUES ('Ann', 1), ('Ann', 2)")
    database.execute("DELETE FROM persons WHERE name IS NULL")
    assert "2 rows have the key (Ann)" in message(
        table(url, {"name": types.STRING}, key=("name",), table="persons")
    )


def test_without_permission(url: str, database: Any) -> None:
    database.execute("CREATE TABLE t (x integer)")
    role = f"reader_{database.info.dbname}"
    database.execute(f"CREATE ROLE {role} LOGIN")
    as_reader = psycopg.conninfo.make_conninfo(url, user=role)
    assert message(table(as_reader, {"x": types.INT})) == (
        'table "T": table "t" of PostgreSQL cannot be read: permission denied for table t\n'
        "help: grant that to the role of the url, or name another role in the url"
    )


def test_servers_that_are_not_there() -> None:
    assert "PostgreSQL cannot be reached: " in message(
        table("postgresql://127.0.0.1:1/nothing", {"x": types.INT})
    )
    assert "PostgreSQL cannot be reached: " in message(table("no url", {"x": types.INT}))
    with pytest.raises(MillstreamError, match='a table is named "name" or'):
        table_source(table("postgresql://x", {"x": types.INT}, table="a.b.c"))


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MillstreamError) as error:
        table_source(table("postgresql://x", {"x": types.INT}))
    assert str(error.value) == (
        'error: connector "postgres" needs the package "psycopg"\n'
        "help: pip install 'millstream[postgres]'"
    )


def test_closing_wakes_whoever_reads(url: str, database: Any) -> None:
    database.execute("CREATE VIEW t AS SELECT 1 AS x FROM pg_sleep(60)")
    source = table_source(table(url, {"x": types.INT}))
    failures = []

    def read() -> None:
        try:
            source.contents()
        except MillstreamError as error:
            failures.append(str(error))

    thread = threading.Thread(target=read)
    thread.start()
    threading.Event().wait(0.3)
    source.close()
    thread.join(5)
    assert not thread.is_alive()
    assert "canceling statement due to user request" in failures[0]


# --- refreshing -----------------------------------------------------------------------------------

COLUMNS = {"id": types.BIGINT, "name": types.STRING}


def rows(database: Any) -> Counter[tuple[Any, ...]]:
    return Counter(database.execute("SELECT id, name FROM t").fetchall())


def cut(database: Any) -> None:
    others = "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    database.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity {others}")


def test_rows_that_change(url: str, database: Any) -> None:
    database.execute("CREATE TABLE t (id integer, name text)")
    database.execute("INSERT INTO t SELECT i, 'n' FROM generate_series(1, 5) i")
    with following(table(url, COLUMNS, refresh="0.02 seconds")) as follower:
        for statement in (
            "INSERT INTO t VALUES (1, 'n'), (NULL, NULL)",
            "UPDATE t SET name = 'm' WHERE id < 3",
            "TRUNCATE t",
            "INSERT INTO t VALUES (7, '')",
        ):
            database.execute(statement)
            follower.until_rows(rows(database))
        assert len(follower.history) == 5
        cut(database)
        database.execute("INSERT INTO t VALUES (8, '')")
        follower.until_rows(rows(database))
        assert len(follower.history) >= 6


def test_tables_that_change(url: str, database: Any) -> None:
    database.execute("CREATE TABLE t (id integer, name text)")
    database.execute("INSERT INTO t VALUES (1, 'a')")
    known = rows(database)
    with following(table(url, COLUMNS, refresh="0.02 seconds")) as follower:
        for wrong, trouble, right in (
            ("ALTER TABLE t RENAME TO u", "there is no", "ALTER TABLE u RENAME TO t"),
            (
                "ALTER TABLE t ALTER id TYPE text",
                'column "id" of table "t" of PostgreSQL is text, and not all its values are BIGINT',
                "ALTER TABLE t ALTER id TYPE integer USING id::integer",
            ),
            (
                "ALTER TABLE t RENAME name TO called",
                'has no column "name"',
                "ALTER TABLE t RENAME called TO name",
            ),
        ):
            database.execute(wrong)
            follower.until_trouble(trouble)
            assert follower.rows == known
            database.execute(right)
            follower.until_rows(known)
        database.execute("ALTER TABLE t ADD more text")
        database.execute("INSERT INTO t VALUES (2, 'b', 'c')")
        follower.until_rows(rows(database))


def test_a_server_that_is_away(url: str, postgres_server: Server) -> None:
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("CREATE TABLE t (id integer, name text)")
        database.execute("INSERT INTO t VALUES (1, 'a')")
    with following(table(url, COLUMNS, refresh="0.02 seconds")) as follower:
        postgres_server.stop("immediate")
        try:
            trouble = follower.until_trouble("PostgreSQL cannot be reached")
            assert trouble.help == "check the server and the url"
            assert follower.rows == Counter([(1, "a")])
        finally:
            postgres_server.start()
        with psycopg.connect(url, autocommit=True) as database:
            database.execute("UPDATE t SET name = 'b'")
        follower.until_rows(Counter([(1, "b")]))
