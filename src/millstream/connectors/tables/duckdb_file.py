"""A table in a DuckDB file: `SOURCE duckdb('path', table => 'name', refresh => '5 seconds')`.

The file is opened for each read and closed again, since DuckDB does not let a program write to a
file that another has open.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.connectors.arguments import Arguments
from millstream.connectors.postgres_sql import table_names
from millstream.connectors.tables.columns import SourceTable, holds_arrow
from millstream.connectors.tables.refreshed import Refreshed, refresh_of
from millstream.logical.catalog import Table
from millstream.model.errors import QueryError
from millstream.model.values import to_type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation


def connect(table: Table) -> Refreshed:
    given = Arguments(table, ["path", "table", "refresh"])
    reader = DuckdbTable(table, given.text("path"), given.text("table"))
    return Refreshed(table, reader, refresh_of(given))


class DuckdbTable:
    def __init__(self, table: Table, path: str, name: str) -> None:
        try:
            import duckdb  # noqa: F401
        except ImportError:
            raise QueryError(
                'connector "duckdb" needs the package "duckdb"',
                help="pip install 'millstream[duckdb]'",
            ) from None
        self._path = Path(path)
        self._name = ".".join(_quoted(part) for part in table_names(name))
        self._origin = SourceTable(table, f'table "{name}" of the DuckDB file "{path}"')
        self._connection: DuckDBPyConnection | None = None

    def version(self) -> object:
        """The stamps of the file and its write-ahead log."""
        if not self._path.exists():
            raise self._origin.error(f'there is no DuckDB file "{self._path}"')
        return [_stamp(Path(f"{self._path}{suffix}")) for suffix in ("", ".wal")]

    def read(self) -> pa.Table:
        import duckdb

        self.version()  # DuckDB would create a missing file
        try:
            self._connection = _opened(self._path)
            return self._rows(self._connection)
        except duckdb.Error as error:
            reason = str(error).split("\n")[0]
            raise QueryError(
                f'table "{self._origin.table.name}": {self._origin.name} cannot be read: {reason}'
            ) from error
        finally:
            self.close()

    def interrupt(self) -> None:
        import duckdb

        connection = self._connection
        if connection is not None:
            with suppress(duckdb.Error):  # just closed
                connection.interrupt()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _rows(self, connection: DuckDBPyConnection) -> pa.Table:
        all_columns = connection.sql(f"SELECT * FROM {self._name}")
        names = self._origin.names(all_columns.columns)
        found = all_columns.select(", ".join(map(_quoted, names)))
        self._check_types(found)
        table = found.to_arrow_table()
        columns = [
            self._origin.converted(field, column.combine_chunks(), _to(field.type))
            for field, column in zip(self._origin.table.columns, table.columns, strict=True)
        ]
        rows = pa.table(columns, schema=self._origin.schema)
        self._origin.check(rows)
        return rows

    def _check_types(self, found: DuckDBPyRelation) -> None:
        there = found.limit(0).to_arrow_table().schema.types
        fields = self._origin.table.columns
        for field, arrow, name in zip(fields, there, found.types, strict=True):
            if not holds_arrow(field.type, arrow):
                raise self._origin.wrong_type(field, str(name))


def _opened(path: Path) -> DuckDBPyConnection:
    import duckdb

    try:
        return duckdb.connect(str(path), read_only=True)
    except duckdb.ConnectionException:  # open for writing in this process: share it
        return duckdb.connect(str(path))


def _to(type: pa.DataType) -> Any:
    return lambda found: to_type(found, type)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
