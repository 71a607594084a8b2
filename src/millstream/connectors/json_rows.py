"""Rows of JSON, an object a line. A key that is not there is NULL; other keys are passed over.

Arrow reads many lines at once, or refuses them all because of one; those lines are then read by
Python, which is slower and finds the one.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow

from millstream.catalog import Stream
from millstream.connectors.lines import Dropped, Lines
from millstream.connectors.parts import Part, Place, checked, left_out
from millstream.errors import brief
from millstream.local.intake import Unreadable, typed_rows
from millstream.logical.plan import Field
from millstream.moments import TimeUnits, from_text
from millstream.records import BadRow, Checked, Ints
from millstream.types import (
    BIGINT,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    is_array,
    is_decimal,
    is_struct,
)

Keys = Mapping[str, str]  # the key in the lines of each column that is to be read

DEEPEST = 256  # objects and arrays within each other


class JsonLines:
    """Reads the lines of one place, in their order. The keys are as the first object has them: the
    name itself, or the only one that differs in case."""

    def __init__(self, stream: Stream, place: Place) -> None:
        self._stream = stream
        self._place = place
        self._fields = place.read_fields(stream)
        self._keys: Keys | None = None
        self._number = 1  # of the next line

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
        if all(map(_is_for_arrow, lines)):
            table = _table(lines, self._fields, keys, self._stream.units)
        if table is None:
            return _one_by_one(self._stream, lines, numbers, keys, self._place)
        named = table.rename_columns([field.name for field in self._fields])
        return checked(self._stream, Part(named, numbers), self._place)


def _keys(line: bytes, fields: Sequence[Field]) -> Keys | None:
    """The keys as one line has them; None if it is no object."""
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
    """Why a line is not looked at. What Arrow and Python would see differently is refused before,
    so that a row does not depend on the lines beside it."""
    if not line.isascii():
        try:
            line.decode()
        except UnicodeDecodeError:
            return "is not UTF-8"
    if line.count(b"[") + line.count(b"{") > DEEPEST and _depth(line) > DEEPEST:
        return f"has more than {DEEPEST} objects and arrays within each other"
    return None


def _is_for_arrow(line: bytes) -> bool:
    """Whether Arrow may look at a line. It crashes where NULL stands in place of an object."""
    is_object = line.lstrip().startswith(b"{") and _NO_OBJECT.search(line) is None
    return is_object and _fault(line) is None


def _depth(line: bytes) -> int:
    depth = deepest = 0
    for mark in _MARKS.findall(_STRINGS.sub(b"", line)):
        depth += 1 if mark in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NO_OBJECT = re.compile(rb"}\s*null")
_MARKS = re.compile(rb"[\[\]{}]")


def _table(
    lines: list[bytes], fields: Sequence[Field], keys: Keys, units: TimeUnits
) -> pa.Table | None:
    """All of the lines, or None."""
    counted = [field.name for field in fields if units.get(field.name) is not None]
    plain = [(keys[field.name], _as_read(field.type)) for field in fields]
    if not counted:
        return _read(lines, pa.schema(plain))
    for type in (BIGINT, DOUBLE):  # numbers since the epoch may have fractions
        columns = {name: plain[n] for n, name in enumerate(field.name for field in fields)}
        columns |= {name: (keys[name], type) for name in counted}
        table = _read(lines, pa.schema(list(columns.values())))
        if table is not None:
            return table if all(_is_exact(table.column(keys[name])) for name in counted) else None
    return None


def _is_exact(numbers: pa.ChunkedArray) -> bool:
    """Whether whole numbers are the same as in the text."""
    return numbers.type != DOUBLE or (pc.max(pc.abs(numbers)).as_py() or 0) < 2**53


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
    return table if table.num_rows == len(lines) else None  # a line may have two objects


def _as_read(type: pa.DataType) -> pa.DataType:
    """Arrow reads no dates in JSON: they are texts first."""
    if is_array(type):
        return pa.list_(_as_read(type.value_type))
    if is_struct(type):
        return pa.struct([(field.name, _as_read(field.type)) for field in type])
    return STRING if type == DATE else type


# --- line by line -----------------------------------------------------------------------------


def _one_by_one(
    stream: Stream, lines: list[bytes], numbers: Ints, keys: Keys, place: Place
) -> Checked:
    constants = {name: value.as_py() for name, value in place.constants.items()}
    rows = [_row(line, keys, constants) for line in lines]
    for field in place.read_fields(stream):
        if field.type in (DATE, TIMESTAMP) or is_decimal(field.type):
            _read_texts(rows, field, stream.units.get(field.name))
    records, bad = typed_rows(stream, rows)
    told = [place.complaint(int(numbers[row.number - 1]), row.message) for row in bad]
    return Checked(
        records,
        [BadRow(row.number, text, row.help) for row, text in zip(bad, told, strict=True)],
    )


def _row(line: bytes, keys: Keys, constants: Mapping[str, Any]) -> dict[str, Any] | Unreadable:
    fault = _fault(line)
    if fault is not None:
        return Unreadable(f"{_shown(line)} {fault}")
    if not line.lstrip().startswith(b"{"):
        return Unreadable(f"{_shown(line)} is not an object", "write one object per line")
    try:
        found = json.loads(line)
    except ValueError as error:
        return Unreadable(f"{_shown(line)} is not JSON: {error}")
    return {**{name: found.get(key) for name, key in keys.items()}, **constants}


def _shown(line: bytes) -> str:
    return brief(line.strip().decode(errors="replace"))


def _read_texts(rows: list[dict[str, Any] | Unreadable], field: Field, unit: int | None) -> None:
    """Replace the texts of a column by what they stand for, if they do; a DECIMAL may be a number
    as well."""
    kinds = (str, int, float) if is_decimal(field.type) else (str,)
    having = [row for row in rows if isinstance(row, dict) and type(row[field.name]) in kinds]
    texts = pa.array([str(row[field.name]) for row in having], STRING)
    found = from_text(texts, field.type, unit)
    for row, value in zip(having, found.values.to_pylist(), strict=True):
        if value is not None:
            row[field.name] = value
