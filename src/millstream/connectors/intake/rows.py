"""Turns input data into typed rows and separates the bad rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.connectors.intake.checking import checked_records, in_whole, records_of
from millstream.connectors.intake.data import column_in_data, table_of
from millstream.connectors.intake.plain_rows import PlainRows
from millstream.logical.catalog import Stream
from millstream.model.arrays import concat
from millstream.model.errors import DataError, one_of
from millstream.model.records import BadRow, Checked, Records


@dataclass(frozen=True)
class Unreadable:
    """Stands for a row that cannot be read, with the reason."""

    message: str
    help: str | None = None


def is_table(data: object) -> bool:
    """Whether data is columnar: Arrow data, or a pandas or Polars frame."""
    if isinstance(data, dict | tuple | list):
        return False
    if isinstance(data, pa.Table | pa.RecordBatch):
        return True
    module = type(data).__module__.split(".")[0]
    return module in ("pandas", "polars") and type(data).__name__ in ("DataFrame", "LazyFrame")


def typed(stream: Stream, data: object) -> tuple[Records, list[BadRow]]:
    """The rows of a table or an iterable, in the given order; DataError if data is neither."""
    if is_table(data):
        return typed_table(stream, table_of(data, stream.columns, stream.name, stream.units))
    rows = _rows(stream, data)
    if rows and all(map(is_table, rows)):
        parts = [typed(stream, part) for part in rows]
        return joined([part for part, _ in parts]), _numbered(parts)
    _check_keys(stream, rows)
    return typed_rows(stream, rows)


def all_records(stream: Stream, data: object) -> Records:
    """All rows that a source returned, in the stream's order; DataError at the first bad row."""
    if isinstance(data, list) and data and all(isinstance(part, Checked) for part in data):
        parts = [(part.records, list(part.bad)) for part in data]
        return in_whole(stream, joined([records for records, _ in parts]), _numbered(parts))
    return records_of(stream, table_of(data, stream.columns, stream.name, stream.units))


def _rows(stream: Stream, data: object) -> list[Any]:
    """The rows of non-columnar data. A bare tuple is rejected: it could be one row or many."""
    if isinstance(data, Mapping):
        return [data]
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise DataError(
            f'stream "{stream.name}" cannot be sent {type(data).__name__}',
            help="send an Arrow table, a pandas or Polars frame, or rows",
        )
    if isinstance(data, tuple) and not all(isinstance(row, Mapping | tuple) for row in data):
        raise DataError(
            f'stream "{stream.name}" cannot be sent {data!r}',
            help="send one row as a mapping, or as a tuple in a list: [(1, 2)]",
        )
    return list(data)


def _check_keys(stream: Stream, rows: list[Any]) -> None:
    """Reject rows with a key that is not a column: its value would be lost."""
    names = _plain_rows(stream).columns
    for row in rows:
        if isinstance(row, Mapping) and not names.issuperset(row):
            for key in row:
                if isinstance(key, str) and key.lower() not in {name.lower() for name in names}:
                    raise DataError(
                        f'column "{key}" does not exist in stream "{stream.name}"',
                        help=one_of(key, [field.name for field in stream.columns], "column"),
                    )


def typed_table(stream: Stream, table: pa.Table) -> tuple[Records, list[BadRow]]:
    """DataError if a column is missing; if a column cannot be read at all, every row is bad."""
    for field in stream.columns:
        column_in_data(table.column_names, field.name, stream.name)
    try:
        return checked_records(stream, table)
    except DataError as error:
        message = _without_stream(error.diagnostic.message, stream)
        help = error.diagnostic.help
        return nothing(stream), [BadRow(n + 1, message, help) for n in range(table.num_rows)]


def typed_rows(stream: Stream, rows: list[Any]) -> tuple[Records, list[BadRow]]:
    """Single rows. A missing key is NULL. If some rows cannot be read, bisection finds them."""
    records = _plain_rows(stream).records(rows)
    if records is not None:
        return records, []
    try:
        return checked_records(stream, _table(stream, rows))
    except DataError as error:
        if len(rows) == 1:
            if isinstance(rows[0], Unreadable):
                return nothing(stream), [BadRow(1, rows[0].message, rows[0].help)]
            message = _without_stream(error.diagnostic.message, stream)
            return nothing(stream), [BadRow(1, message, error.diagnostic.help)]
    half = len(rows) // 2
    parts = [typed_rows(stream, rows[:half]), typed_rows(stream, rows[half:])]
    return joined([part for part, _ in parts]), _numbered(parts)


_plain_rows = lru_cache(PlainRows)


def _table(stream: Stream, rows: list[Any]) -> pa.Table:
    keys = {key for row in rows if isinstance(row, Mapping) for key in row}
    if keys:
        known = {key.lower() for key in keys if isinstance(key, str)}
        absent = [field.name for field in stream.columns if field.name.lower() not in known]
        if len(absent) == len(stream.columns):
            raise DataError("the row has none of the stream's columns")
        if absent:
            first = next(n for n, row in enumerate(rows) if isinstance(row, Mapping))
            rows = [*rows]
            rows[first] = {**rows[first], **dict.fromkeys(absent)}
    return table_of(rows, stream.columns, stream.name, stream.units)


def _without_stream(message: str, stream: Stream) -> str:
    """The message for one row without its location, which the caller adds."""
    place = f'{stream.kind} "{stream.name}"'
    for prefix in (f"{place}, row 1: ", f"{place}, ", f"{place}: "):
        if message.startswith(prefix):
            return message[len(prefix) :]
    return message


def _numbered(parts: Sequence[tuple[Records, list[BadRow]]]) -> list[BadRow]:
    """The bad rows of consecutive parts, numbered within the whole."""
    bad: list[BadRow] = []
    before = 0
    for records, refused in parts:
        bad += [BadRow(before + row.number, row.message, row.help) for row in refused]
        before += len(records) + len(refused)
    return bad


def nothing(stream: Stream) -> Records:
    empty = np.empty(0, np.int64)
    return Records([pa.array([], field.type) for field in stream.columns], empty, empty)


def joined(parts: Sequence[Records]) -> Records:
    """Concatenates records; `parts` must not be empty."""
    full = [part for part in parts if len(part)] or list(parts[:1])
    if len(full) == 1:
        return full[0]
    width = len(full[0].columns)
    weights = [part.weight for part in full if part.weight is not None]
    numbers = [part.number for part in full if part.number is not None]
    return Records(
        [concat([part.columns[i] for part in full]) for i in range(width)],
        np.concatenate([part.start for part in full]),
        np.concatenate([part.end for part in full]),
        np.concatenate(weights) if weights else None,
        np.concatenate(numbers) if numbers else None,
    )
