"""What following a table needs on a PostgreSQL server: a publication, a slot and its snapshot.

The publication is created first, since a slot has no changes of tables that were not published when
they were made. The slot is temporary: it ends with its connection. A publication left behind by a
killed program does no harm; the next one to be created drops it.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.connectors.postgres_sql import identifier, sql
from millstream.connectors.tables.decoding import Decoder
from millstream.connectors.tables.postgres_columns import PostgresColumn
from millstream.connectors.tables.postgres_table import PostgresTable
from millstream.connectors.tables.postgres_wire import cancel, run
from millstream.model.errors import MillstreamError

if TYPE_CHECKING:
    from millstream.connectors.tables.postgres_wire import Connection

_GRACE = 0.1  # seconds
_LOCKS = 1_296_649_332  # the class of the advisory locks that mark publications in use
_KINDS = {
    "p": "a partitioned table",
    "v": "a view",
    "m": "a materialized view",
    "f": "a foreign table",
}
# Decoding ignores row security, so reading fails where it would hide rows. Creating a slot waits
# for the open transactions.
_SETTINGS = "SET row_security = off; SET lock_timeout = '30s'"
_FACTS = """SELECT relkind, relreplident, relfilenode,
    EXISTS (SELECT FROM pg_inherits WHERE inhparent = pg_class.oid),
    EXISTS (SELECT FROM pg_publication JOIN pg_publication_rel ON prpubid = pg_publication.oid
        WHERE pubname = %s AND prrelid = pg_class.oid)
    FROM pg_class WHERE oid = %s"""
_OURS = """SELECT pubname FROM pg_publication
    WHERE pubname ~ '^millstream_[0-9a-f]{16}$' AND pubowner = current_user::regrole"""
_PUBLISHED = """SELECT prrelid::regclass::text FROM pg_publication_rel
    JOIN pg_publication ON pg_publication.oid = prpubid WHERE pubname = %s"""
_ROLE = "SELECT rolname, rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user"
_REFRESH = "write refresh => '5 seconds' instead of follow"
DENIED = (
    "to follow it, the role of the url must own the table and have CREATE on the database and the "
    f"attribute REPLICATION; or {_REFRESH}"
)


@dataclass(frozen=True)
class Followed:
    """The followed columns: those declared and those of the replica identity."""

    declared: Sequence[PostgresColumn]
    identity: Sequence[PostgresColumn]


class Replication:
    def __init__(self, table: PostgresTable) -> None:
        self._table = table
        self._name = f"millstream_{secrets.token_hex(8)}"
        self._reading: Connection | None = None
        self._sending: Connection | None = None
        self._decoder: Decoder | None = None
        self._facts: object = None

    def begin(self) -> tuple[Followed, list[pa.Array], list[pa.Array]]:
        """The columns, and their values as text at the moment at which decoding starts."""
        self._reading = self._table.connected()
        run(self._reading, _SETTINGS)
        self._check_server()
        self._check(self._followed())
        self._publish()
        while True:
            self._facts = self._found()
            followed = self._followed()
            self._check(followed)
            texts = self._snapshot([*followed.declared, *followed.identity])
            if not self.has_changed():
                count = len(followed.declared)
                return followed, texts[:count], texts[count:]

    def _snapshot(self, columns: Sequence[PostgresColumn]) -> list[pa.Array]:
        """The columns as text at the start of the slot. Fails if the table has changed meanwhile:
        after TRUNCATE or a rewrite, rows are gone for all readers, whatever their snapshot.
        """
        assert self._reading is not None
        with self._reading.transaction():
            run(self._reading, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            run(self._reading, f"SET TRANSACTION SNAPSHOT '{self._make_slot()}'")
            return self._table.texts(self._reading, columns)

    @property
    def decoder(self) -> Decoder:
        if self._decoder is None:
            assert self._sending is not None
            self._decoder = Decoder(self._sending, self._name)
        return self._decoder

    def has_changed(self) -> bool:
        """Whether the table was dropped, rewritten, given other columns, made unreadable or
        unpublished."""
        return self._found() != self._facts

    def interrupt(self) -> None:
        for connection in (self._reading, self._sending):
            if connection is not None:
                cancel(connection)

    def close(self) -> None:
        import psycopg

        if self._sending is not None:
            self._sending.close()
        if self._reading is not None:
            with contextlib.suppress(psycopg.Error):
                try:
                    self._drop(self._reading, self._name)
                except psycopg.errors.QueryCanceled:  # a late cancel of the last statement
                    self._drop(self._reading, self._name)
            self._reading.close()

    # --- what is there ---------------------------------------------------------------------------

    def _found(self) -> object:
        assert self._reading is not None
        followed = self._followed()
        oid = self._table.oid(self._reading)
        return followed, self._reading.execute(_FACTS, [self._name, oid]).fetchone()

    def _followed(self) -> Followed:
        assert self._reading is not None
        columns = self._table.columns(self._reading)
        declared = self._table.declared(columns)
        return Followed(declared, [column for column in columns if column.identity])

    def _check_server(self) -> None:
        assert self._reading is not None
        (level,) = self._reading.execute("SHOW wal_level").fetchone() or ("",)
        if level != "logical":
            raise self._refusal(
                f"the server has wal_level = {level}",
                "ALTER SYSTEM SET wal_level = 'logical' and restart the server, or " + _REFRESH,
            )

    def _check(self, followed: Followed) -> None:
        """Reject a table without replica identity: PostgreSQL would refuse all its updates once it
        is published."""
        assert self._reading is not None
        facts = self._reading.execute(_FACTS, ["", self._table.oid(self._reading)]).fetchone()
        kind, _, _, has_children, _ = facts or ("", "", 0, False, False)
        if kind in _KINDS or has_children:
            what = _KINDS.get(kind, "a table with child tables")
            raise self._refusal(f"it is {what}", _REFRESH)
        if not followed.identity:
            raise self._refusal(
                "it has no replica identity",
                f"give it a PRIMARY KEY or REPLICA IDENTITY FULL, or {_REFRESH}",
            )
        for column in (*followed.declared, *followed.identity):
            if column.generated:
                raise self._refusal(f'column "{column.name}" is generated', _REFRESH)

    def _refusal(self, why: str, help: str) -> MillstreamError:
        origin = self._table.origin
        return origin.error(f"{origin.name} cannot be followed: {why}", help)

    # --- what is made ----------------------------------------------------------------------------

    def _publish(self) -> None:
        assert self._reading is not None
        for (name,) in self._reading.execute(_OURS).fetchall():
            if self._reading.execute(*_lock("pg_try_advisory_lock", name)).fetchone() == (True,):
                self._drop(self._reading, name)
        self._reading.execute(*_lock("pg_advisory_lock", self._name))
        name = identifier(self._name)
        self._reading.execute(sql("CREATE PUBLICATION {} FOR TABLE {}", name, self._table.target))

    @staticmethod
    def _drop(connection: Connection, name: str) -> None:
        """Drop the table from the publication first: a writer that has just seen the table as
        published would fail if it then found no publication."""
        for (table,) in connection.execute(_PUBLISHED, [name]).fetchall():
            run(connection, f'ALTER PUBLICATION "{name}" DROP TABLE {table}')
            time.sleep(_GRACE)
        run(connection, f'DROP PUBLICATION IF EXISTS "{name}"')
        connection.execute(*_lock("pg_advisory_unlock", name))

    def _make_slot(self) -> str:
        """Returns the name of the slot's snapshot, which is valid until the connection is used
        again."""
        if self._sending is not None:
            self._sending.close()
        self._sending = self._sender()
        run(self._sending, _SETTINGS)
        made = run(
            self._sending,
            f'CREATE_REPLICATION_SLOT "{self._name}" TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT',
        )
        return (made.get_value(0, 2) or b"").decode()

    def _sender(self) -> Connection:
        import psycopg

        try:
            return self._table.connected(replication="database")
        except psycopg.OperationalError as error:
            assert self._reading is not None
            role, may = self._reading.execute(_ROLE).fetchone() or ("", True)
            if may:
                raise
            raise self._refusal(f'role "{role}" lacks the attribute REPLICATION', DENIED) from error


def _lock(function: str, name: str) -> tuple[str, list[object]]:
    return f"SELECT {function}(%s, hashtext(%s))", [_LOCKS, name]
