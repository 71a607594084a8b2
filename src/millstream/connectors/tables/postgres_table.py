"""Reads a whole PostgreSQL table."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import csv

from millstream.connectors.postgres_sql import (
    identifier,
    identifiers,
    is_unreachable,
    reason,
    sql,
    table_names,
)
from millstream.connectors.tables.columns import SourceTable
from millstream.connectors.tables.postgres_columns import (
    SETTINGS,
    PostgresColumn,
    check_types,
    typed,
)
from millstream.connectors.tables.postgres_wire import cancel, received, run
from millstream.logical.catalog import Table
from millstream.model.errors import MillstreamError, QueryError, one_of

if TYPE_CHECKING:
    from millstream.connectors.tables.postgres_wire import Connection

# How long a server may be silent, in seconds and in milliseconds; the url takes precedence.
_PATIENCE = {"connect_timeout": "10", "tcp_user_timeout": "30000"}

_DENIED = "grant that to the role of the url, or name another role in the url"
_HELD_UP = "another session locks the table or has a long transaction open: see pg_stat_activity"

_FOUND = "SELECT to_regclass(%s)::oid"
_OTHERS = """SELECT relname FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
    AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"""
# A domain counts as its base type.
_COLUMNS = """SELECT attname,
    CASE typtype WHEN 'd' THEN format_type(typbasetype, typtypmod)
        ELSE format_type(atttypid, atttypmod) END,
    typtype = 'e', attgenerated <> '',
    relreplident = 'f' AND attgenerated = '' OR coalesce(attnum = ANY ((SELECT indkey FROM pg_index
        WHERE indrelid = attrelid AND CASE relreplident WHEN 'd' THEN indisprimary AND indimmediate
            WHEN 'i' THEN indisreplident ELSE false END)::int2[]), false),
    atttypid, atttypmod, has_column_privilege(attrelid, attnum, 'SELECT')
    FROM pg_attribute
        JOIN pg_type ON pg_type.oid = atttypid JOIN pg_class ON pg_class.oid = attrelid
    WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""


class PostgresTable:
    """The location of a table, and how to read it."""

    def __init__(self, table: Table, url: str, name: str) -> None:
        self.url = url
        self.name = table_names(name)[-1]
        self.target = identifier(*table_names(name))
        self.origin = SourceTable(table, f'table "{name}" of PostgreSQL')

    def connected(self, **more: str) -> Connection:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        given = {**_PATIENCE, **conninfo_to_dict(self.url), **more}
        connection = psycopg.connect(make_conninfo("", **given), autocommit=True)
        run(connection, SETTINGS)
        return connection

    def columns(self, connection: Connection) -> list[PostgresColumn]:
        """The columns of the table in PostgreSQL."""
        oid = self.oid(connection)
        if oid is None:
            others = [name for (name,) in connection.execute(_OTHERS)]
            help = one_of(self.name, others, "table")
            raise self.origin.error(f"there is no {self.origin.name}", help)
        return [PostgresColumn(*row) for row in connection.execute(_COLUMNS, [oid])]

    def oid(self, connection: Connection) -> int | None:
        found = connection.execute(_FOUND, [self.target.as_string(connection)]).fetchone()
        assert found is not None
        oid: int | None = found[0]
        return oid

    def declared(self, columns: Sequence[PostgresColumn]) -> list[PostgresColumn]:
        """The declared columns, with their types checked."""
        by_name = {column.name: column for column in columns}
        found = [by_name[name] for name in self.origin.names(list(by_name))]
        check_types(self.origin, found)
        return found

    def texts(self, connection: Connection, columns: Sequence[PostgresColumn]) -> list[pa.Array]:
        """All values of some columns as text."""
        names = identifiers(column.name for column in columns)
        statement = sql("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT csv)", names, self.target)
        run(connection, statement.as_string(connection))
        buffer = io.BytesIO()
        for row in received(connection):
            buffer.write(row)
        buffer.seek(0)
        return self._parsed(buffer, len(columns))

    @staticmethod
    def _parsed(buffer: io.BytesIO, count: int) -> list[pa.Array]:
        """NULL is empty, an empty string is a pair of quotes."""
        names = [str(number) for number in range(count)]
        if not buffer.getbuffer().nbytes:
            return [pa.array([], pa.binary()) for _ in names]
        table = csv.read_csv(
            buffer,
            csv.ReadOptions(column_names=names),
            csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        return [column.combine_chunks() for column in table.columns]

    @contextmanager
    def telling(self, denied: str = _DENIED) -> Iterator[None]:
        """Translate PostgreSQL's errors; `denied` is the help for missing privileges."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise self._failure(error, denied) from error

    def _failure(self, error: Any, denied: str) -> MillstreamError:
        name = f'table "{self.origin.table.name}"'
        if is_unreachable(error):
            return QueryError(
                f"{name}: PostgreSQL cannot be reached: {reason(error)}",
                help="check the server and the url",
            )
        help = {"42501": denied, "55P03": _HELD_UP}.get(error.sqlstate, error.diag.message_hint)
        return QueryError(f"{name}: {self.origin.name} cannot be read: {reason(error)}", help=help)


@dataclass
class WholeTable:
    """Reads a whole table over a connection that is reused while it works."""

    table: PostgresTable
    connection: Connection | None = None

    def version(self) -> object:
        return None

    def read(self) -> pa.Table:
        with self.table.telling():
            if self.connection is None or self.connection.closed:
                self.connection = self.table.connected()
            with self.connection.transaction():
                run(self.connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                columns = self.table.declared(self.table.columns(self.connection))
                texts = self.table.texts(self.connection, columns)
        rows = typed(self.table.origin, texts)
        self.table.origin.check(rows)
        return rows

    def interrupt(self) -> None:
        if self.connection is not None:
            cancel(self.connection)

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
