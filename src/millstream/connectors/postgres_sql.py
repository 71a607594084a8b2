"""Statements for PostgreSQL, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from millstream.model.errors import QueryError

if TYPE_CHECKING:
    from psycopg import Error
    from psycopg.sql import Composable, Composed, Identifier

_CANCELED = "57014"


def need_psycopg(what: str) -> None:
    """Raise an error if the package is missing."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise QueryError(
            f'{what} "postgres" needs the package "psycopg"',
            help="pip install 'millstream[postgres]'",
        ) from None


def table_names(table: str) -> list[str]:
    """The parts of "name" or "schema.name"."""
    names = table.split(".") if isinstance(table, str) else []
    if not (1 <= len(names) <= 2 and all(names)):
        raise QueryError(f'a table is named "name" or "schema.name", not {table!r}')
    return names


def sql(text: str, *parts: Composable) -> Composed:
    from psycopg.sql import SQL

    return SQL(text).format(*parts)


def identifier(*names: str) -> Identifier:
    from psycopg.sql import Identifier

    return Identifier(*names)


def identifiers(names: Iterable[str]) -> Composed:
    from psycopg.sql import SQL

    return SQL(", ").join(map(identifier, names))


def reason(error: Error) -> str:
    """The message of the server or the connection, on one line."""
    return error.diag.message_primary or " ".join(str(error).split())


def is_unreachable(error: Error) -> bool:
    """Whether the server or the network failed, not the statement."""
    if error.sqlstate is None:
        return True
    return error.sqlstate[:2] in ("08", "57") and error.sqlstate != _CANCELED
