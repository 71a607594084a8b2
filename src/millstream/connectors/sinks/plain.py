"""Converts values for other systems: to JSON, to text, to timestamps with a time zone."""

from __future__ import annotations

import base64
import datetime
import json
import math
from decimal import Decimal
from json.encoder import encode_basestring

import pyarrow as pa
import pyarrow.compute as pc

from millstream.model import types

_SECOND = datetime.timedelta(seconds=1)


def json_text(value: object) -> str:
    """A value as JSON: decimals with all digits; timestamps, dates and numbers that JSON lacks as
    strings, bytes in base64.

    >>> json_text({"a": [1, None, Decimal("1.50")], "b": float("nan"), "c": b"x"})
    '{"a":[1,null,1.50],"b":"NaN","c":"eA=="}'
    """
    match value:
        case str():
            return encode_basestring(value)
        case None | bool() | int():
            return json.dumps(value)
        case float():
            return repr(value) if math.isfinite(value) else f'"{_name(value)}"'
        case Decimal():
            return format(value, "f")
        case dict():
            inner = (f"{json_text(key)}:{json_text(part)}" for key, part in value.items())
            return "{" + ",".join(inner) + "}"
        case list() | tuple():
            return "[" + ",".join(map(json_text, value)) + "]"
    return encode_basestring(_text(value))


def _name(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _text(value: object) -> str:
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case datetime.timedelta():
            return interval_text(value)
        case datetime.datetime():
            return value.isoformat(timespec="microseconds")
        case datetime.date():
            return value.isoformat()
    raise AssertionError(f"no type has values such as {value!r}")


def interval_text(value: datetime.timedelta) -> str:
    """In seconds, in ISO 8601 format.

    >>> interval_text(datetime.timedelta(days=-1, microseconds=5))
    'PT-86399.999995S'
    """
    sign, size = ("-", -value) if value < datetime.timedelta() else ("", value)
    whole, rest = divmod(size, _SECOND)
    return f"PT{sign}{whole}.{rest.microseconds:06d}S"


def json_lines(table: pa.Table) -> pa.ChunkedArray:
    """Each row as a JSON object; converted by column where Arrow can."""
    parts: list[object] = []
    for index, name in enumerate(table.column_names):
        parts += ["," if index else "{", encode_basestring(name), ":"]
        parts.append(_json_column(table.column(index)))
    return pc.binary_join_element_wise(*parts, "}\n", "")


def _json_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    type = column.type
    if types.is_integral(type) or types.is_decimal(type) or type == types.BOOLEAN:
        return pc.fill_null(column.cast(pa.string()), "null")
    if type == types.TIMESTAMP:
        moments = pc.replace_substring(column.cast(pa.string()), " ", "T")
        return pc.fill_null(pc.binary_join_element_wise('"', moments, '"', ""), "null")
    shown = encode_basestring if type == types.STRING else json_text
    given = ["null" if value is None else shown(value) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(given, pa.string())])


def texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Each value as text: arrays and structs as JSON, bytes in base64, intervals in seconds."""
    shown = json_text if pa.types.is_nested(column.type) else _text
    given = [None if value is None else shown(value) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(given, pa.string())])


def needs_text(type: pa.DataType) -> bool:
    """Whether CSV needs the values converted to text."""
    return bool(pa.types.is_nested(type)) or type in (types.BINARY, types.INTERVAL)


def zoned(table: pa.Table) -> pa.Table:
    """Timestamps with the zone UTC: Spark would read zoneless ones as local time."""
    fields = [
        field.with_type(pa.timestamp("us", "UTC")) if field.type == types.TIMESTAMP else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
