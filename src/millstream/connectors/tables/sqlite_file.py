"""A table in a SQLite file: `SOURCE sqlite('path', table => 'name', refresh => '5 seconds')`.

SQLite stores values of any type in any column; the declared type is only a hint. So declared types
are compared first, and then each value is checked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from millstream.connectors.arguments import Arguments
from millstream.connectors.intake.moments import from_text
from millstream.connectors.tables.columns import SourceTable
from millstream.connectors.tables.refreshed import Refreshed, refresh_of
from millstream.logical.catalog import Table
from millstream.logical.plan import Field
from millstream.model import types
from millstream.model.errors import QueryError, one_of

_PATIENCE = 5.0  # seconds to wait for other writers

# By substring of the declared type, in this order (the SQLite manual, "Determination Of Column
# Affinity").
_AFFINITIES = [
    ("INT", "INTEGER"),
    ("CHAR", "TEXT"),
    ("CLOB", "TEXT"),
    ("TEXT", "TEXT"),
    ("BLOB", "BLOB"),
    ("REAL", "REAL"),
    ("FLOA", "REAL"),
    ("DOUB", "REAL"),
]
_FITTING: dict[pa.DataType, tuple[str, ...]] = {
    types.BOOLEAN: ("INTEGER", "NUMERIC"),
    types.INT: ("INTEGER", "NUMERIC"),
    types.BIGINT: ("INTEGER", "NUMERIC"),
    types.REAL: ("REAL", "NUMERIC"),
    types.DOUBLE: ("REAL", "NUMERIC"),
    types.STRING: ("TEXT",),
    types.BINARY: ("BLOB",),
    types.DATE: ("TEXT", "NUMERIC"),
    types.TIMESTAMP: ("TEXT", "NUMERIC"),
}
_FITTING_DECIMALS = ("INTEGER", "NUMERIC", "TEXT")


def affinity(declared: str) -> str:
    """
    >>> affinity("VARCHAR(20)"), affinity("timestamp"), affinity("")
    ('TEXT', 'NUMERIC', 'ANY')
    """
    if not declared:
        return "ANY"
    found = (affinity for part, affinity in _AFFINITIES if part in declared.upper())
    return next(found, "NUMERIC")


def connect(table: Table) -> Refreshed:
    given = Arguments(table, ["path", "table", "refresh"])
    reader = SqliteTable(table, given.text("path"), given.text("table"))
    return Refreshed(table, reader, refresh_of(given))


class SqliteTable:
    def __init__(self, table: Table, path: str, name: str) -> None:
        self._path = Path(path)
        self._name = name
        self._origin = SourceTable(table, f'table "{name}" of the SQLite file "{path}"')
        self._connection: sqlite3.Connection | None = None
        self._file: object = None  # the file that the connection has open

    def version(self) -> object:
        """Changes whenever another connection writes."""
        with self._telling():
            version = self._opened().execute("PRAGMA data_version").fetchone()
        return self._file, version

    def read(self) -> pa.Table:
        with self._telling():
            connection = self._opened()
            connection.execute("BEGIN")
            try:
                names = self._checked_names(connection)
                quoted = ", ".join(map(_quoted, names))
                rows = connection.execute(f"SELECT {quoted} FROM {_quoted(self._name)}").fetchall()
            finally:
                connection.execute("ROLLBACK")
        values = list(zip(*rows, strict=True)) or [()] * len(names)
        fields = self._origin.table.columns
        columns = [
            self._origin.converted(field, found, _conversion(field))
            for field, found in zip(fields, values, strict=True)
        ]
        table = pa.table(columns, schema=self._origin.schema)
        self._origin.check(table)
        return table

    def interrupt(self) -> None:
        connection = self._connection
        if connection is not None:
            with suppress(sqlite3.Error):  # just closed
                connection.interrupt()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _opened(self) -> sqlite3.Connection:
        """Reconnects if the file was replaced."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            raise self._origin.error(f'there is no SQLite file "{self._path}"') from None
        file = (found.st_dev, found.st_ino)
        if self._connection is None or file != self._file:
            self.close()
            self._connection = sqlite3.connect(
                f"file:{quote(str(self._path))}?mode=ro",
                timeout=_PATIENCE,
                isolation_level=None,
                check_same_thread=False,
                uri=True,
            )
            self._file = file
        return self._connection

    def _checked_names(self, connection: sqlite3.Connection) -> list[str]:
        there = connection.execute("SELECT name, type FROM pragma_table_xinfo(?)", [self._name])
        found: dict[str, str] = dict(there.fetchall())
        if not found:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type <> 'index'")
            help = one_of(self._name, [name for (name,) in tables], "table")
            raise self._origin.error(f"there is no {self._origin.name}", help)
        names = self._origin.names(list(found))
        for field, name in zip(self._origin.table.columns, names, strict=True):
            if not _fits(affinity(found[name]), field.type):
                raise self._origin.wrong_type(field, found[name])
        return names

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Translate SQLite's errors."""
        try:
            yield
        except sqlite3.Error as error:
            raise QueryError(
                f'table "{self._origin.table.name}": {self._origin.name} cannot be read: {error}'
            ) from error


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _fits(affinity: str, type: pa.DataType) -> bool:
    fitting = _FITTING_DECIMALS if types.is_decimal(type) else _FITTING.get(type, ())
    return affinity in fitting or (affinity == "ANY" and bool(fitting))


# --- values ---------------------------------------------------------------------------------------


def _conversion(field: Field) -> Callable[[Sequence[Any]], pa.Array]:
    type = field.type
    if types.is_decimal(type):
        return lambda values: pa.array(map(_decimal, values), type)
    if type in (types.DATE, types.TIMESTAMP):
        return lambda values: _times(_all(values, str), type)
    if type == types.BOOLEAN:
        return lambda values: _booleans(_all(values, int))
    if type == types.REAL:
        return lambda values: _reals(_all(values, float, int))
    plain = {types.STRING: (str,), types.BINARY: (bytes,), types.DOUBLE: (float, int)}
    return lambda values: pa.array(_all(values, *plain.get(type, (int,))), type)


def _all(values: Sequence[Any], *kinds: type) -> Sequence[Any]:
    """The same values; an error if one is of another kind."""
    if not all(value is None or isinstance(value, kinds) for value in values):
        raise ValueError
    return values


def _decimal(value: Any) -> Decimal | None:
    """A fraction is stored in binary; the shortest decimal that reads back as it is meant."""
    if value is None:
        return None
    return Decimal(repr(value) if isinstance(value, float) else value)


def _booleans(values: Sequence[Any]) -> pa.Array:
    if not all(value in (None, 0, 1) for value in values):
        raise ValueError
    return pa.array([None if value is None else bool(value) for value in values], types.BOOLEAN)


def _reals(values: Sequence[Any]) -> pa.Array:
    wide = pa.array(values, types.DOUBLE)
    narrow = wide.cast(types.REAL)
    if not narrow.cast(types.DOUBLE).equals(wide):
        raise ValueError
    return narrow


def _times(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    found = from_text(pa.array(values, types.STRING), type)
    if found.failed is not None and np.any(found.failed):
        raise ValueError
    return found.values
