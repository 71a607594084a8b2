"""A PostgreSQL table that holds the answer of a query: one transaction per batch.

An index on the hash of whole rows finds the rows to delete, so the cost of a batch is proportional
to its changes. The table's comment marks it as kept; other tables with rows are rejected.
"""

from __future__ import annotations

import pyarrow as pa

from millstream.connectors.contracts import GivenBatch, SinkContext
from millstream.connectors.postgres_sql import identifier, identifiers, sql
from millstream.connectors.sinks.kept_rows import changed_rows, gone, kept_schema
from millstream.connectors.sinks.postgres_columns import types_of
from millstream.connectors.sinks.postgres_rows import Connection, Postgres, csv_rows
from millstream.model.errors import QueryError

_COMMENT = "kept by Millstream"
_STAGE = "millstream_changes"

_DELETE = """DELETE FROM {target} USING (
    SELECT found.ctid FROM (
        SELECT kept.ctid, row_number() OVER (PARTITION BY gone.number) AS place, gone.change
        FROM {stage} AS gone JOIN {target} AS kept
        ON hash_record_extended(ROW({kept}), 0) = hash_record_extended(ROW({gone}), 0)
        AND ROW({kept}) IS NOT DISTINCT FROM ROW({gone}) WHERE gone.change < 0) AS found
    WHERE found.place <= -found.change) AS gone
WHERE {target}.ctid = gone.ctid"""
_INSERT = """INSERT INTO {target} ({columns}) SELECT {columns} FROM {stage},
    generate_series(1, change) WHERE change > 0"""


class KeptPostgres(Postgres):
    def __init__(self, context: SinkContext, url: str, table: str) -> None:
        self._columns = kept_schema(context, "postgres")
        super().__init__(context, url, table)

    @property
    def _schema(self) -> pa.Schema:
        return self._columns

    def _connected(self) -> Connection:
        """A connection with a temporary table that stages the changes of a transaction."""
        connection = super()._connected()
        types = [f"{_quoted(f.name)} {types_of(f.type)[0]}" for f in self._columns]
        columns = ", ".join([*types, "change bigint", "number bigint"])
        with connection.transaction():
            connection.execute(
                f"CREATE TEMPORARY TABLE {_STAGE} ({columns}) ON COMMIT DELETE ROWS".encode()
            )
        return connection

    def _claim(self, known: bool) -> None:
        """Create the index. The first batch deletes the rows of an earlier query."""
        connection, target = self._connection, self._target
        name = target.as_string(connection)
        comment = connection.execute(
            "SELECT obj_description(%s::regclass, 'pg_class')", [name]
        ).fetchone()
        ours = comment is not None and comment[0] == _COMMENT
        if not ours and connection.execute(sql("SELECT 1 FROM {} LIMIT 1", target)).fetchone():
            raise QueryError(
                f'table "{self._table}" of PostgreSQL has rows of its own',
                help="name a table that does not exist, or an empty one",
            )
        if not ours:
            columns = identifiers(self._columns.names)
            index = "CREATE INDEX ON {} (hash_record_extended(ROW({}), 0))"
            connection.execute(sql(index, target, columns))
            connection.execute(sql(f"COMMENT ON TABLE {{}} IS '{_COMMENT}'", target))
        self._begins = not known

    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        changes = changed_rows(table) if table.num_rows else None
        if changes is None or not len(changes):
            return
        fits = self._fitting(changes.rows)
        kept, weight = changes.rows.filter(pa.array(fits)), changes.weight[fits]
        numbers = pa.array(range(len(weight)), pa.int64())
        staged = kept.append_column("change", pa.array(weight))
        rows = csv_rows(staged.append_column("number", numbers))
        leaving = -int(weight[weight < 0].sum())
        self._deliver(lambda: self._apply(rows, leaving, batch.id))

    def _apply(self, rows: bytes, leaving: int, batch: int) -> None:
        with self._connection.transaction():
            if not self._note(batch):
                return
            names = self._columns.names
            columns = identifiers([*names, "change", "number"])
            copied = sql("COPY {} ({}) FROM STDIN (FORMAT csv)", identifier(_STAGE), columns)
            with self._connection.cursor().copy(copied) as copy:
                copy.write(rows)
            from psycopg.sql import SQL

            parts = {
                "target": self._target,
                "stage": identifier(_STAGE),
                "columns": identifiers(names),
                "kept": SQL(", ").join(identifier("kept", name) for name in names),
                "gone": SQL(", ").join(identifier("gone", name) for name in names),
            }
            if self._begins:
                self._connection.execute(sql("DELETE FROM {}", self._target))
            left = self._connection.execute(SQL(_DELETE).format(**parts)).rowcount
            if left != leaving:
                raise gone(self._context.query, f'table "{self._table}" of PostgreSQL')
            self._connection.execute(SQL(_INSERT).format(**parts))
        self._begins = False


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
