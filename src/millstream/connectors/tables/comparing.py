"""Tables as multisets of rows: their differences, and duplicate keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.connectors.tables.table_source import TableChanges
from millstream.logical.catalog import Table
from millstream.model.errors import DataError, listed
from millstream.physical.batch import Ints
from millstream.physical.state.counted_rows import CountedRows, counted_rows


def differences(old: pa.Table, new: pa.Table) -> TableChanges:
    """The changes that turn `old` into `new`.

    >>> changes = differences(pa.table({"x": [1, 1, 2]}), pa.table({"x": [3, 1]}))
    >>> changes.rows["x"].to_pylist(), changes.weight.tolist()
    ([1, 2, 3], [-1, -1, 1])
    """
    weight = np.repeat(np.array([-1, 1], np.int64), [old.num_rows, new.num_rows])
    return net_changes(pa.concat_tables([old, new]), weight)


def net_changes(rows: pa.Table, weight: Ints) -> TableChanges:
    """The same changes with each row once; rows whose weights cancel out are dropped."""
    first, net = counted_rows(arrays_of(rows), weight).nonzero()
    return TableChanges(rows.take(pa.array(first)), net)


def arrays_of(rows: pa.Table) -> list[pa.Array]:
    """The columns, each as one array."""
    return [
        pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        for column in rows.columns
    ]


class UniqueKeys:
    """Counts the rows per key, and rejects duplicates."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._columns = list(table.key)
        types = {field.name: field.type for field in table.columns}
        self._keys = CountedRows([types[name] for name in table.key])

    def add(self, rows: pa.Table, weight: Ints) -> None:
        """Add and remove rows. DataError if a key is NULL or duplicate; then nothing changes."""
        if not self._columns:
            return
        keys = rows.select(self._columns)
        self._check_not_null(keys.filter(pa.array(weight > 0)))
        codes = self._keys.encode(arrays_of(keys), rows.num_rows)
        self._keys.add(codes, weight)
        counts = self._keys.count_of(codes)
        twice = np.flatnonzero(counts > 1)
        if len(twice):
            self._keys.add(codes, -weight)
            raise self._comes_twice(keys.slice(int(twice[0]), 1), counts[twice[0]])
        self._keys.forget()

    def _check_not_null(self, keys: pa.Table) -> None:
        for name in self._columns:
            if keys.column(name).null_count:
                raise DataError(f'table "{self._table.name}": column "{name}" of its key is NULL')

    def _comes_twice(self, key: pa.Table, count: np.int64) -> DataError:
        shown = ", ".join(str(value) for value in key.to_pylist()[0].values())
        return DataError(
            f'table "{self._table.name}": {count} rows have the key ({shown})',
            help=f"{listed(self._columns)} must identify a row: declare another PRIMARY KEY, or "
            "none",
        )


def check_key(table: Table, rows: pa.Table) -> None:
    """Reject rows whose keys are NULL or duplicate."""
    UniqueKeys(table).add(rows, np.ones(rows.num_rows, np.int64))
