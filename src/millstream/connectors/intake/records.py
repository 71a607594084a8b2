"""The rows of a stream, checked and typed, each with the interval in which it is valid."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millstream.connectors.intake.data import column_in_data
from millstream.connectors.intake.typed_columns import BadRow as BadRow
from millstream.connectors.intake.typed_columns import note, typed_column
from millstream.logical.catalog import Stream
from millstream.logical.elements import Element
from millstream.model import types
from millstream.model.arrays import gather
from millstream.model.errors import DataError
from millstream.model.long_texts import cuts, is_wide, narrowed, offsets_of
from millstream.model.time import FARTHEST, INFINITY
from millstream.model.values import to_plain

# INFINITY where time is a TIMESTAMP: the largest that other systems can read.
LAST_TIMESTAMP = types.LAST_TIMESTAMP

Ints = NDArray[np.int64]


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
        columns = [gather(column, index) for column in self.columns]
        weight = None if self.weight is None else self.weight[index]
        number = None if self.number is None else self.number[index]
        return Records(columns, self.start[index], self.end[index], weight, number)

    def slice(self, first: int, stop: int) -> Records:
        columns = [column.slice(first, stop - first) for column in self.columns]
        weight = None if self.weight is None else self.weight[first:stop]
        number = None if self.number is None else self.number[first:stop]
        return Records(columns, self.start[first:stop], self.end[first:stop], weight, number)

    def part(self, first: int, stop: int) -> Records:
        """As `slice`, with fewer rows where their texts are too long for one array each."""
        texts = [column for column in self.columns if is_wide(column.type)]
        if not texts or first >= stop:
            return self.slice(first, stop)
        parts = (np.diff(offsets_of(text.slice(first, stop - first))) for text in texts)
        _, count = next(cuts(np.maximum.reduce(list(parts))))
        part = self.slice(first, first + count)
        part.columns = [narrowed(column) for column in part.columns]
        return part

    def parts(self, rows: int, size: int) -> Iterator[Records]:
        """The same rows in parts of at most so many rows and bytes; a row that has more bytes
        stands alone. At least one part."""
        first = 0
        while True:
            part = self.part(first, min(first + rows, len(self)))
            while len(part) > 1 and part.nbytes > size:
                part = part.slice(0, len(part) // 2)
            yield part
            first += len(part)
            if first >= len(self):
                return

    @property
    def nbytes(self) -> int:
        return 16 * len(self) + sum(int(column.nbytes) for column in self.columns)

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

    @property
    def nbytes(self) -> int:
        return self.records.nbytes + sum(len(row.message) for row in self.bad)


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
