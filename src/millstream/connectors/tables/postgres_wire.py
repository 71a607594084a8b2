"""COPY OUT from PostgreSQL, finite or endless, and the simple query protocol."""

from __future__ import annotations

import contextlib
import selectors
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from psycopg import Connection as Connected
    from psycopg.pq.abc import PGresult

    Connection: TypeAlias = Connected[Any]


def run(connection: Connection, statement: str) -> PGresult:
    """By the simple protocol, the only one on replication connections."""
    return _checked(connection.pgconn.exec_(statement.encode()))


def cancel(connection: Connection) -> None:
    """Make another thread that waits for an answer fail, if possible."""
    import psycopg

    with contextlib.suppress(psycopg.Error):
        connection.cancel()


def _checked(result: PGresult) -> PGresult:
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus

    if result.status in (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE):
        raise error_from_result(result)
    return result


def received(connection: Connection, patience: float | None = None) -> Iterator[memoryview]:
    """The messages of a copy, to its end or until none has arrived for `patience` seconds."""
    server = connection.pgconn
    while True:
        length, message = server.get_copy_data(1)  # does not block
        if length > 0:
            yield message
        elif length < 0:
            _finish(connection)
            return
        elif _readable(server.socket, patience):
            server.consume_input()
        else:
            return


def _readable(socket: int, patience: float | None) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(socket, selectors.EVENT_READ)
        return bool(selector.select(patience))


def _finish(connection: Connection) -> None:
    """A server error arrives after the last message."""
    while (result := connection.pgconn.get_result()) is not None:
        _checked(result)
