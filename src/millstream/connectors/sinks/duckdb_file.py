"""A table in a DuckDB file: one transaction per batch.

The file is open only while a batch is written, since DuckDB blocks other programs from reading a
file that is open for writing. The sink waits while another program has the file open.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.connectors.contracts import GivenBatch, Noop, Sink, SinkContext
from millstream.connectors.postgres_sql import table_names
from millstream.connectors.sinks.kept_rows import changed_rows, gone, kept_schema
from millstream.model.errors import QueryError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_PATIENCE, _PAUSE = 10.0, 0.1  # seconds, while another program has the file open
_BATCHES = "millstream_batches"

_MAKE_BATCHES = f"""CREATE TABLE IF NOT EXISTS {_BATCHES} (
    token VARCHAR PRIMARY KEY, query VARCHAR NOT NULL, batch BIGINT NOT NULL, kept VARCHAR)"""
_DELETE = """DELETE FROM {target} WHERE rowid IN (
    SELECT row FROM (
        SELECT kept.rowid AS row, gone.change AS change,
            row_number() OVER (PARTITION BY gone.number) AS place
        FROM changed AS gone JOIN {target} AS kept ON {equal} WHERE gone.change < 0)
    WHERE place <= -change)"""
_INSERT = """INSERT INTO {target} ({columns}) SELECT {columns} FROM changed,
    generate_series(1, greatest(change, 0)) WHERE change > 0"""


def duckdb(context: SinkContext, path: str, table: str, *, keep: bool = False) -> Sink:
    """Appends rows; with `keep`, the table holds the answer at the frontier."""
    try:
        import duckdb as _  # noqa: F401
    except ImportError:
        raise QueryError(
            'sink "duckdb" needs the package "duckdb"', help="pip install 'millstream[duckdb]'"
        ) from None
    return DuckdbFile(context, path, table, keep)


class DuckdbFile(Noop):
    def __init__(self, context: SinkContext, path: str, table: str, keep: bool) -> None:
        self._context = context
        self._path = path
        self._table = table
        self._keep = keep
        self._schema = kept_schema(context, "duckdb") if keep else context.schema
        self._target = ".".join(map(_quoted, table_names(table)))
        with self._transaction() as connection:
            self._prepare(connection)

    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        if not table.num_rows:
            return
        with self._transaction() as connection:
            if not self._note(connection, batch.id):
                return
            if self._keep:
                self._apply(connection, table)
            else:
                columns = ", ".join(map(_quoted, table.column_names))
                connection.register("given", table)
                connection.execute(
                    f"INSERT INTO {self._target} ({columns}) SELECT {columns} FROM given"
                )

    def _prepare(self, connection: DuckDBPyConnection) -> None:
        connection.execute(_MAKE_BATCHES)
        connection.register("alike", self._schema.empty_table())
        connection.execute(f"CREATE TABLE IF NOT EXISTS {self._target} AS SELECT * FROM alike")
        has, wanted = (
            connection.execute(f"DESCRIBE {name}").fetchall() for name in (self._target, "alike")
        )
        if [column[:2] for column in has] != [column[:2] for column in wanted]:
            raise QueryError(
                f'table "{self._table}" of the DuckDB file "{self._path}" has other columns than '
                "the query",
                help="name a table that does not exist yet; it will be created",
            )
        if self._keep:
            self._claim(connection)

    def _claim(self, connection: DuckDBPyConnection) -> None:
        """Reject a table with rows that Millstream does not keep. The first batch deletes the rows
        of an earlier query."""
        known = connection.execute(
            f"SELECT token FROM {_BATCHES} WHERE kept = ?", [self._table]
        ).fetchall()
        self._begins = (self._context.token,) not in known
        if not known and connection.execute(f"SELECT 1 FROM {self._target} LIMIT 1").fetchone():
            raise QueryError(
                f'table "{self._table}" of the DuckDB file "{self._path}" has rows of its own',
                help="name a table that does not exist, or an empty one",
            )

    def _note(self, connection: DuckDBPyConnection, batch: int) -> bool:
        """Record the number of a batch; returns whether it is new."""
        token = self._context.token
        found = connection.execute(
            f"SELECT batch FROM {_BATCHES} WHERE token = ?", [token]
        ).fetchone()
        if found is not None and found[0] >= batch:
            return False
        kept = self._table if self._keep else None
        if kept is not None:
            forget = f"DELETE FROM {_BATCHES} WHERE kept = ? AND token <> ?"
            connection.execute(forget, [kept, token])
        connection.execute(
            f"INSERT OR REPLACE INTO {_BATCHES} VALUES (?, ?, ?, ?)",
            [token, self._context.query, batch, kept],
        )
        return True

    def _apply(self, connection: DuckDBPyConnection, table: pa.Table) -> None:
        changes = changed_rows(table)
        numbers = pa.array(range(len(changes)), pa.int64())
        staged = changes.rows.append_column("change", pa.array(changes.weight))
        connection.register("changed", staged.append_column("number", numbers))
        names = list(map(_quoted, self._schema.names))
        equal = " AND ".join(f"kept.{n} IS NOT DISTINCT FROM gone.{n}" for n in names)
        parts = {"target": self._target, "columns": ", ".join(names), "equal": equal}
        if self._begins:
            connection.execute(f"DELETE FROM {self._target}")
        leaving = -int(changes.weight[changes.weight < 0].sum())
        if leaving:
            left = connection.execute(_DELETE.format(**parts)).fetchone()
            if left is None or left[0] != leaving:
                raise gone(self._context.query, f'table "{self._table}" of DuckDB')
        connection.execute(_INSERT.format(**parts))
        self._begins = False

    @contextmanager
    def _transaction(self) -> Iterator[DuckDBPyConnection]:
        import duckdb

        try:
            with _opened(self._path) as connection:
                connection.begin()
                try:
                    yield connection
                except BaseException:
                    connection.rollback()
                    raise
                connection.commit()
        except duckdb.Error as error:
            reason = str(error).split("\n")[0]
            raise QueryError(
                f'table "{self._table}" of the DuckDB file "{self._path}" cannot be written: '
                f"{reason}"
            ) from error


def _opened(path: str) -> DuckDBPyConnection:
    """A connection that can read Arrow. DuckDB does not guarantee that for a connection opened
    while the last other one in this process is being closed."""
    import duckdb

    limit = time.monotonic() + _PATIENCE
    while True:
        connection = None
        try:
            connection = duckdb.connect(path)
            connection.register("nothing", pa.table({"x": pa.array([], pa.int64())}))
            return connection
        except (duckdb.OperationalError, duckdb.CatalogException) as error:
            if connection is not None:
                connection.close()
            if time.monotonic() > limit or not _passes(error):
                raise
            time.sleep(_PAUSE)


def _passes(error: Exception) -> bool:
    """Whether the error is temporary: another program has the file open, or this one is closing
    it."""
    import duckdb

    return not isinstance(error, duckdb.IOException) or "set lock" in str(error)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
