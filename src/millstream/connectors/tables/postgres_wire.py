"""What goes over a connection to PostgreSQL beside queries: copies out, with and without an end."""

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
    """By the simple protocol, the only one that there is on connections for replication."""
    return _checked(connection.pgconn.exec_(statement.encode()))


def cancel(connection: Connection) -> None:
    """Let another thread that waits for an answer fail, if it can be."""
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
    """The messages of a copy, to its end or until none has come for so many seconds."""
    server = connection.pgconn
    while True:
        length, message = server.get_copy_data(1)  # which waits for nothing
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
    """An error of the server comes behind the last message."""
    while (result := connection.pgconn.get_result()) is not None:
        _checked(result)
