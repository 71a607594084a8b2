"""Values for columns of type TIMESTAMP, DATE and INTERVAL.

A bare number is rejected: it could count seconds, milliseconds or days. It is accepted for a time
column whose declaration names the unit (`ORDERED BY ts UNIT SECONDS`): it counts units since
1970-01-01 00:00:00 UTC and is rounded to microseconds.
"""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.model import types
from millstream.model.errors import DataError, brief
from millstream.model.time import MICROSECONDS
from millstream.model.types import (
    DATE,
    FIRST_TIMESTAMP,
    INTERVAL,
    LAST_TIMESTAMP,
    STRING,
    TIMESTAMP,
    sql_name,
)
from millstream.physical.expressions.by_distinct import exact_cast
from millstream.physical.expressions.casts import cast_kernel
from millstream.physical.expressions.vector import Mask, Vector

# For each TIMESTAMP time column: the unit of numbers in microseconds, or None if numbers are
# rejected.
TimeUnits: TypeAlias = Mapping[str, "int | None"]
NO_UNITS: TimeUnits = MappingProxyType({})

_TEMPORAL = (TIMESTAMP, DATE, INTERVAL)
_NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"

_WHOLE = r"^-?[0-9]{1,18}$"
_CONTEXT = Context(prec=60, rounding=ROUND_HALF_EVEN)


def is_temporal(type: pa.DataType) -> bool:
    """Whether values of a type are timestamps, dates or intervals."""
    return type in _TEMPORAL


def is_number(value: object) -> bool:
    return isinstance(value, numbers.Number) and not isinstance(value, bool | np.timedelta64)


def mixes(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether an Arrow type has numbers where the wanted type has times, or the reverse, at any
    nesting level."""
    if pa.types.is_dictionary(given):
        return mixes(given.value_type, wanted)
    if types.is_any_list(given) and types.is_array(wanted):
        return mixes(given.value_type, wanted.value_type)
    if types.is_struct(given) and types.is_struct(wanted):
        pairs = zip(given, wanted, strict=False)
        return any(mixes(theirs.type, ours.type) for theirs, ours in pairs)
    if is_temporal(wanted):
        return is_numeric_arrow(given)
    return types.is_numeric(wanted) and bool(pa.types.is_temporal(given))


def is_numeric_arrow(type: pa.DataType) -> bool:
    is_plain = pa.types.is_integer(type) or pa.types.is_floating(type)
    return bool(is_plain or pa.types.is_decimal(type))


def misfit(value: object, wanted: pa.DataType, column: str, units: TimeUnits) -> DataError | None:
    """Why a number is not accepted for a time column; None if that is not the problem."""
    if not is_temporal(wanted) or not is_number(value):
        return None
    unit = units.get(column)
    if unit is None:
        message = f'{brief(value)} in column "{column}" is a number, not {sql_name(wanted)}'
        return DataError(message, help=remedy(wanted, column in units))
    years = "is not within the years 1 to 9999"
    return DataError(f'{brief(value)} {unit_name(unit)} in column "{column}" {years}')


def remedy(wanted: pa.DataType, is_time: bool) -> str:
    """The help text for numbers in a time column."""
    if wanted == DATE:
        return "pass a date or ISO text"
    if wanted == INTERVAL:
        return "pass a timedelta"
    if is_time:
        return (
            "pass a datetime or ISO text, or declare what numbers count: ORDERED BY column UNIT "
            'SECONDS, or unit="seconds"'
        )
    return (
        "pass a datetime or ISO text, or declare the column BIGINT and convert it with "
        "timestamp_seconds, timestamp_millis or timestamp_micros"
    )


def unit_name(unit: int) -> str:
    """The name of a unit given in microseconds."""
    return next(name.lower() + "s" for name, size in MICROSECONDS.items() if size == unit)


# --- values of Python -------------------------------------------------------------------------


def with_texts_read(values: Sequence[Any], type: pa.DataType, unit: int | None) -> list[Any]:
    """Python values as Arrow accepts them for TIMESTAMP or DATE: converts ISO strings and, for a
    TIMESTAMP, dates and numbers of a unit. ValueError for anything else."""
    texts = [value for value in values if isinstance(value, str)]
    read: Iterator[Any] = iter(())
    if texts:
        found = from_text(pa.array(texts, STRING), type, unit)
        if found.failed is not None:
            raise ValueError(texts[int(np.argmax(found.failed))])
        read = iter(found.values.to_pylist())
    if type == TIMESTAMP:
        values = [_moment(value, unit) for value in values]
    return [next(read) if isinstance(value, str) else value for value in values]


def _moment(value: Any, unit: int | None) -> Any:
    if is_number(value):
        if unit is None:
            raise ValueError(value)
        return microseconds(value, unit)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime.combine(value, datetime.time())
    return value


def microseconds(value: Any, unit: int) -> int:
    """A number of units as microseconds; ValueError beyond the years 1 to 9999."""
    try:
        if isinstance(value, numbers.Integral):
            micros = int(value) * unit
        elif isinstance(value, Decimal):
            micros = int(_CONTEXT.multiply(value, unit).to_integral_value())
        else:
            micros = round(float(value) * unit)
    except (TypeError, OverflowError, ArithmeticError):  # a complex number, an infinity, a NaN
        raise ValueError(value) from None
    if not FIRST_TIMESTAMP <= micros <= LAST_TIMESTAMP:
        raise ValueError(value)
    return micros


# --- columns ----------------------------------------------------------------------------------


def from_numbers(array: pa.Array, unit: int) -> Vector:
    """Numbers of a unit since the epoch as TIMESTAMP; those beyond the years 1 to 9999 fail."""
    if pa.types.is_decimal(array.type) or pa.types.is_uint64(array.type):
        return _each(array, unit)
    if pa.types.is_floating(array.type):
        found = pc.fill_null(array.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False) * unit
        failed = ~((found >= FIRST_TIMESTAMP) & (found <= LAST_TIMESTAMP))
        micros = np.rint(np.where(failed, 0.0, found)).astype(np.int64)
    else:
        given = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        failed = (given < -(-FIRST_TIMESTAMP // unit)) | (given > LAST_TIMESTAMP // unit)
        micros = np.where(failed, 0, given) * unit
    return _vector(micros, failed, array)


def _each(array: pa.Array, unit: int) -> Vector:
    micros, failed = np.zeros(len(array), np.int64), np.zeros(len(array), np.bool_)
    for index, value in enumerate(array.to_pylist()):
        try:
            micros[index] = 0 if value is None else microseconds(value, unit)
        except ValueError:
            failed[index] = True
    return _vector(micros, failed, array)


def _vector(micros: np.ndarray, failed: Mask, given: pa.Array) -> Vector:
    missing = failed | pc.is_null(given).to_numpy(zero_copy_only=False)
    values = pa.array(micros, pa.int64(), mask=missing).cast(TIMESTAMP)
    return Vector(values, failed if failed.any() else None)


def from_text(texts: pa.Array, type: pa.DataType, unit: int | None = None) -> Vector:
    """Strings as CAST reads them; with a unit, numeric strings count units since the epoch."""
    if type == TIMESTAMP and unit is not None:
        counts = pc.fill_null(pc.match_substring_regex(texts, _NUMBER), False)
        if pc.any(counts).as_py():
            return _numbers_or_moments(texts, counts, unit)
    if type == TIMESTAMP:  # times without a zone are UTC
        texts = pc.replace_substring_regex(texts, r"([0-9])Z$", r"\1")
    kernel = cast_kernel(STRING, type) or exact_cast(STRING, type)
    return kernel(texts)


def _numbers_or_moments(texts: pa.Array, counts: pa.Array, unit: int) -> Vector:
    """A column of strings of which some are numbers."""
    digits = pc.utf8_ltrim(pc.utf8_trim_whitespace(pc.if_else(counts, texts, None)), "+")
    is_whole = pc.fill_null(pc.match_substring_regex(digits, _WHOLE), False)
    whole = from_numbers(pc.if_else(is_whole, digits, None).cast(pa.int64()), unit)
    broken = from_numbers(pc.if_else(is_whole, None, digits).cast(pa.float64()), unit)
    others = from_text(pc.if_else(counts, None, texts), TIMESTAMP)
    masks = [part.failed for part in (whole, broken, others) if part.failed is not None]
    values = pc.coalesce(whole.values, broken.values, others.values)
    return Vector(values, np.logical_or.reduce(masks) if masks else None)
