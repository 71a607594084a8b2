"""A PostgreSQL table: one transaction per batch.

The transaction inserts the rows and records the batch number in the table `millstream_batches` of
the same schema. A batch whose number is recorded already is not inserted again, so it does not
matter whether a connection or a program failed before or after its commit.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from millstream.connectors.contracts import GivenBatch, Noop, SinkContext
from millstream.connectors.postgres_sql import (
    identifier,
    identifiers,
    is_unreachable,
    reason,
    sql,
    table_names,
)
from millstream.connectors.sinks.postgres_columns import check_columns, created, prepared, unfit
from millstream.model.errors import QueryError

if TYPE_CHECKING:
    from psycopg import Connection as Connected

Connection: TypeAlias = "Connected[Any]"

_PAUSES = (0.1, 0.5, 1.0, 2.0, 4.0)  # seconds before each attempt to connect again
_BATCHES = "millstream_batches"
_LOCK = 7_310_575_178_033_226_085  # held while creating tables: two queries may need the same one

_MAKE_BATCHES = """CREATE TABLE IF NOT EXISTS {} (
    token text PRIMARY KEY, query text NOT NULL, batch bigint NOT NULL,
    written timestamptz NOT NULL DEFAULT now())"""
_NOTE = """INSERT INTO {} AS noted (token, query, batch) VALUES (%s, %s, %s)
    ON CONFLICT (token) DO UPDATE SET
        query = excluded.query, batch = excluded.batch, written = excluded.written
    WHERE noted.batch < excluded.batch"""


class Postgres(Noop):
    def __init__(self, context: SinkContext, url: str, table: str) -> None:
        self._context = context
        self._url = url
        self._table = table
        *schema, name = table_names(table)
        self._target = identifier(*schema, name)
        self._batches = identifier(*schema, _BATCHES)
        self._connection = self._connected()
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        table = table.filter(pa.array(self._fitting(table)))
        if not table.num_rows:
            return
        rows = csv_rows(table)
        self._deliver(lambda: self._write(rows, batch.id))

    def _fitting(self, table: pa.Table) -> NDArray[np.bool_]:
        """Which rows PostgreSQL can store; refuses the others."""
        fits = np.ones(table.num_rows, np.bool_)
        for number, why in unfit(table).items():
            fits[number] = False
            self._context.refuse(tuple(table.slice(number, 1).to_pylist()[0].values()), why)
        return fits

    def _deliver(self, write: Callable[[], None]) -> None:
        import psycopg

        try:
            self._persistently(write)
        except psycopg.Error as error:
            raise failure(error, self._table) from error

    def close(self) -> None:
        self._connection.close()

    def _connected(self) -> Connection:
        import psycopg

        connection = psycopg.connect(self._url)
        with connection.transaction():
            connection.execute("SET TIME ZONE 'UTC'")
        return connection

    def _prepare(self) -> None:
        """Create both tables if needed, and check that the target accepts the rows."""
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            self._connection.execute(sql(_MAKE_BATCHES, self._batches))
            self._connection.execute(created(self._target, self._schema))
            check_columns(self._connection, self._table, self._target, self._schema)
            query = sql("SELECT batch FROM {} WHERE token = %s", self._batches)
            found = self._connection.execute(query, [self._context.token]).fetchone()
            self._claim(known=found is not None)
        if found is not None and found[0] > self._context.next_batch:
            raise QueryError(
                f'table "{self._table}" has batch {found[0]} of this query, but its checkpoint is '
                f"at batch {self._context.next_batch}",
                help="the checkpoint is older than the table: restore the newer one, or start over "
                "with another checkpoint and another table",
            )

    def _write(self, rows: bytes, batch: int) -> None:
        with self._connection.transaction():
            if not self._note(batch):
                return
            columns = identifiers(self._context.schema.names)
            statement = sql("COPY {} ({}) FROM STDIN (FORMAT csv)", self._target, columns)
            with self._connection.cursor().copy(statement) as copy:
                copy.write(rows)

    @property
    def _schema(self) -> pa.Schema:
        """The columns of the table."""
        return self._context.schema

    def _claim(self, known: bool) -> None:
        """Prepare the table for the query; `known`: the query has written to it before."""

    def _note(self, batch: int) -> bool:
        """Record the number of a batch; returns whether it is new."""
        noted = [self._context.token, self._context.query, batch]
        return bool(self._connection.execute(sql(_NOTE, self._batches), noted).rowcount)

    def _persistently(self, write: Callable[[], None]) -> None:
        """Retry on a new connection if the old one is lost."""
        import psycopg

        for pause in _PAUSES:
            try:
                if self._connection.closed:
                    self._connection = self._connected()
                return write()
            except psycopg.OperationalError:
                if not self._connection.closed:
                    raise  # the server is up and rejects it
            time.sleep(pause)
        self._connection = self._connected()
        return write()


def csv_rows(table: pa.Table) -> bytes:
    """The rows as COPY reads them: NULL is empty, an empty string is a pair of quotes."""
    buffer = io.BytesIO()
    options = pyarrow.csv.WriteOptions(include_header=False)
    pyarrow.csv.write_csv(prepared(table), buffer, options)
    return buffer.getvalue()


def failure(error: Exception, table: str) -> QueryError:
    import psycopg

    assert isinstance(error, psycopg.Error)
    if is_unreachable(error):
        return QueryError(
            f"PostgreSQL cannot be reached: {reason(error)}",
            help="check the server and the url; a checkpoint lets the query resume",
        )
    return QueryError(f'table "{table}" of PostgreSQL cannot be written: {reason(error)}')
