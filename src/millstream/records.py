"""The rows of a stream, checked and typed, each with the interval in which it is valid."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from millstream import types
from millstream.catalog import Stream
from millstream.data import column_in_data
from millstream.errors import DataError
from millstream.logical.elements import Element
from millstream.logical.functions import to_string
from millstream.logical.plan import Field
from millstream.logical.time import FARTHEST, INFINITY
from millstream.moments import (
    from_numbers,
    from_text,
    is_numeric_arrow,
    is_temporal,
    is_text,
    misfit,
    mixes,
    remedy,
)
from millstream.values import out_of_years, to_plain, to_type

# INFINITY where time is a TIMESTAMP: the largest that other systems can read.
LAST_TIMESTAMP = types.LAST_TIMESTAMP

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be taken in: its number, counted from 1, and why."""

    number: int
    message: str
    help: str | None = None


@dataclass
class Records:
    """Typed columns, and from when to when each row is valid; without a weight, each row is there
    once. `number` is the arrival number of each row of a table: a row that goes has the number of
    the row that came. The rows of a stream have none; their position is their number."""

    columns: list[pa.Array]
    start: Ints
    end: Ints
    weight: Ints | None = None
    number: Ints | None = None

    def __len__(self) -> int:
        return len(self.start)

    def take(self, index: Ints) -> Records:
        rows = pa.array(index)
        columns = [column.take(rows) for column in self.columns]
        weight = None if self.weight is None else self.weight[index]
        number = None if self.number is None else self.number[index]
        return Records(columns, self.start[index], self.end[index], weight, number)

    def slice(self, first: int, stop: int) -> Records:
        columns = [column.slice(first, stop - first) for column in self.columns]
        weight = None if self.weight is None else self.weight[first:stop]
        number = None if self.number is None else self.number[first:stop]
        return Records(columns, self.start[first:stop], self.end[first:stop], weight, number)

    def until(self, instant: int) -> Records:
        """Of records in order of time, those that start by an instant."""
        return self.slice(0, int(np.searchsorted(self.start, instant, "right")))

    def in_order(self) -> Records:
        """By time, rows of one instant as they stand."""
        if len(self) < 2 or (self.start[1:] >= self.start[:-1]).all():
            return self
        return self.take(np.argsort(self.start, kind="stable"))

    def elements(self) -> list[Element]:
        plain = [to_plain(column, column.type) for column in self.columns]
        rows: Iterator[tuple[Any, ...]] = (
            zip(*plain, strict=True) if plain else iter([()] * len(self))
        )
        weights = np.ones(len(self), np.int64) if self.weight is None else self.weight
        numbers = [None] * len(self) if self.number is None else self.number.tolist()
        times = zip(self.start.tolist(), self.end.tolist(), weights.tolist(), numbers, strict=True)
        return [Element(row, *when) for row, when in zip(rows, times, strict=True)]


@dataclass(frozen=True)
class Checked:
    """Typed rows, and those that could not be taken in, by their number among both."""

    records: Records
    bad: Sequence[BadRow] = ()

    def __len__(self) -> int:
        return len(self.records) + len(self.bad)


def records_of(stream: Stream, table: pa.Table) -> Records:
    """All rows of a table, in the stream's order; DataError at the first that cannot be taken."""
    return in_whole(stream, *checked_records(stream, table))


def in_whole(stream: Stream, records: Records, bad: Sequence[BadRow]) -> Records:
    """As `records_of`, where it is known which rows can be taken."""
    if bad:
        first = min(bad, key=lambda row: row.number)
        where = f'{stream.kind} "{stream.name}", row {first.number}'
        raise DataError(f"{where}: {first.message}", help=first.help)
    return records.in_order()


def checked_records(stream: Stream, table: pa.Table) -> tuple[Records, list[BadRow]]:
    """The rows of a table that can be taken in, as they stand, and those that cannot."""
    bad: dict[int, BadRow] = {}
    columns = []
    for field in stream.columns:
        name = column_in_data(table.column_names, field.name, stream.name)
        columns.append(_typed(stream, field, table.column(name), bad))
        _check_years(field, columns[-1], bad)
    _check_not_null(stream, columns, bad)
    start, end = intervals(stream, columns, table.num_rows, bad)
    records = Records(columns, start, end)
    if bad:
        kept = np.ones(len(records), np.bool_)
        kept[[number - 1 for number in bad]] = False
        records = records.take(np.flatnonzero(kept))
    return records, list(bad.values())


def check_type(stream: Stream, field: Field, found: pa.DataType) -> None:
    """DataError where data of an Arrow type is not what a column of the stream may be given."""
    _typed(stream, field, pa.chunked_array([], found), {})


def _note(bad: dict[int, BadRow], index: int, message: str, help: str | None = None) -> None:
    bad.setdefault(index + 1, BadRow(index + 1, message, help))


def _typed(
    stream: Stream, field: Field, column: pa.ChunkedArray, bad: dict[int, BadRow]
) -> pa.Array:
    """The column in the type that the stream declares."""
    array = pa.concat_arrays(column.chunks or [pa.array([], column.type)])
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        array = _whole_microseconds(field, array, bad)
    if field.type == types.TIMESTAMP and array.type != types.TIMESTAMP:
        found = _moments(stream, field, array, bad)
        if found is not None:
            return found
    if mixes(array.type, field.type):
        raise _refused(stream, field, array)
    try:
        return to_type(array, field.type)
    except (ValueError, pa.ArrowException) as error:
        if not _misfits(field, array, bad):
            raise DataError(
                f'{stream.kind} "{stream.name}", column "{field.name}" is not '
                f"{types.sql_name(field.type)}: {error}"
            ) from None
    fits = [number + 1 not in bad for number in range(len(array))]
    return to_type(pc.if_else(pa.array(fits), array, pa.scalar(None, array.type)), field.type)


def _moments(
    stream: Stream, field: Field, array: pa.Array, bad: dict[int, BadRow]
) -> pa.Array | None:
    """Texts, and numbers of a declared unit, as TIMESTAMP; None for other data."""
    unit = stream.units.get(field.name)
    if is_text(array.type):
        found = from_text(array.cast(types.STRING), types.TIMESTAMP, unit)
    elif is_numeric_arrow(array.type) and unit is not None:
        found = from_numbers(array, unit)
    else:
        return None
    for index in [] if found.failed is None else np.flatnonzero(found.failed).tolist():
        value = array[index].as_py()
        wrong = misfit(value, field.type, field.name, stream.units)
        told = f'{value!r} in column "{field.name}" is not TIMESTAMP'
        _note(bad, index, told if wrong is None else wrong.diagnostic.message)
    return found.values


def _refused(stream: Stream, field: Field, array: pa.Array) -> DataError:
    """A column of numbers for times without a unit, or of times for numbers."""
    help = None
    if is_temporal(field.type):
        help = remedy(field.type, field.name in stream.units)
    return DataError(
        f'{stream.kind} "{stream.name}", column "{field.name}" is not '
        f"{types.sql_name(field.type)}: the data is {array.type}",
        help=help,
    )


def _misfits(field: Field, array: pa.Array, bad: dict[int, BadRow]) -> bool:
    """Note the rows whose value does not fit the type, if it is only some of them."""
    count = len(bad)
    for index in range(len(array)):
        try:
            to_type(array.slice(index, 1), field.type)
        except (ValueError, pa.ArrowException):
            value, wanted = array[index].as_py(), types.sql_name(field.type)
            _note(bad, index, f'{value!r} in column "{field.name}" is not {wanted}')
    return count < len(bad) < len(array)


def _whole_microseconds(field: Field, array: pa.Array, bad: dict[int, BadRow]) -> pa.Array:
    nanoseconds = array.cast(pa.int64())
    rest = pc.fill_null(nanoseconds, 0).to_numpy(zero_copy_only=False) % 1000
    for index in np.flatnonzero(rest).tolist():
        _note(
            bad,
            index,
            f'the time in column "{field.name}" has nanoseconds that are not whole microseconds',
            "round it to microseconds first",
        )
    return pc.subtract(nanoseconds, pa.array(rest)).cast(array.type)


def _check_years(field: Field, column: pa.Array, bad: dict[int, BadRow]) -> None:
    """Dates and timestamps that nothing can show are none of ours."""
    for index in out_of_years(column):
        told = f'a value in column "{field.name}"'
        if types.is_atomic(field.type):
            (value,) = to_plain(column.slice(index, 1), field.type)
            told = f'{to_string(value, field.type)} in column "{field.name}"'
        _note(bad, index, f"{told} is not within the years 1 to 9999")


def _check_not_null(stream: Stream, columns: list[pa.Array], bad: dict[int, BadRow]) -> None:
    for field, column in zip(stream.columns, columns, strict=True):
        if not field.nullable and column.null_count:
            for index in _where(column.is_null()):
                _note(bad, index, f'column "{field.name}" is NOT NULL')


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
        _note(bad, index, f'the time column "{stream.time[0]}" is NULL')
    start = _numbers(starts, 0)
    for index in np.flatnonzero((start > FARTHEST) | (start < -FARTHEST)).tolist():
        size = "large" if start[index] > 0 else "small"
        _note(bad, index, f'the time in column "{stream.time[0]}" is too {size}')
    if len(stream.time) == 1:
        return start, np.minimum(start, FARTHEST) + 1
    end = _numbers(columns[names.index(stream.time[1])].cast(pa.int64()), INFINITY)
    if pa.types.is_timestamp(stream.domain.type):
        end[end == LAST_TIMESTAMP] = INFINITY
    for index in np.flatnonzero(end <= start).tolist():
        when = "where it begins" if end[index] == start[index] else "before it begins"
        _note(bad, index, f"the row is valid to {end[index]}, {when}")
    return start, end


def _numbers(array: pa.Array, null: int) -> Ints:
    filled = array.fill_null(null) if array.null_count else array
    return np.array(filled, np.int64)


def _where(mask: pa.Array) -> list[int]:
    index: list[int] = np.flatnonzero(mask.to_numpy(zero_copy_only=False)).tolist()
    return index
