"""`checking.checked_records` as Spark SQL: when rows are valid, and why some are bad. For frames
whose columns have exactly the declared types (`schemas.typed`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from millstream.logical.catalog import Stream
from millstream.logical.plan import Field, Lifetime
from millstream.model import types
from millstream.model.time import FARTHEST, INFINITY
from millstream.model.types import LAST_TIMESTAMP
from millstream.spark.sql_text import quoted, string


def fault(stream: Stream) -> str:
    """Why a row is bad, or NULL."""
    faults = [*_faults_of_texts(stream), *_faults(stream)]
    cases = " ".join(f"WHEN {condition} THEN {told}" for condition, told in faults)
    return f"CASE {cases} END" if cases else "CAST(NULL AS STRING)"


def is_faulty(stream: Stream) -> str:
    """Whether a row is bad, as comparisons that can prune files. Strings are checked by their
    readers."""
    return " OR ".join(condition for condition, _ in _faults(stream)) or "FALSE"


def is_before(stream: Stream, instant: int) -> str:
    """Whether a row starts before an instant; files are pruned by whole milliseconds."""
    exact = f"{start(stream)} < {instant}L"
    if not _is_timestamp(stream):
        return exact
    later = _instant(stream, (instant // 1000 + 1) * 1000)
    return f"({quoted(stream.time[0])} < {later} AND {exact})"


def _faults(stream: Stream) -> list[tuple[str, str]]:
    nulls = [
        (f"{quoted(field.name)} IS NULL", string(f'column "{field.name}" is NOT NULL').text)
        for field in stream.columns
        if not field.nullable
    ]
    years = [fault for field in stream.columns for fault in _faults_of_years(field)]
    return years + nulls + (_faults_of_time(stream) if stream.time else [])


def _faults_of_texts(stream: Stream) -> Iterator[tuple[str, str]]:
    for field in stream.columns:
        condition = _within(quoted(field.name), field.type, _not_utf8)
        if condition is not None:
            yield condition, string(f'the text in column "{field.name}" is not UTF-8').text


def _not_utf8(value: str, type: pa.DataType) -> str | None:
    return f"NOT IS_VALID_UTF8({value})" if type == types.STRING else None


def _faults_of_years(field: Field) -> Iterator[tuple[str, str]]:
    column = quoted(field.name)
    condition = _within(column, field.type, _beyond_years)
    if condition is None:
        return
    told = f' in column "{field.name}" is not within the years 1 to 9999'
    shown = f"CAST({column} AS STRING)" if types.is_atomic(field.type) else string("a value").text
    yield condition, f"CONCAT({shown}, {string(told).text})"


def _beyond_years(value: str, type: pa.DataType) -> str | None:
    """Whether a date or timestamp is out of range."""
    if type == types.DATE:
        return f"({value} < DATE '0001-01-01' OR {value} > DATE '9999-12-31')"
    if type == types.TIMESTAMP:
        first, last = types.FIRST_TIMESTAMP, types.LAST_TIMESTAMP
        return f"({value} < TIMESTAMP_MICROS({first}L) OR UNIX_MICROS({value}) > {last}L)"
    return None


def _within(
    value: str, type: pa.DataType, wrong: Callable[[str, pa.DataType], str | None], depth: int = 0
) -> str | None:
    """Whether a value or a nested one is wrong; None if it never is."""
    if types.is_array(type):
        inner = _within(f"x{depth}", type.value_type, wrong, depth + 1)
        return None if inner is None else f"COALESCE(EXISTS({value}, x{depth} -> {inner}), FALSE)"
    if types.is_struct(type):
        parts = [_within(f"{value}.{quoted(f.name)}", f.type, wrong, depth) for f in type]
        found = [part for part in parts if part is not None]
        return f"({' OR '.join(found)})" if found else None
    return wrong(value, type)


def _faults_of_time(stream: Stream) -> list[tuple[str, str]]:
    name, column = stream.time[0], quoted(stream.time[0])
    of = f'the time in column "{name}" is too'
    faults = [
        (f"{column} IS NULL", string(f'the time column "{name}" is NULL').text),
        (f"{column} > {_instant(stream, FARTHEST)}", string(f"{of} large").text),
        (f"{column} < {_instant(stream, -FARTHEST)}", string(f"{of} small").text),
    ]
    if stream.lifetime is Lifetime.INTERVAL:
        told = f"CONCAT('the row is valid to ', {end(stream)}, {{}})"
        begun, ended = start(stream), end(stream)
        faults.append((f"{ended} = {begun}", told.format("', where it begins'")))
        faults.append((f"{ended} < {begun}", told.format("', before it begins'")))
    return faults


def start(stream: Stream) -> str:
    """The start of a row's validity, in chronons."""
    return _chronons(stream, stream.time[0])


def end(stream: Stream) -> str:
    """The end of a row's validity."""
    if stream.lifetime is Lifetime.INSTANT:
        return f"LEAST({start(stream)}, {FARTHEST}L) + 1L"
    given = _chronons(stream, stream.time[1])
    known = given if not _is_timestamp(stream) else f"NULLIF({given}, {LAST_TIMESTAMP}L)"
    return f"COALESCE({known}, {INFINITY}L)"


def _chronons(stream: Stream, column: str) -> str:
    name = quoted(column)
    return f"UNIX_MICROS({name})" if _is_timestamp(stream) else name


def _instant(stream: Stream, chronons: int) -> str:
    return f"TIMESTAMP_MICROS({chronons}L)" if _is_timestamp(stream) else f"{chronons}L"


def _is_timestamp(stream: Stream) -> bool:
    return bool(pa.types.is_timestamp(stream.domain.type))
