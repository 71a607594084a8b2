"""Tables as multisets of rows: what one has and another has not, and keys that come twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millstream.connectors.tables.table_source import TableChanges
from millstream.errors import DataError, listed
from millstream.physical.keys import KeySpace

_Ints = NDArray[np.int64]


def differences(old: pa.Table, new: pa.Table) -> TableChanges:
    """What makes the one table the other.

    >>> changes = differences(pa.table({"x": [1, 1, 2]}), pa.table({"x": [3, 1]}))
    >>> changes.rows["x"].to_pylist(), changes.weight.tolist()
    ([1, 2, 3], [-1, -1, 1])
    """
    weight = np.repeat(np.array([-1, 1], np.int64), [old.num_rows, new.num_rows])
    return net_changes(pa.concat_tables([old, new]), weight)


def net_changes(rows: pa.Table, weight: _Ints) -> TableChanges:
    """The same changes with each row once, where its weights do not cancel out."""
    codes = _codes(rows)
    count = int(codes.max(initial=-1)) + 1
    sums = np.bincount(codes, weight, count).astype(np.int64)
    first = np.empty(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    left = np.flatnonzero(sums)
    left = left[np.argsort(first[left])]
    return TableChanges(rows.take(pa.array(first[left])), sums[left])


def _codes(rows: pa.Table) -> _Ints:
    """A number for each row, the same for equal rows."""
    columns = [_in_one(column) for column in rows.columns]
    return KeySpace(rows.schema.types).encode(columns, rows.num_rows)


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def check_key(table: str, key: Sequence[str], rows: pa.Table) -> None:
    """Refuse rows whose keys are NULL or come twice."""
    if not key:
        return
    keys = rows.select(list(key))
    for name in key:
        if keys.column(name).null_count:
            raise DataError(f'table "{table}": column "{name}" of its key is NULL in a row')
    codes = _codes(keys)
    if len(codes) and int(codes.max()) + 1 < len(codes):
        counts = np.bincount(codes)
        twice = int(np.flatnonzero(counts[codes] > 1)[0])
        shown = ", ".join(str(value) for value in keys.slice(twice, 1).to_pylist()[0].values())
        raise DataError(
            f'table "{table}": {counts[codes[twice]]} rows have the key ({shown})',
            help=f"{listed(key)} must tell rows apart: declare another PRIMARY KEY, or none",
        )
