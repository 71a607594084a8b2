"""Turns tables into typed rows of a stream: finds bad rows and computes when each row is valid."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.connectors.intake.data import column_in_data
from millstream.connectors.intake.typed_columns import note, typed_column
from millstream.logical.catalog import Stream
from millstream.model.errors import DataError
from millstream.model.records import BadRow, Ints, Records
from millstream.model.time import FARTHEST, INFINITY
from millstream.model.types import LAST_TIMESTAMP


def records_of(stream: Stream, table: pa.Table) -> Records:
    """All rows of a table, in the stream's order; DataError at the first bad row."""
    return in_whole(stream, *checked_records(stream, table))


def in_whole(stream: Stream, records: Records, bad: Sequence[BadRow]) -> Records:
    """As `records_of`, where the bad rows are known already."""
    if bad:
        first = min(bad, key=lambda row: row.number)
        where = f'{stream.kind} "{stream.name}", row {first.number}'
        raise DataError(f"{where}: {first.message}", help=first.help)
    return records.in_order()


def checked_records(stream: Stream, table: pa.Table) -> tuple[Records, list[BadRow]]:
    """The good rows of a table, in the given order, and the bad rows."""
    bad: dict[int, BadRow] = {}
    columns = []
    for field in stream.columns:
        name = column_in_data(table.column_names, field.name, stream.name)
        columns.append(typed_column(stream, field, table.column(name), bad))
    _check_not_null(stream, columns, bad)
    start, end = intervals(stream, columns, table.num_rows, bad)
    records = Records(columns, start, end)
    if bad:
        kept = np.ones(len(records), np.bool_)
        kept[[number - 1 for number in bad]] = False
        records = records.take(np.flatnonzero(kept))
    return records, list(bad.values())


def _check_not_null(stream: Stream, columns: list[pa.Array], bad: dict[int, BadRow]) -> None:
    for field, column in zip(stream.columns, columns, strict=True):
        if not field.nullable and column.null_count:
            for index in _where(column.is_null()):
                note(bad, index, f'column "{field.name}" is NOT NULL')


def intervals(
    stream: Stream, columns: Sequence[pa.Array], length: int, bad: dict[int, BadRow]
) -> tuple[Ints, Ints]:
    """When each row is valid; without a time column, at the present instant."""
    if not stream.time:
        now = np.full(length, time.time_ns() // 1000, np.int64)
        return now, now + 1
    names = [field.name for field in stream.columns]
    starts = columns[names.index(stream.time[0])].cast(pa.int64())
    for index in _where(starts.is_null()):
        note(bad, index, f'the time column "{stream.time[0]}" is NULL')
    start = _numbers(starts, 0)
    for index in np.flatnonzero((start > FARTHEST) | (start < -FARTHEST)).tolist():
        size = "large" if start[index] > 0 else "small"
        note(bad, index, f'the time in column "{stream.time[0]}" is too {size}')
    if len(stream.time) == 1:
        return start, np.minimum(start, FARTHEST) + 1
    end = _numbers(columns[names.index(stream.time[1])].cast(pa.int64()), INFINITY)
    if pa.types.is_timestamp(stream.domain.type):
        end[end == LAST_TIMESTAMP] = INFINITY
    for index in np.flatnonzero(end <= start).tolist():
        when = "where it begins" if end[index] == start[index] else "before it begins"
        note(bad, index, f"the row is valid to {end[index]}, {when}")
    return start, end


def _numbers(array: pa.Array, null: int) -> Ints:
    filled = array.fill_null(null) if array.null_count else array
    return np.array(filled, np.int64)


def _where(mask: pa.Array) -> list[int]:
    index: list[int] = np.flatnonzero(mask.to_numpy(zero_copy_only=False)).tolist()
    return index
