"""Rows of JSON, an object a line. A key that is not there is NULL; other keys are passed over.

Arrow reads many lines at once, or refuses them all because of one; those lines are then read by
Python, which is slower and finds the one.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow

from millstream.catalog import Stream
from millstream.connectors.parts import Part, Place, checked
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


def keys_in(line: bytes, fields: Sequence[Field]) -> Keys:
    """The keys as one line has them: the name itself, or the only one that differs in case."""
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    keys = list(found) if isinstance(found, dict) else []
    return {field.name: _key(keys, field.name) for field in fields}


def _key(keys: list[str], name: str) -> str:
    alike = [key for key in keys if key.lower() == name.lower()]
    return alike[0] if name not in keys and len(alike) == 1 else name


def json_rows(
    stream: Stream, lines: Sequence[bytes], first: int, keys: Keys, place: Place
) -> Checked:
    """The rows of some lines, the first of which has the number `first`."""
    numbers = np.array([first + i for i, line in enumerate(lines) if line.strip()], np.int64)
    full = [line for line in lines if line.strip()]
    fields = place.read_fields(stream)
    table = _table(full, fields, keys, stream.units)
    if table is None:
        return _one_by_one(stream, full, numbers, keys, place)
    named = table.rename_columns([field.name for field in fields])
    return checked(stream, Part(named, numbers), place)


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
    try:
        found = json.loads(line)
    except ValueError as error:  # also where it is not UTF-8
        return Unreadable(f"{_shown(line)} is not JSON: {error}")
    if not isinstance(found, dict):
        return Unreadable(f"{_shown(line)} is not an object")
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
