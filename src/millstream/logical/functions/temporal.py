"""Functions of dates and timestamps. Weeks begin on Monday; all clocks are UTC."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from millstream.logical.functions.arithmetic import fit, fitting
from millstream.logical.functions.casts import EXACT, cast, cast_error, holds, to_string
from millstream.logical.functions.civil import civil_from_days, days_from_civil
from millstream.logical.functions.facts import MAYBE_NULL, PLAIN, Argument, FunctionFacts
from millstream.logical.functions.function import (
    EvaluationError,
    Function,
    Signature,
    Types,
    argument_error,
    check_count,
    function,
)
from millstream.logical.functions.ranges import Range, difference_of, range_of_type, sum_of
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


_DATE_PARTS: list[tuple[str, Callable[[int], int], Range | None]] = [
    ("year", _year, None),
    ("quarter", _quarter, Range(1, 4)),
    ("month", _month, Range(1, 12)),
    ("day", _day, Range(1, 31)),
    ("weekday", _weekday, Range(0, 6)),
    ("dayofweek", _dayofweek, Range(1, 7)),
    ("dayofyear", _dayofyear, Range(1, 366)),
    ("weekofyear", _weekofyear, Range(1, 53)),
]


# --- parts of a time --------------------------------------------------------------------------


def _hour(micros: int) -> int:
    return micros % MICROS_PER_DAY // _MICROS_PER_HOUR


def _minute(micros: int) -> int:
    return micros % _MICROS_PER_HOUR // _MICROS_PER_MINUTE


def _second(micros: int) -> int:
    return micros % _MICROS_PER_MINUTE // MICROS_PER_SECOND


_TIME_PARTS: list[tuple[str, Callable[[int], int], Range | None]] = [
    ("hour", _hour, Range(0, 23)),
    ("minute", _minute, Range(0, 59)),
    ("second", _second, Range(0, 59)),
]


def _extract_second(micros: int) -> Decimal:
    """With its fraction, as in EXTRACT(SECOND FROM …)."""
    return Decimal(micros % _MICROS_PER_MINUTE).scaleb(-6)


# --- truncation -------------------------------------------------------------------------------


def _month_start(months: int) -> Callable[[int], int]:
    """The first day of the group of `months` months that contains a day."""

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
    """TRUNC of a date; NULL for a unit that does not exist or is less than a week."""
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


def _from_units(name: str, micros_per_unit: int) -> Function:
    def convert(count: int) -> int:
        micros = count * micros_per_unit
        if not holds(TIMESTAMP, micros):
            raise EvaluationError("timestamp overflow")
        return micros

    facts = FunctionFacts(_within_years(micros_per_unit), null_if=any, steady=True)
    return function(name, TIMESTAMP, [BIGINT], convert, facts=facts)


def _within_years(micros_per_unit: int) -> Callable[..., bool]:
    def total(result: pa.DataType, count: Argument) -> bool:
        if count.range is None:
            return False
        return count.range.times(micros_per_unit).within(range_of_type(TIMESTAMP))

    return total


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


_ADDED = FunctionFacts(total=fitting(sum_of), null_if=any, range=sum_of, steady=True)
_SUBTRACTED = FunctionFacts(
    total=fitting(difference_of), null_if=any, range=difference_of, steady=True
)


FUNCTIONS = [
    *(function(n, INT, [DATE], f, facts=replace(PLAIN, range=r)) for n, f, r in _DATE_PARTS),
    *(function(n, INT, [TIMESTAMP], f, facts=replace(PLAIN, range=r)) for n, f, r in _TIME_PARTS),
    function("extract_second", decimal_type(8, 6), [TIMESTAMP], _extract_second, facts=PLAIN),
    function("date_trunc", TIMESTAMP, [STRING, TIMESTAMP], _date_trunc, facts=MAYBE_NULL),
    function("trunc", DATE, [DATE, STRING], _trunc, facts=MAYBE_NULL),
    function("date_add", DATE, [DATE, INT], _date_add, facts=_ADDED),
    function("date_sub", DATE, [DATE, INT], _date_sub, facts=_SUBTRACTED),
    function("datediff", INT, [DATE, DATE], _datediff, facts=_SUBTRACTED),
    function("to_date", DATE, [DATE], lambda days: days, facts=PLAIN),
    function("unix_seconds", BIGINT, [TIMESTAMP], lambda t: t // MICROS_PER_SECOND, facts=PLAIN),
    function("unix_millis", BIGINT, [TIMESTAMP], lambda micros: micros // 1000, facts=PLAIN),
    function("unix_micros", BIGINT, [TIMESTAMP], lambda micros: micros, facts=PLAIN),
    Function(
        *("timestamp_seconds", _timestamp_seconds_signature, _timestamp_seconds),
        facts=FunctionFacts(_within_years(MICROS_PER_SECOND), steady=True),
    ),
    _from_units("timestamp_millis", 1000),
    _from_units("timestamp_micros", 1),
    function("current_timestamp", TIMESTAMP, [], _now, deterministic=False),
    function("current_date", DATE, [], _today, deterministic=False),
]
