"""SQL types: a column's type is a pyarrow `DataType`, one of the few named here.

Input data of any other Arrow type is converted to one of them (`from_arrow`). The rules between
types are those of Spark's ANSI mode.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from millstream.model.names import KEYWORDS, quote

NULL = pa.null()
BOOLEAN = pa.bool_()
INT = pa.int32()
BIGINT = pa.int64()
REAL = pa.float32()
DOUBLE = pa.float64()
STRING = pa.string()
BINARY = pa.binary()
DATE = pa.date32()
TIMESTAMP = pa.timestamp("us")
INTERVAL = pa.duration("us")

MAX_PRECISION = 38
MIN_FRACTION = 6  # the minimum scale when a decimal result would not fit

MICROS_PER_SECOND = 1_000_000
MICROS_PER_DAY = 86_400 * MICROS_PER_SECOND

# The range of timestamps and dates, which all systems can show: the years 1 to 9999.
FIRST_TIMESTAMP, LAST_TIMESTAMP = -62_135_596_800_000_000, 253_402_300_799_999_999
FIRST_DATE, LAST_DATE = FIRST_TIMESTAMP // MICROS_PER_DAY, LAST_TIMESTAMP // MICROS_PER_DAY

# Every integral type is a decimal of this many digits.
_DIGITS = {INT: 10, BIGINT: 20}
_BITS = {INT: 32, BIGINT: 64}


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """DECIMAL(precision, scale)."""
    return pa.decimal128(precision, scale)


# --- kinds of types ---------------------------------------------------------------------------


def is_integral(type: pa.DataType) -> bool:
    return type in (INT, BIGINT)


def is_floating(type: pa.DataType) -> bool:
    return type in (REAL, DOUBLE)


def is_decimal(type: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(type))


def is_numeric(type: pa.DataType) -> bool:
    return is_integral(type) or is_floating(type) or is_decimal(type)


def is_array(type: pa.DataType) -> bool:
    return bool(pa.types.is_list(type))


def is_struct(type: pa.DataType) -> bool:
    return bool(pa.types.is_struct(type))


def is_atomic(type: pa.DataType) -> bool:
    """Neither an array, nor a struct, nor the type of a bare NULL."""
    return not (is_array(type) or is_struct(type) or type == NULL)


def integral_range(type: pa.DataType) -> tuple[int, int]:
    """The smallest and the largest value of INT or BIGINT."""
    bits = _BITS[type]
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def stored_range(type: pa.DataType) -> tuple[int, int]:
    """The smallest and the largest value of a type whose values are integers."""
    if type == DATE:
        return FIRST_DATE, LAST_DATE
    if type == TIMESTAMP:
        return FIRST_TIMESTAMP, LAST_TIMESTAMP
    return integral_range(INT if type == INT else BIGINT)


def as_decimal(type: pa.DataType) -> pa.DataType:
    """The decimal type that holds every value of an integral or decimal type."""
    return decimal_type(_DIGITS[type], 0) if type in _DIGITS else type


# --- names ------------------------------------------------------------------------------------

_NAMES = {
    NULL: "VOID",
    BOOLEAN: "BOOLEAN",
    INT: "INT",
    BIGINT: "BIGINT",
    REAL: "REAL",
    DOUBLE: "DOUBLE",
    STRING: "STRING",
    BINARY: "BINARY",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
    INTERVAL: "INTERVAL DAY TO SECOND",
}


def sql_name(type: pa.DataType) -> str:
    """The type in SQL; `sql.type_syntax` parses it.

    >>> sql_name(pa.list_(decimal_type(10, 2)))
    'ARRAY<DECIMAL(10, 2)>'
    """
    if is_decimal(type):
        return f"DECIMAL({type.precision}, {type.scale})"
    if is_array(type):
        return f"ARRAY<{sql_name(type.value_type)}>"
    if is_struct(type):
        return f"STRUCT<{', '.join(_field_name(f.name) + ': ' + sql_name(f.type) for f in type)}>"
    return _NAMES[type]


def _field_name(name: str) -> str:
    """Quoted, unless it can only be a name."""
    bare = name.isascii() and name.isidentifier() and name.upper() not in KEYWORDS
    return name if bare else quote(name)


# --- types of input data ----------------------------------------------------------------------

_FROM_ARROW: list[tuple[Callable[[pa.DataType], bool], pa.DataType]] = [
    (pa.types.is_null, NULL),
    (pa.types.is_boolean, BOOLEAN),
    (pa.types.is_int64, BIGINT),
    (pa.types.is_uint32, BIGINT),
    (pa.types.is_uint64, decimal_type(20, 0)),
    (pa.types.is_integer, INT),
    (pa.types.is_float64, DOUBLE),
    (pa.types.is_floating, REAL),
    (pa.types.is_string, STRING),
    (pa.types.is_large_string, STRING),
    (pa.types.is_binary, BINARY),
    (pa.types.is_large_binary, BINARY),
    (pa.types.is_fixed_size_binary, BINARY),
    (pa.types.is_date, DATE),
    (pa.types.is_timestamp, TIMESTAMP),
    (pa.types.is_duration, INTERVAL),
]

# The oldest supported version of pyarrow does not have views.
for _is_view, _type in (("is_string_view", STRING), ("is_binary_view", BINARY)):
    if hasattr(pa.types, _is_view):
        _FROM_ARROW.append((getattr(pa.types, _is_view), _type))

_LISTS = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")


def from_arrow(type: pa.DataType) -> pa.DataType:
    """Our type for data of any Arrow type; raises ValueError if there is none."""
    if pa.types.is_dictionary(type):
        return from_arrow(type.value_type)
    if pa.types.is_decimal(type) and type.precision <= MAX_PRECISION and type.scale >= 0:
        return decimal_type(type.precision, type.scale)
    if is_any_list(type):
        return pa.list_(from_arrow(type.value_type))
    if is_struct(type):
        return pa.struct([pa.field(field.name, from_arrow(field.type)) for field in type])
    for matches, ours in _FROM_ARROW:
        if matches(type):
            return ours
    raise ValueError(f'data of the Arrow type "{type}" is not supported')


def is_any_list(type: pa.DataType) -> bool:
    return any(bool(getattr(pa.types, name)(type)) for name in _LISTS if hasattr(pa.types, name))


# --- rules between types ----------------------------------------------------------------------


def common_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The type two operands are both cast to: Spark's ANSI least common type, or None.

    Used by comparisons, CASE, COALESCE, IN, arrays and set operations. A string takes the type of
    the other side, so that a column is never compared as text by accident.
    """
    if a == b or b == NULL:
        return a
    if a == NULL:
        return b
    if STRING in (a, b):
        return _common_with_string(b if a == STRING else a)
    if is_numeric(a) and is_numeric(b):
        return _common_numeric(a, b)
    if {a, b} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    if is_array(a) and is_array(b):
        element = common_type(a.value_type, b.value_type)
        return None if element is None else pa.list_(element)
    if is_struct(a) and is_struct(b):
        return _common_struct(a, b)
    return None


def _common_with_string(other: pa.DataType) -> pa.DataType | None:
    if is_integral(other):
        return BIGINT
    if is_numeric(other):
        return DOUBLE
    return other if is_atomic(other) and other != INTERVAL else None


def _common_numeric(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    if is_floating(a) or is_floating(b):
        return DOUBLE  # REAL with REAL was handled before
    if is_integral(a) and is_integral(b):
        return BIGINT
    return wider_decimal(as_decimal(a), as_decimal(b))


def wider_decimal(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """The decimal type that holds the values of both, without fraction digits beyond 38."""
    scale = max(a.scale, b.scale)
    precision = max(a.precision - a.scale, b.precision - b.scale) + scale
    if precision <= MAX_PRECISION:
        return decimal_type(precision, scale)
    return decimal_type(MAX_PRECISION, max(0, scale - (precision - MAX_PRECISION)))


def _common_struct(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    if [field.name for field in a] != [field.name for field in b]:
        return None
    types = [common_type(left.type, right.type) for left, right in zip(a, b, strict=True)]
    if any(type is None for type in types):
        return None
    return pa.struct([pa.field(f.name, type) for f, type in zip(a, types, strict=True)])


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether CAST(source AS target) is allowed in ANSI mode."""
    if source in (target, NULL):
        return True
    if target == STRING:
        return True
    if is_array(source) or is_struct(source) or not is_atomic(target):
        return _can_cast_parts(source, target, can_cast)
    if source == STRING:
        return True
    if is_numeric(source):
        return is_numeric(target) or target in (BOOLEAN, TIMESTAMP)
    if source == BOOLEAN:
        return is_numeric(target)
    if source == TIMESTAMP:
        return is_numeric(target) or target == DATE
    return bool(source == DATE and target == TIMESTAMP)


def implicitly_castable(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a function that wants `target` takes `source` without a CAST.

    These are the store assignment rules: any number for a number (checked for overflow), any
    atomic value for a string, a string for any atomic value, a date for a timestamp and back.
    """
    if source in (target, NULL):
        return True
    if is_atomic(source) and is_atomic(target):
        return (
            STRING in (source, target)
            or (is_numeric(source) and is_numeric(target))
            or {source, target} == {DATE, TIMESTAMP}
        )
    return _can_cast_parts(source, target, implicitly_castable)


def _can_cast_parts(
    source: pa.DataType, target: pa.DataType, rule: Callable[[pa.DataType, pa.DataType], bool]
) -> bool:
    if is_array(source) and is_array(target):
        return rule(source.value_type, target.value_type)
    if is_struct(source) and is_struct(target) and source.num_fields == target.num_fields:
        return all(rule(a.type, b.type) for a, b in zip(source, target, strict=True))
    return False
