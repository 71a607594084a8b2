"""Reads JSON rows, one object per line. A missing key is NULL; unknown keys are ignored.

Arrow reads many lines at once, or rejects them all because of one. Python then reads those lines,
which is slower but finds the bad one. Both must read a line alike: a row must not depend on its
neighbours.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow

from millstream.connectors.intake.moments import TimeUnits, from_text
from millstream.connectors.intake.rows import Unreadable, typed_rows
from millstream.connectors.lines import Dropped, Lines
from millstream.connectors.raw_rows import RawRows, RowLocation, checked, left_out
from millstream.logical.catalog import Stream
from millstream.logical.plan import Field
from millstream.model.errors import brief
from millstream.model.records import BadRow, Checked, Ints
from millstream.model.types import (
    BIGINT,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    is_array,
    is_decimal,
    is_struct,
)

Keys = Mapping[str, str]  # by column to read: its key in the lines

DEEPEST = 256  # nested objects and arrays


class JsonLines:
    """Reads the lines of one place in order. The first object decides the key of each column: its
    name, or the only match ignoring case."""

    def __init__(self, stream: Stream, place: RowLocation) -> None:
        self._stream = stream
        self._place = place
        self._fields = place.read_fields(stream)
        self._keys: Keys | None = None
        self._number = 1  # of the next line
        self._has_decimals = any(_has_decimals(field.type) for field in self._fields)
        self._has_inner_times = any(_has_inner_times(field.type) for field in self._fields)

    def rows(self, lines: Lines) -> Iterator[Checked]:
        first = self._number
        if isinstance(lines, Dropped):
            self._number += 1
            yield left_out(self._stream, first, lines, self._place)
            return
        self._number += len(lines)
        there = [(first + index, line) for index, line in enumerate(lines) if line.strip()]
        if there:
            numbers = np.array([number for number, _ in there], np.int64)
            yield self._read([line for _, line in there], numbers)

    def _read(self, lines: list[bytes], numbers: Ints) -> Checked:
        if self._keys is None:
            self._keys = next(filter(None, (_keys(line, self._fields) for line in lines)), None)
        keys = self._keys or {field.name: field.name for field in self._fields}
        table = None
        if self._are_for_arrow(lines):
            table = _table(lines, self._fields, keys, self._stream.units)
        if table is not None:
            table = _converted(table, self._fields)
        if table is None:
            return _one_by_one(self._stream, lines, numbers, keys, self._place)
        named = table.rename_columns([field.name for field in self._fields])
        return checked(self._stream, RawRows(named, numbers), self._place)

    def _are_for_arrow(self, lines: list[bytes]) -> bool:
        if self._has_inner_times or (self._has_decimals and _have_exponents(lines)):
            return False
        return all(map(_is_for_arrow, lines))


def _keys(line: bytes, fields: Sequence[Field]) -> Keys | None:
    """The keys as in one line; None if it is not an object."""
    found = None if _fault(line) is not None else _loaded(line)
    if not isinstance(found, dict):
        return None
    return {field.name: _key(list(found), field.name) for field in fields}


def _key(keys: list[str], name: str) -> str:
    alike = [key for key in keys if key.lower() == name.lower()]
    return alike[0] if name not in keys and len(alike) == 1 else name


def _loaded(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _fault(line: bytes) -> str | None:
    """Why a line is rejected before it is parsed: it is not UTF-8, or nested too deeply."""
    if not line.isascii():
        try:
            line.decode()
        except UnicodeDecodeError:
            return "is not UTF-8"
    if line.count(b"[") + line.count(b"{") > DEEPEST and _depth(line) > DEEPEST:
        return f"has more than {DEEPEST} nested objects and arrays"
    return None


def _is_for_arrow(line: bytes) -> bool:
    """Whether Arrow may read a line. It crashes on null in place of an object."""
    is_object = line.lstrip().startswith(b"{") and _NO_OBJECT.search(line) is None
    return is_object and _fault(line) is None


def _has_decimals(type: pa.DataType) -> bool:
    return is_decimal(type) or any(map(_has_decimals, _inner_types(type)))


def _has_inner_times(type: pa.DataType) -> bool:
    """Whether arrays or structs contain times: Arrow accepts fewer strings as times than CAST."""
    return any(
        inner in (DATE, TIMESTAMP) or _has_inner_times(inner) for inner in _inner_types(type)
    )


def _inner_types(type: pa.DataType) -> list[pa.DataType]:
    if is_array(type):
        return [type.value_type]
    return [part.type for part in type] if is_struct(type) else []


def _have_exponents(lines: list[bytes]) -> bool:
    """Whether there is a number such as 1e-9: Arrow crashes on some of them in decimal columns."""
    return any(_EXPONENT.search(line) is not None for line in lines)


def _depth(line: bytes) -> int:
    depth = deepest = 0
    for mark in _MARKS.findall(_STRINGS.sub(b"", line)):
        depth += 1 if mark in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_EXPONENT = re.compile(rb'[:,\[]\s*+"?[-+]?[0-9.]++[eE][-+]?[0-9]++["\s,\]}]')
_NO_OBJECT = re.compile(rb"}\s*null")
_MARKS = re.compile(rb"[\[\]{}]")


def _table(
    lines: list[bytes], fields: Sequence[Field], keys: Keys, units: TimeUnits
) -> pa.Table | None:
    """All lines, or None if Arrow rejects one."""
    counted = [field.name for field in fields if units.get(field.name) is not None]
    plain = [(keys[field.name], _as_read(field.type)) for field in fields]
    if not counted:
        return _read(lines, pa.schema(plain))
    for type in (BIGINT, DOUBLE):  # numbers of a time unit may have fractions
        columns = {name: plain[n] for n, name in enumerate(field.name for field in fields)}
        columns |= {name: (keys[name], type) for name in counted}
        table = _read(lines, pa.schema(list(columns.values())))
        if table is not None:
            return table if all(_is_exact(table.column(keys[name])) for name in counted) else None
    return None


def _is_exact(numbers: pa.ChunkedArray) -> bool:
    """Whether integers read as doubles are exact."""
    return numbers.type != DOUBLE or (pc.max(pc.abs(numbers)).as_py() or 0) < 2**53


def _converted(table: pa.Table, fields: Sequence[Field]) -> pa.Table | None:
    """Dates as CAST reads them; None if one is not a date. Arrow does not check that a decimal
    still fits its precision after zeros are appended."""
    for index, field in enumerate(fields):
        column = table.column(index)
        if _has_decimals(field.type):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid:
                return None
        elif field.type == DATE:
            found = from_text(column.combine_chunks(), DATE)
            if found.failed is not None and found.failed.any():
                return None
            table = table.set_column(index, table.column_names[index], found.values)
    return table


def _read(lines: list[bytes], schema: pa.Schema) -> pa.Table | None:
    if not lines:
        return schema.empty_table()
    text = b"\n".join(lines)
    try:
        table = arrow.read_json(
            io.BytesIO(text),
            arrow.ReadOptions(use_threads=False, block_size=len(text) + 1),
            arrow.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    return table if table.num_rows == len(lines) else None  # a line may hold two objects


def _as_read(type: pa.DataType) -> pa.DataType:
    """Arrow reads no dates in JSON: they are strings first."""
    if is_array(type):
        return pa.list_(_as_read(type.value_type))
    if is_struct(type):
        return pa.struct([(field.name, _as_read(field.type)) for field in type])
    if is_decimal(type) and type.precision + type.scale > 38:  # Arrow does not check overflow
        return pa.decimal256(type.precision, type.scale)
    return STRING if type == DATE else type


# --- line by line -----------------------------------------------------------------------------


def _one_by_one(
    stream: Stream, lines: list[bytes], numbers: Ints, keys: Keys, place: RowLocation
) -> Checked:
    constants = {name: value.as_py() for name, value in place.constants.items()}
    fields = place.read_fields(stream)
    rows = [_row(line, fields, keys, constants) for line in lines]
    for field in fields:
        if field.type in (DATE, TIMESTAMP) or is_decimal(field.type):
            _read_texts(rows, field, stream.units.get(field.name))
    records, bad = typed_rows(stream, rows)
    told = [place.complaint(int(numbers[row.number - 1]), row.message) for row in bad]
    return Checked(
        records,
        [BadRow(row.number, text, row.help) for row, text in zip(bad, told, strict=True)],
    )


def _row(
    line: bytes, fields: Sequence[Field], keys: Keys, constants: Mapping[str, Any]
) -> dict[str, Any] | Unreadable:
    fault = _fault(line)
    if fault is not None:
        return Unreadable(f"{_shown(line)} {fault}")
    if not line.lstrip().startswith(b"{"):
        return Unreadable(f"{_shown(line)} is not an object", "write one object per line")
    try:
        found = json.loads(line.decode(), parse_int=_Number, parse_float=_Number)
    except ValueError as error:
        return Unreadable(f"{_shown(line)} is not JSON: {error}")
    if _HALF_PAIR.search(line) is not None and _has_half_pair(found):
        return Unreadable(f"{_shown(line)} has an unpaired surrogate, which is not UTF-8")
    values = {field.name: _value(found.get(keys[field.name]), field.type) for field in fields}
    return {**values, **constants}


_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")


def _has_half_pair(value: object) -> bool:
    """Whether a string has an escaped unpaired surrogate: JSON allows it, UTF-8 cannot encode
    it."""
    if isinstance(value, str):
        return any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, list):
        return any(map(_has_half_pair, value))
    if isinstance(value, dict):
        return any(map(_has_half_pair, (*value, *value.values())))
    return False


@dataclass(frozen=True)
class _Number:
    """A number as written: how it is read depends on the type of its column."""

    text: str

    def as_type(self, type: pa.DataType | None) -> int | float | Decimal:
        if type is not None and is_decimal(type):
            try:
                return Decimal(self.text)
            except InvalidOperation:  # its exponent is out of range
                return float(self.text)
        is_whole = self.text.lstrip("-").isdigit() and len(self.text) < _MOST_DIGITS
        if is_whole and (type is None or not pa.types.is_floating(type)):
            return int(self.text)
        return float(self.text)


_MOST_DIGITS = 4_000  # that Python reads as an integer


def _value(value: Any, type: pa.DataType | None) -> Any:
    """A JSON value with its numbers converted for the type; a type of None: it does not fit
    anyway."""
    if isinstance(value, _Number):
        return value.as_type(type)
    if isinstance(value, list):
        element = type.value_type if type is not None and is_array(type) else None
        return [_inner_value(each, element) for each in value]
    if isinstance(value, dict):
        types = {part.name: part.type for part in type} if type and is_struct(type) else {}
        return {key: _inner_value(each, types.get(key)) for key, each in value.items()}
    return value


def _inner_value(value: Any, type: pa.DataType | None) -> Any:
    """Reads times inside nested values one by one; those of a column are read all at once."""
    if isinstance(value, str) and type in (DATE, TIMESTAMP):
        found = from_text(pa.array([value], STRING), type).values[0].as_py()
        return value if found is None else found
    return _value(value, type)


def _shown(line: bytes) -> str:
    return brief(line.strip().decode(errors="replace"))


def _read_texts(rows: list[dict[str, Any] | Unreadable], field: Field, unit: int | None) -> None:
    """Convert the strings of a column where possible; a DECIMAL may also be given as a number."""
    kinds = (str, Decimal, float) if is_decimal(field.type) else (str,)
    having = [row for row in rows if isinstance(row, dict) and type(row[field.name]) in kinds]
    texts = pa.array([str(row[field.name]) for row in having], STRING)
    found = from_text(texts, field.type, unit)
    for row, value in zip(having, found.values.to_pylist(), strict=True):
        if value is not None:
            row[field.name] = value
