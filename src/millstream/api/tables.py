"""The handles of a session's tables, to insert, replace and delete rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from millstream.connectors.intake.checking import records_of
from millstream.connectors.intake.data import table_of
from millstream.connectors.intake.rows import joined
from millstream.logical.catalog import Table
from millstream.model.errors import DataError
from millstream.model.frames import HasRows
from millstream.model.records import Records
from millstream.physical.batch import Ints
from millstream.relations.tables import HeldTable
from millstream.sql.statements import CreateLatest


class TableHandle(HasRows):
    """A table. Each change is atomic: queries see all of it or nothing. `at` is when it takes
    effect; by default as soon as a query reads it."""

    def __init__(self, held: HeldTable) -> None:
        self._held = held

    @property
    def name(self) -> str:
        return self._held.table.name

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return f"<Table {self.name}: {len(self)} rows>"

    @property
    def trouble(self) -> str | None:
        """Why an external table cannot be read at present; the rows last read stay valid."""
        return None if self._held.trouble is None else self._held.trouble.message

    def rows(self) -> pa.Table:
        """The rows with all changes applied."""
        return self._held.rows()

    def to_arrow(self) -> pa.Table:
        """The current rows."""
        return self.rows()

    def insert(self, data: object, at: object = None) -> int:
        """Add rows: a mapping, an iterable of rows, an Arrow table, a pandas or Polars frame."""
        records = self._typed(data)
        self._held.await_room()
        self._held.change(records, _times(records, 1), at)
        return len(records)

    def delete(self, data: object, at: object = None) -> int:
        """Delete rows; if the table has a key, the key columns are enough."""
        self._held.await_room()
        with self._held.lock:
            gone = self._present(data)
            self._held.change(gone, _times(gone, -1), at)
        return len(gone)

    def upsert(self, data: object, at: object = None) -> int:
        """Insert rows, each replacing the row with its key."""
        records = self._typed(data)
        self._held.await_room()
        with self._held.lock:
            gone = self._held.with_keys(self._keys_of(records))
            weight = np.concatenate([_times(gone, -1), _times(records, 1)])
            self._held.change(joined([gone, records]), weight, at)
        return len(records)

    def replace(self, data: object) -> None:
        """Replace all rows by these."""
        records = self._typed(data)
        self._held.await_room()
        self._held.become(records)

    def _typed(self, data: object) -> Records:
        table = self._held.table
        return _typed(table, data)

    def _present(self, data: object) -> Records:
        table = self._held.table
        if not table.key:
            return self._typed(data)
        key = tuple(field for field in table.columns if field.name in table.key)
        own = replace(table, columns=key, time=())
        columns = dict(zip((field.name for field in key), _typed(own, data).columns, strict=True))
        return self._held.with_keys([columns[name] for name in table.key])

    def _keys_of(self, records: Records) -> Sequence[pa.Array]:
        table = self._held.table
        if not table.key:
            raise DataError(
                f'table "{table.name}" has no key by which to find the rows to replace',
                help="declare a PRIMARY KEY",
            )
        names = [field.name for field in table.columns]
        return [records.columns[names.index(name)] for name in table.key]


def _typed(table: Table, data: object) -> Records:
    rows = [data] if isinstance(data, Mapping) else data
    return records_of(table, table_of(rows, table.columns, table.name, table.units))


def _times(records: Records, weight: int) -> Ints:
    return np.full(len(records), weight, np.int64)


def latest_text(statement: CreateLatest) -> str:
    """The last row of each key, as a query."""
    key = ", ".join(map(str, statement.key))
    text = f"SELECT * FROM {statement.stream} WINDOW(PARTITION BY {key} ROWS 1)"
    if statement.deleted is not None:
        text += f" WHERE NOT coalesce(({statement.deleted}), FALSE)"
    return text
