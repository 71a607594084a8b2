"""The sink `postgres`: rows appended to a table, or a table that holds the answer at the
frontier."""

from __future__ import annotations

from millstream.connectors.contracts import Sink, SinkContext
from millstream.connectors.postgres_sql import need_psycopg
from millstream.connectors.sinks.postgres_kept import KeptPostgres
from millstream.connectors.sinks.postgres_rows import Postgres, failure


def postgres(context: SinkContext, url: str, table: str, *, keep: bool = False) -> Sink:
    """Appends rows; with `keep`, the table has the answer at the frontier."""
    need_psycopg("sink")
    import psycopg

    try:
        return (KeptPostgres if keep else Postgres)(context, url, table)
    except psycopg.Error as error:
        raise failure(error, table) from error
