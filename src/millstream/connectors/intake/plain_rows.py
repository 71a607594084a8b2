"""Fast path for rows whose values plainly have the declared types.

It returns the same as `checking.checked_records`, in a tenth of the time for rows that arrive one
by one; other rows are left to `checked_records`.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.logical.catalog import Stream
from millstream.logical.plan import Lifetime
from millstream.model import types
from millstream.model.arrays import of_view
from millstream.model.records import Records
from millstream.model.time import FARTHEST
from millstream.model.types import BIGINT, DOUBLE, INT
from millstream.physical.kernels.scans import greatest, least

_NONE = type(None)
# Types that NumPy converts as Arrow does if all values have one Python type: faster for short
# columns.
_EXACT: dict[pa.DataType, tuple[set[Any], Any]] = {
    INT: ({int}, np.int32),
    BIGINT: ({int}, np.int64),
    DOUBLE: ({float}, np.float64),
}


class PlainRows:
    """The fast path for one stream."""

    def __init__(self, stream: Stream) -> None:
        self._names = [field.name for field in stream.columns]
        self.columns = frozenset(self._names)
        self._time = self._names.index(stream.time[0]) if stream.time else None
        self._columns = [
            PlainColumn(field.type, field.nullable and field.name not in stream.time)
            for field in stream.columns
        ]
        plain = all(column.kinds for column in self._columns)
        self._fits = plain and stream.lifetime is Lifetime.INSTANT

    def records(self, rows: Sequence[Any]) -> Records | None:
        """None if some value needs the full check."""
        values = self._by_column(rows) if self._fits and rows else None
        if values is None:
            return None
        columns = []
        for column, found in zip(self._columns, values, strict=True):
            array = column.array(found)
            if array is None:
                return None
            columns.append(array)
        return self._timed(columns, len(rows))

    def _by_column(self, rows: Sequence[Any]) -> list[list[Any]] | None:
        kinds = set(map(type, rows))
        if kinds == {dict}:
            try:
                return [[row[name] for row in rows] for name in self._names]
            except KeyError:
                return None
        if kinds == {tuple} and all(len(row) == len(self._names) for row in rows):
            return [list(column) for column in zip(*rows, strict=True)]
        return None

    def _timed(self, columns: list[pa.Array], length: int) -> Records | None:
        if self._time is None:
            start = np.zeros(length, np.int64)
        else:
            start = np.frombuffer(columns[self._time].buffers()[1], np.int64, length)
        if greatest(start) > FARTHEST or least(start) < -FARTHEST:
            return None
        return Records(columns, start, start + 1)


class PlainColumn:
    """A column, and the Python types whose values Arrow converts unchanged; empty if there are
    none."""

    def __init__(self, type: pa.DataType, nullable: bool) -> None:
        self.kinds = _kinds(type)
        self._type = type
        self._allowed = self.kinds | ({_NONE} if nullable else set())
        self._exact, self._dtype = _EXACT.get(type, (set(), None))

    def array(self, values: list[Any]) -> pa.Array | None:
        """None if some value needs the full check."""
        found = set(map(type, values))
        try:
            if found == self._exact:
                return of_view(np.array(values, self._dtype), self._type)
            array = pa.array(values, self._type) if found <= self._allowed else None
            return array if isinstance(array, pa.Array) else None  # chunked if it is long
        except (pa.ArrowException, OverflowError, ValueError):
            return None


def _kinds(type: pa.DataType) -> frozenset[object]:
    if types.is_integral(type):
        return frozenset((int,))
    if types.is_floating(type):
        return frozenset((int, float))
    if pa.types.is_string(type):
        return frozenset((str,))
    if pa.types.is_boolean(type):
        return frozenset((bool,))
    return frozenset((datetime.datetime,) if pa.types.is_timestamp(type) else ())
