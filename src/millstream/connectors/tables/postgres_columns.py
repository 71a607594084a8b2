"""The columns of a PostgreSQL table, and the conversion of their values from text.

Values are read as the text that PostgreSQL writes under `SETTINGS`, so whole tables from COPY and
changes from logical decoding have the same form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from millstream.connectors.tables.columns import SourceTable
from millstream.logical.plan import Field
from millstream.model import types

SETTINGS = """SET client_encoding = 'UTF8'; SET TimeZone = 'UTC'; SET DateStyle = 'ISO';
SET IntervalStyle = 'iso_8601'; SET extra_float_digits = 1; SET bytea_output = 'hex'"""

# The types all of whose values fit a type of Millstream.
_FITTING: dict[pa.DataType, tuple[str, ...]] = {
    types.BOOLEAN: ("boolean",),
    types.INT: ("smallint", "integer"),
    types.BIGINT: ("smallint", "integer", "bigint"),
    types.REAL: ("real",),
    types.DOUBLE: ("real", "double precision", "smallint", "integer"),
    types.STRING: ("text", "character varying", "character", "name", "uuid", "json", "jsonb"),
    types.BINARY: ("bytea",),
    types.DATE: ("date",),
    types.TIMESTAMP: ("timestamp with time zone", "timestamp without time zone"),
    types.INTERVAL: ("interval",),
}
_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}

_INTERVAL = re.compile(
    r"P(?:(?P<days>-?\d+)D)?"
    r"(?:T(?:(?P<hours>-?\d+)H)?(?:(?P<minutes>-?\d+)M)?(?:(?P<seconds>-?[\d.]+)S)?)?"
)
_MICROS = {"days": 86_400_000_000, "hours": 3_600_000_000, "minutes": 60_000_000}


@dataclass(frozen=True)
class PostgresColumn:
    """A column of PostgreSQL. `identity`: it belongs to the replica identity; `generated`: computed
    from others, so changes do not contain it; `oid` and `modifier`: those of its type; `readable`:
    the role may read it."""

    name: str
    type: str
    is_enum: bool
    generated: bool
    identity: bool
    oid: int
    modifier: int
    readable: bool


def fits(column: PostgresColumn, type: pa.DataType) -> bool:
    """Whether a column can be read as a type without loss. For a numeric without precision this is
    not known: its values are checked."""
    name = re.sub(r"\(.*?\)", "", column.type)
    if types.is_decimal(type):
        return _fits_decimal(column.type, type)
    return name in _FITTING.get(type, ()) or (type == types.STRING and column.is_enum)


def _fits_decimal(found: str, type: pa.DataType) -> bool:
    limits = re.fullmatch(r"numeric\((\d+),(-?\d+)\)", found)
    if limits is None:
        digits = _DIGITS.get(found, 0 if found == "numeric" else types.MAX_PRECISION + 1)
        return bool(digits <= type.precision - type.scale)
    precision, scale = int(limits[1]), int(limits[2])
    return bool(scale <= type.scale and precision - scale <= type.precision - type.scale)


def check_types(origin: SourceTable, columns: Sequence[PostgresColumn]) -> None:
    for field, column in zip(origin.table.columns, columns, strict=True):
        if not fits(column, field.type):
            raise origin.wrong_type(field, column.type)


def typed(origin: SourceTable, columns: Sequence[pa.Array]) -> pa.Table:
    """Converts PostgreSQL text to the declared types."""
    fields = origin.table.columns
    found = [
        origin.converted(field, column, _conversion(field))
        for field, column in zip(fields, columns, strict=True)
    ]
    return pa.table(found, schema=origin.schema)


def _conversion(field: Field) -> Callable[[pa.Array], pa.Array]:
    """From text as bytes."""
    special: dict[pa.DataType, Callable[[pa.Array], pa.Array]] = {
        types.BOOLEAN: lambda texts: pc.equal(texts, "t"),
        types.BINARY: _from_hex,
        types.TIMESTAMP: _timestamps,
        types.INTERVAL: _intervals,
    }
    convert = special.get(field.type, lambda texts: texts.cast(field.type))
    return lambda raw: convert(raw.cast(types.STRING))


def _from_hex(texts: pa.Array) -> pa.Array:
    found = [None if text is None else bytes.fromhex(text[2:]) for text in texts.to_pylist()]
    return pa.array(found, types.BINARY)


def _timestamps(texts: pa.Array) -> pa.Array:
    """With and without a zone, which is UTC; infinity becomes the last timestamp."""
    last = pa.scalar(types.LAST_TIMESTAMP).cast(types.TIMESTAMP).cast(types.STRING)
    texts = pc.if_else(pc.equal(texts, "infinity"), last, texts)
    return pc.replace_substring(texts, "+00", "").cast(types.TIMESTAMP)


def _intervals(texts: pa.Array) -> pa.Array:
    found = [None if text is None else _micros(text) for text in texts.to_pylist()]
    return pa.array(found, types.BIGINT).cast(types.INTERVAL)


def _micros(text: str) -> int:
    """The microseconds of an ISO 8601 interval. A day has 24 hours; months are not accepted.

    >>> _micros("P1DT-2H0.000005S")
    79200000005
    """
    parts = _INTERVAL.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    micros = sum(int(parts[name] or 0) * size for name, size in _MICROS.items())
    whole, _, fraction = (parts["seconds"] or "0").partition(".")
    size = abs(int(whole)) * 1_000_000 + int(fraction.ljust(6, "0") or 0)
    return micros + (-size if whole.startswith("-") else size)
