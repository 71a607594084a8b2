"""Functions of dates and timestamps. Weeks begin on Monday; all clocks are UTC."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from millstream.logical.functions.arithmetic import fit
from millstream.logical.functions.casts import EXACT, cast, cast_error, holds, to_string
from millstream.logical.functions.civil import civil_from_days, days_from_civil
from millstream.logical.functions.function import (
    EvaluationError,
    Function,
    Signature,
    Types,
    argument_error,
    check_count,
    function,
)
from millstream.model import types
from millstream.model.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    STRING,
    TIMESTAMP,
    decimal_type,
)
from millstream.model.values import is_nan

_MICROS_PER_HOUR = 3600 * MICROS_PER_SECOND
_MICROS_PER_MINUTE = 60 * MICROS_PER_SECOND

# --- parts of a date --------------------------------------------------------------------------


def _year(days: int) -> int:
    return civil_from_days(days)[0]


def _month(days: int) -> int:
    return civil_from_days(days)[1]


def _day(days: int) -> int:
    return civil_from_days(days)[2]


def _quarter(days: int) -> int:
    return (_month(days) + 2) // 3


def _weekday(days: int) -> int:
    """Monday is 0; 1970-01-01 was a Thursday."""
    return (days + 3) % 7


def _dayofweek(days: int) -> int:
    """Sunday is 1."""
    return (days + 4) % 7 + 1


def _dayofyear(days: int) -> int:
    return days - days_from_civil(_year(days), 1, 1) + 1


def _weekofyear(days: int) -> int:
    """ISO 8601: a week belongs to the year of its Thursday."""
    thursday = days - _weekday(days) + 3
    return (_dayofyear(thursday) - 1) // 7 + 1


_DATE_PARTS: dict[str, Callable[[int], int]] = {
    "year": _year,
    "quarter": _quarter,
    "month": _month,
    "day": _day,
    "weekday": _weekday,
    "dayofweek": _dayofweek,
    "dayofyear": _dayofyear,
    "weekofyear": _weekofyear,
}


# --- parts of a time --------------------------------------------------------------------------


def _hour(micros: int) -> int:
    return micros % MICROS_PER_DAY // _MICROS_PER_HOUR


def _minute(micros: int) -> int:
    return micros % _MICROS_PER_HOUR // _MICROS_PER_MINUTE


def _second(micros: int) -> int:
    return micros % _MICROS_PER_MINUTE // MICROS_PER_SECOND


def _extract_second(micros: int) -> Decimal:
    """With its fraction, as EXTRACT(SECOND FROM …) gives it."""
    return Decimal(micros % _MICROS_PER_MINUTE).scaleb(-6)


# --- truncation -------------------------------------------------------------------------------


def _month_start(months: int) -> Callable[[int], int]:
    """The first day of the group of so many months that a day lies in."""

    def start(days: int) -> int:
        year, month, _ = civil_from_days(days)
        return days_from_civil(year, month - (month - 1) % months, 1)

    return start


def _week_start(days: int) -> int:
    return days - _weekday(days)


_DATE_UNITS: dict[str, Callable[[int], int]] = {
    **dict.fromkeys(("year", "yyyy", "yy"), _month_start(12)),
    "quarter": _month_start(3),
    **dict.fromkeys(("month", "mon", "mm"), _month_start(1)),
    "week": _week_start,
}

_TIME_UNITS = {
    "day": MICROS_PER_DAY,
    "dd": MICROS_PER_DAY,
    "hour": _MICROS_PER_HOUR,
    "minute": _MICROS_PER_MINUTE,
    "second": MICROS_PER_SECOND,
    "millisecond": 1000,
    "microsecond": 1,
}


def _date_trunc(unit: str, micros: int) -> int | None:
    """NULL for a unit that does not exist."""
    word = unit.lower()
    if word in _DATE_UNITS:
        start = _DATE_UNITS[word](micros // MICROS_PER_DAY) * MICROS_PER_DAY
    elif word in _TIME_UNITS:
        start = micros - micros % _TIME_UNITS[word]
    else:
        return None
    result: int = fit(
        start, TIMESTAMP, lambda: f"date_trunc({unit}, {to_string(micros, TIMESTAMP)})"
    )
    return result


def _trunc(days: int, unit: str) -> int | None:
    """Of a date; NULL for a unit that does not exist, or is less than a week."""
    start = _DATE_UNITS.get(unit.lower())
    return None if start is None else start(days)


# --- arithmetic and conversion ----------------------------------------------------------------


def _date_add(days: int, count: int) -> int:
    result = days + count
    if not holds(DATE, result):
        raise EvaluationError("date overflow")
    return result


def _date_sub(days: int, count: int) -> int:
    return _date_add(days, -count)


def _datediff(end: int, start: int) -> int:
    def expression() -> str:
        return f"datediff({to_string(end, DATE)}, {to_string(start, DATE)})"

    result: int = fit(end - start, INT, expression)
    return result


def _from_units(micros_per_unit: int) -> Callable[[int], int]:
    def convert(count: int) -> int:
        micros = count * micros_per_unit
        if not holds(TIMESTAMP, micros):
            raise EvaluationError("timestamp overflow")
        return micros

    return convert


def _timestamp_seconds_signature(given: Types) -> Signature:
    check_count("timestamp_seconds", given, 1, 1)
    type = DOUBLE if given[0] == types.NULL else given[0]
    if not types.is_numeric(type):
        raise argument_error("timestamp_seconds", 1, type, "a number")
    return Signature((type,), TIMESTAMP)


def _timestamp_seconds(signature: Signature, seconds: Any) -> int | None:
    type = signature.arguments[0]
    if is_nan(seconds) or seconds in (float("inf"), -float("inf")):
        return None
    if types.is_decimal(type) and EXACT.remainder(EXACT.scaleb(seconds, 6), 1):
        raise cast_error(seconds, type, TIMESTAMP)
    result: int = cast(seconds, type, TIMESTAMP)
    return result


def _now() -> int:
    return time.time_ns() // 1000


def _today() -> int:
    return _now() // MICROS_PER_DAY


FUNCTIONS = [
    *(function(name, INT, [DATE], part) for name, part in _DATE_PARTS.items()),
    function("hour", INT, [TIMESTAMP], _hour),
    function("minute", INT, [TIMESTAMP], _minute),
    function("second", INT, [TIMESTAMP], _second),
    function("extract_second", decimal_type(8, 6), [TIMESTAMP], _extract_second),
    function("date_trunc", TIMESTAMP, [STRING, TIMESTAMP], _date_trunc),
    function("trunc", DATE, [DATE, STRING], _trunc),
    function("date_add", DATE, [DATE, INT], _date_add),
    function("date_sub", DATE, [DATE, INT], _date_sub),
    function("datediff", INT, [DATE, DATE], _datediff),
    function("to_date", DATE, [DATE], lambda days: days),
    function("unix_seconds", BIGINT, [TIMESTAMP], lambda micros: micros // MICROS_PER_SECOND),
    function("unix_millis", BIGINT, [TIMESTAMP], lambda micros: micros // 1000),
    function("unix_micros", BIGINT, [TIMESTAMP], lambda micros: micros),
    Function("timestamp_seconds", _timestamp_seconds_signature, _timestamp_seconds),
    function("timestamp_millis", TIMESTAMP, [BIGINT], _from_units(1000)),
    function("timestamp_micros", TIMESTAMP, [BIGINT], _from_units(1)),
    function("current_timestamp", TIMESTAMP, [], _now, deterministic=False),
    function("current_date", DATE, [], _today, deterministic=False),
]
