"""CAST as in Spark's ANSI mode: a value that does not fit is an error, never NULL."""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from millstream.logical.functions import civil
from millstream.logical.functions.function import EvaluationError
from millstream.model import types
from millstream.model.types import MICROS_PER_DAY, MICROS_PER_SECOND, sql_name
from millstream.model.values import NAN, round_real

# Exact for sums and products of two decimals; a quotient is cut beyond all significant digits.
EXACT = decimal.Context(prec=120, rounding=decimal.ROUND_HALF_UP)

_SPACE = "".join(map(chr, range(0x21)))
_BLANK = _SPACE + "\x7f"
_INTEGER = re.compile(r"([+-]?)0*(\d{1,19})", re.ASCII)  # a BIGINT has at most 19 digits
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_ANY_DIGITS = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_INFINITY = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_TRUE = {"t", "true", "y", "yes", "1"}
_FALSE = {"f", "false", "n", "no", "0"}
_BEYOND_BIGINT = 2**63  # the double nearest to the largest BIGINT, which is out of range
_MOST_EXPONENT = 2**31  # of a decimal in Java


def cast(value: Any, source: pa.DataType, target: pa.DataType) -> Any:
    """The value of type `source` as one of type `target`.

    >>> cast("1.5e3", types.STRING, types.DOUBLE)
    1500.0
    """
    if value is None or source == target:
        return value
    assert types.can_cast(source, target), (source, target)
    if types.is_decimal(target):
        return _to_decimal(value, source, target)
    if types.is_array(target):
        return tuple(cast(element, source.value_type, target.value_type) for element in value)
    if types.is_struct(target):
        fields = zip(value, source, target, strict=True)
        return tuple(cast(part, old.type, new.type) for part, old, new in fields)
    return _CASTS[target](value, source, target)


def try_cast(value: Any, source: pa.DataType, target: pa.DataType) -> Any:
    """Like `cast`, but NULL where that fails; in an array or a struct, only the part that fails.

    >>> try_cast("x", types.STRING, types.INT)
    """
    if value is not None and types.is_array(target) and types.is_array(source):
        return tuple(try_cast(element, source.value_type, target.value_type) for element in value)
    if value is not None and types.is_struct(target) and types.is_struct(source):
        fields = zip(value, source, target, strict=True)
        return tuple(try_cast(part, old.type, new.type) for part, old, new in fields)
    try:
        return cast(value, source, target)
    except EvaluationError:
        return None


def cast_error(value: Any, source: pa.DataType, target: pa.DataType) -> EvaluationError:
    return EvaluationError(f'cannot cast "{to_string(value, source)}" to {sql_name(target)}')


def holds(type: pa.DataType, number: int) -> bool:
    """Whether a number lies in the range of a type whose values are integers."""
    least, most = types.stored_range(type)
    return bool(least <= number <= most)


def out_of_years(text: str) -> EvaluationError:
    """A valid date or timestamp that is out of range here."""
    return EvaluationError(f"{text} is not within the years 1 to 9999")


def fit_decimal(value: Decimal, type: pa.DataType) -> Decimal:
    """The value rounded half up to the scale of the type; an error beyond its precision.

    There is no negative zero.
    """
    try:
        rounded = value.quantize(Decimal(1).scaleb(-type.scale), context=EXACT)
    except decimal.InvalidOperation:
        raise _decimal_overflow(value, type) from None
    if len(rounded.as_tuple().digits) > type.precision and rounded:
        raise _decimal_overflow(value, type)
    return rounded if rounded else rounded.copy_abs()


def _decimal_overflow(value: Decimal, type: pa.DataType) -> EvaluationError:
    return EvaluationError(f"{value} does not fit {sql_name(type)}")


def _trimmed(text: str) -> str:
    """Strip what Spark considers blank. Java, which parses fractions, strips less."""
    return text.strip(_BLANK)


def _to_boolean(value: Any, source: pa.DataType, target: pa.DataType) -> bool:
    if source != types.STRING:
        return bool(value != 0)
    word = _trimmed(value).lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise cast_error(value, source, target)


def _to_integral(value: Any, source: pa.DataType, target: pa.DataType) -> int:
    number = _whole(value, source)
    if number is None or not holds(target, number):
        raise cast_error(value, source, target)
    return number


def _whole(value: Any, source: pa.DataType) -> int | None:
    """The value truncated towards zero; None if it is not a number, or too large for any type."""
    if source == types.STRING:
        match = _INTEGER.fullmatch(_trimmed(value))
        return int(match[1] + match[2]) if match else None
    if source == types.TIMESTAMP:
        return int(value // MICROS_PER_SECOND)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value == _BEYOND_BIGINT and isinstance(value, float):
        return _BEYOND_BIGINT - 1
    return int(value)


def _to_double(value: Any, source: pa.DataType, target: pa.DataType) -> float:
    if source == types.STRING:
        number = parse_double(value)
        if number is None:
            raise cast_error(value, source, target)
        return number
    if source == types.TIMESTAMP:
        return float(value) / MICROS_PER_SECOND  # rounded twice, as in Spark
    return float(value)


def parse_double(text: str) -> float | None:
    """A number in Java's syntax, including infinity and NaN; None for anything else."""
    text = text.strip(_SPACE)
    if text.lower() == "nan":
        return NAN
    if _INFINITY.fullmatch(text):
        return float(text)
    number = text[:-1] if text[-1:] in ("d", "D", "f", "F") else text
    return float(number) if _NUMBER.fullmatch(number) else None


def _to_real(value: Any, source: pa.DataType, target: pa.DataType) -> float:
    return round_real(_to_double(value, source, target))


def _to_decimal(value: Any, source: pa.DataType, target: pa.DataType) -> Decimal | None:
    """NaN and the infinities become NULL, without an error."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    number = _exact(value, source)
    if number is None:
        raise cast_error(value, source, target)
    return fit_decimal(number, target)


def _exact(value: Any, source: pa.DataType) -> Decimal | None:
    if source == types.STRING:
        return _parse_decimal(value.strip(_SPACE))
    if source == types.TIMESTAMP:
        return Decimal(value).scaleb(-6)
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    return Decimal(value)


def _parse_decimal(text: str) -> Decimal | None:
    """A decimal in Java's syntax: digits of any script, and an exponent of 32 bits."""
    if not _ANY_DIGITS.fullmatch(text):
        return None
    try:
        number = Decimal(text)
    except decimal.InvalidOperation:  # an exponent that not even Python holds
        return None
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return number if -_MOST_EXPONENT < exponent <= _MOST_EXPONENT else None


def _to_date(value: Any, source: pa.DataType, target: pa.DataType) -> int:
    if source == types.TIMESTAMP:
        return int(value // MICROS_PER_DAY)
    return _parsed(civil.parse_date, value, target)


def _to_timestamp(value: Any, source: pa.DataType, target: pa.DataType) -> int:
    if source == types.STRING:
        return _parsed(civil.parse_timestamp, value, target)
    if source == types.DATE:
        micros = value * MICROS_PER_DAY
    elif isinstance(value, float) and math.isfinite(value * MICROS_PER_SECOND):
        micros = int(value * MICROS_PER_SECOND)
    else:
        seconds = _exact(value, source)
        if seconds is None:
            raise cast_error(value, source, target)
        micros = int(seconds.scaleb(6, context=EXACT))
    if not holds(target, micros):
        raise out_of_years(f"{to_string(value, source)} as a TIMESTAMP")
    return int(micros)


def _to_interval(value: Any, source: pa.DataType, target: pa.DataType) -> int:
    return _parsed(civil.parse_interval, value, target)


def _parsed(parse: Callable[[str], int | None], text: str, target: pa.DataType) -> int:
    result = parse(_trimmed(text))
    if result is None:
        raise cast_error(text, types.STRING, target)
    if not holds(target, result):
        if target == types.INTERVAL:
            raise cast_error(text, types.STRING, target)
        raise out_of_years(f'"{text}"')
    return result


def _to_binary(value: Any, source: pa.DataType, target: pa.DataType) -> bytes:
    return bytes(value.encode())


def _to_string(value: Any, source: pa.DataType, target: pa.DataType) -> str:
    return to_string(value, source)


_CASTS: dict[pa.DataType, Callable[[Any, pa.DataType, pa.DataType], Any]] = {
    types.BOOLEAN: _to_boolean,
    types.INT: _to_integral,
    types.BIGINT: _to_integral,
    types.REAL: _to_real,
    types.DOUBLE: _to_double,
    types.DATE: _to_date,
    types.TIMESTAMP: _to_timestamp,
    types.INTERVAL: _to_interval,
    types.BINARY: _to_binary,
    types.STRING: _to_string,
}


def to_string(value: Any, type: pa.DataType) -> str:
    """The text of a value in CAST(… AS STRING) and error messages."""
    if value is None:
        return "null"
    if types.is_array(type):
        return "[" + ", ".join(to_string(element, type.value_type) for element in value) + "]"
    if types.is_struct(type):
        parts = zip(value, type, strict=True)
        return "{" + ", ".join(to_string(part, field.type) for part, field in parts) + "}"
    if types.is_decimal(type):
        return f"{value:f}"
    return _FORMATS.get(type, str)(value)


def _format_double(value: float) -> str:
    return _java_float(value, repr(value))


def _format_real(value: float) -> str:
    """The shortest digits that identify this float32."""
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    shortest = next((t for t in texts if round_real(float(t)) == value), repr(value))
    return _java_float(value, shortest)


def _java_float(value: float, text: str) -> str:
    """Java's layout: plain from 1E-3 to 1E7, else one digit, point, digits, E, exponent."""
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = f"{Decimal(text):f}"
        return plain if "." in plain else plain + ".0"
    sign, digits, exponent = Decimal(text).normalize().as_tuple()
    assert isinstance(exponent, int)
    first, *rest = map(str, digits)
    power = exponent + len(rest)
    return f"{'-' if sign else ''}{first}.{''.join(rest) or '0'}E{power}"


_FORMATS: dict[pa.DataType, Callable[[Any], str]] = {
    types.BOOLEAN: lambda value: "true" if value else "false",
    types.REAL: _format_real,
    types.DOUBLE: _format_double,
    types.DATE: civil.format_date,
    types.TIMESTAMP: civil.format_timestamp,
    types.INTERVAL: civil.format_interval,
    types.BINARY: lambda value: value.decode(errors="replace"),
}
