"""Tables as multisets of rows: what one has and another has not, and keys that come twice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.connectors.tables.table_source import TableChanges
from millstream.logical.catalog import Table
from millstream.model.arrays import larger
from millstream.model.errors import DataError, listed
from millstream.physical.batch import Ints
from millstream.physical.state.keys import KeySpace


def differences(old: pa.Table, new: pa.Table) -> TableChanges:
    """What makes the one table the other.

    >>> changes = differences(pa.table({"x": [1, 1, 2]}), pa.table({"x": [3, 1]}))
    >>> changes.rows["x"].to_pylist(), changes.weight.tolist()
    ([1, 2, 3], [-1, -1, 1])
    """
    weight = np.repeat(np.array([-1, 1], np.int64), [old.num_rows, new.num_rows])
    return net_changes(pa.concat_tables([old, new]), weight)


def net_changes(rows: pa.Table, weight: Ints) -> TableChanges:
    """The same changes with each row once, where its weights do not cancel out."""
    codes = _codes(rows)
    count = int(codes.max(initial=-1)) + 1
    sums = np.bincount(codes, weight, count).astype(np.int64)
    first = np.empty(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    left = np.flatnonzero(sums)
    left = left[np.argsort(first[left])]
    return TableChanges(rows.take(pa.array(first[left])), sums[left])


def _codes(rows: pa.Table) -> Ints:
    """A number for each row, the same for equal rows."""
    return KeySpace(rows.schema.types).encode(arrays_of(rows), rows.num_rows)


def arrays_of(rows: pa.Table) -> list[pa.Array]:
    """The columns, each in one piece."""
    return [
        pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        for column in rows.columns
    ]


class UniqueKeys:
    """How many rows of a table have each key: there must not be two."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._columns = list(table.key)
        types = {field.name: field.type for field in table.columns}
        self._keys = KeySpace([types[name] for name in table.key])
        self._counts = np.zeros(64, np.int64)  # by code

    def add(self, rows: pa.Table, weight: Ints) -> None:
        """Let rows come and go. DataError where a key is NULL or comes twice: then they have
        not."""
        if not self._columns:
            return
        keys = rows.select(self._columns)
        self._check_not_null(keys.filter(pa.array(weight > 0)))
        codes = self._keys.encode(arrays_of(keys), rows.num_rows)
        if len(self._counts) < self._keys.count:
            room = larger(len(self._counts), self._keys.count)
            self._counts = np.pad(self._counts, (0, room - len(self._counts)))
        np.add.at(self._counts, codes, weight)
        twice = np.flatnonzero(self._counts[codes] > 1)
        if len(twice):
            error = self._comes_twice(keys.slice(int(twice[0]), 1), self._counts[codes[twice[0]]])
            np.subtract.at(self._counts, codes, weight)
            raise error
        if self._keys.is_stale:
            there = np.flatnonzero(self._counts)
            self._keys.keep(there)
            self._counts = self._counts[there]

    def _check_not_null(self, keys: pa.Table) -> None:
        for name in self._columns:
            if keys.column(name).null_count:
                raise DataError(f'table "{self._table.name}": column "{name}" of its key is NULL')

    def _comes_twice(self, key: pa.Table, count: np.int64) -> DataError:
        shown = ", ".join(str(value) for value in key.to_pylist()[0].values())
        return DataError(
            f'table "{self._table.name}": {count} rows have the key ({shown})',
            help=f"{listed(self._columns)} must tell rows apart: declare another PRIMARY KEY, or "
            "none",
        )


def check_key(table: Table, rows: pa.Table) -> None:
    """Refuse rows whose keys are NULL or come twice."""
    UniqueKeys(table).add(rows, np.ones(rows.num_rows, np.int64))
