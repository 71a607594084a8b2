"""Functions of dates and timestamps.

Arrow's calendar is faster than NumPy's but ends with the year 32767.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.logical.functions import Signature
from millstream.model.types import (
    BIGINT,
    DATE,
    INT,
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    TIMESTAMP,
    decimal_type,
    is_integral,
)
from millstream.physical.expressions import decimals
from millstream.physical.expressions.arithmetic import KERNELS as _ARITHMETIC
from millstream.physical.expressions.arithmetic import Builder
from millstream.physical.expressions.casts import cast_kernel, scaled_to_timestamp
from millstream.physical.expressions.nodes import Constant, Kernel, Node
from millstream.physical.expressions.vector import (
    Vector,
    failing,
    from_numbers,
    null_where,
    numbers,
    validity,
)

_MICROS_PER_MINUTE = 60 * MICROS_PER_SECOND
_MICROS_PER_HOUR = 60 * _MICROS_PER_MINUTE


# --- parts ------------------------------------------------------------------------------------


def _dates(days: Any) -> Any:
    return days.astype(np.int64).astype("datetime64[D]")


def _years(days: Any) -> Any:
    return _dates(days).astype("datetime64[Y]").astype(np.int64) + 1970


def _months(days: Any) -> Any:
    """Counted from January 1970."""
    return _dates(days).astype("datetime64[M]").astype(np.int64)


def _first_of_month(months: Any) -> Any:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _day(days: Any) -> Any:
    return days - _first_of_month(_months(days)) + 1


def _day_of_year(days: Any) -> Any:
    months = _months(days)
    return days - _first_of_month(months - months % 12) + 1


def _week_of_year(days: Any) -> Any:
    """ISO 8601: a week belongs to the year of its Thursday."""
    wide = days.astype(np.int64)
    return (_day_of_year(wide - (wide + 3) % 7 + 3) - 1) // 7 + 1


_DATE_PARTS: dict[str, Callable[[Any], Any]] = {
    "year": _years,
    "quarter": lambda days: _months(days) % 12 // 3 + 1,
    "month": lambda days: _months(days) % 12 + 1,
    "day": _day,
    "weekday": lambda days: (days.astype(np.int64) + 3) % 7,
    "dayofweek": lambda days: (days.astype(np.int64) + 4) % 7 + 1,
    "dayofyear": _day_of_year,
    "weekofyear": _week_of_year,
}

_TIME_PARTS: dict[str, Callable[[Any], Any]] = {
    "hour": lambda micros: micros % MICROS_PER_DAY // _MICROS_PER_HOUR,
    "minute": lambda micros: micros % _MICROS_PER_HOUR // _MICROS_PER_MINUTE,
    "second": lambda micros: micros % _MICROS_PER_MINUTE // MICROS_PER_SECOND,
}

_COUNTS: dict[str, Callable[[Any], Any]] = {
    "unix_seconds": lambda micros: micros // MICROS_PER_SECOND,
    "unix_millis": lambda micros: micros // 1000,
    "unix_micros": lambda micros: micros,
}


_ARROW_PARTS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "day": pc.day,
    "weekday": pc.day_of_week,
    "dayofyear": pc.day_of_year,
    "weekofyear": pc.iso_week,
}

_FAR = 10_000_000  # days, well within Arrow's calendar


def _date_part(name: str) -> Builder:
    by_numpy = _DATE_PARTS[name]
    by_arrow = _ARROW_PARTS.get(name)

    def kernel(values: pa.Array) -> Vector:
        days = numbers(values)
        if by_arrow is None or (len(days) and (days.min() < -_FAR or days.max() > _FAR)):
            return Vector(from_numbers(by_numpy(days), INT, values))
        return Vector(by_arrow(values).cast(INT))

    return lambda signature, arguments: kernel


def _computed(compute: Callable[[Any], Any], result: pa.DataType) -> Builder:
    def kernel(values: pa.Array) -> Vector:
        return Vector(from_numbers(compute(numbers(values)), result, values))

    return lambda signature, arguments: kernel


def _extract_second(signature: Signature, arguments: Sequence[Node]) -> Kernel:
    def kernel(values: pa.Array) -> Vector:
        micros = numbers(values) % _MICROS_PER_MINUTE
        return Vector(decimals.from_unscaled(micros, decimal_type(8, 6), validity(values)))

    return kernel


# --- truncation -------------------------------------------------------------------------------


def _to_months(count: int) -> Callable[[Any], Any]:
    """The first instant of a group of `count` months."""

    def truncate(micros: Any) -> Any:
        months = _months(micros // MICROS_PER_DAY)
        return _first_of_month(months - months % count) * MICROS_PER_DAY

    return truncate


def _to_week(micros: Any) -> Any:
    days = micros // MICROS_PER_DAY
    return (days - (days + 3) % 7) * MICROS_PER_DAY


def _to_multiple(size: int) -> Callable[[Any], Any]:
    return lambda micros: micros - micros % size


_TRUNCATIONS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("year", "yyyy", "yy"), _to_months(12)),
    "quarter": _to_months(3),
    **dict.fromkeys(("month", "mon", "mm"), _to_months(1)),
    "week": _to_week,
    **dict.fromkeys(("day", "dd"), _to_multiple(MICROS_PER_DAY)),
    "hour": _to_multiple(_MICROS_PER_HOUR),
    "minute": _to_multiple(_MICROS_PER_MINUTE),
    "second": _to_multiple(MICROS_PER_SECOND),
    "millisecond": _to_multiple(1000),
}

_MONTHLY = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
}


def _date_trunc(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    unit, instant = arguments
    if not isinstance(unit, Constant) or isinstance(instant, Constant):
        return None
    word = str(unit.plain).lower()
    truncate = _TRUNCATIONS.get(word)
    if truncate is None:
        return None
    monthly = _MONTHLY.get(word)

    def kernel(_: pa.Scalar, values: pa.Array) -> Vector:
        micros = numbers(values)
        least, most = (int(micros.min()), int(micros.max())) if len(micros) else (0, 0)
        if monthly and least // MICROS_PER_DAY > -_FAR and most // MICROS_PER_DAY < _FAR:
            return Vector(pc.floor_temporal(values, unit=monthly))
        return Vector(from_numbers(truncate(micros), TIMESTAMP, values))

    return kernel


def _trunc(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    """Of dates: a whole number of months, or weeks."""
    days, unit = arguments
    if not isinstance(unit, Constant) or isinstance(days, Constant):
        return None
    word = str(unit.plain).lower()
    months = {"year": 12, "quarter": 3, "month": 1}.get(_MONTHLY.get(word, ""))
    if months is None and word != "week":
        return None

    def kernel(values: pa.Array, _: pa.Scalar) -> Vector:
        day = numbers(values).astype(np.int64)
        if months is None:
            return Vector(from_numbers(day - (day + 3) % 7, DATE, values))
        month = _months(day)
        return Vector(from_numbers(_first_of_month(month - month % months), DATE, values))

    return kernel


# --- arithmetic and conversion ----------------------------------------------------------------


def _date_sub(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    return _ARITHMETIC["-"](signature, arguments)


def _date_add(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    return _ARITHMETIC["+"](signature, arguments)


def _datediff(signature: Signature, arguments: Sequence[Node]) -> Kernel:
    def kernel(end: pa.Array, start: pa.Array) -> Vector:
        days = numbers(end).astype(np.int64) - numbers(start)
        bad = (days < -(2**31)) | (days >= 2**31)
        return failing(from_numbers(days, INT, end, start), bad, end, start)

    return kernel


def _to_date(signature: Signature, arguments: Sequence[Node]) -> Kernel:
    return Vector


def _timestamp_seconds(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    """As CAST, but NULL for values that are not finite."""
    type = signature.arguments[0]
    convert = cast_kernel(type, TIMESTAMP)
    if convert is None or is_integral(type):
        return convert

    def kernel(values: pa.Array) -> Vector:
        assert convert is not None
        return convert(null_where(values, ~np.isfinite(numbers(values))))

    return kernel


def _timestamp_of(micros: int) -> Builder:
    """A count of units of `micros` microseconds as a timestamp."""
    kernel = scaled_to_timestamp(micros)
    return lambda signature, arguments: kernel


KERNELS: dict[str, Builder] = {
    **{name: _date_part(name) for name in _DATE_PARTS},
    **{name: _computed(part, INT) for name, part in _TIME_PARTS.items()},
    **{name: _computed(count, BIGINT) for name, count in _COUNTS.items()},
    "extract_second": _extract_second,
    "date_trunc": _date_trunc,
    "trunc": _trunc,
    "date_add": _date_add,
    "date_sub": _date_sub,
    "datediff": _datediff,
    "to_date": _to_date,
    "timestamp_seconds": _timestamp_seconds,
    "timestamp_millis": _timestamp_of(1000),
    "timestamp_micros": _timestamp_of(1),
}
