"""The proleptic Gregorian calendar as integer arithmetic, for years of any size.

Days are counted from 1970-01-01, microseconds from its midnight in UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from millstream.model.types import MICROS_PER_DAY, MICROS_PER_SECOND

_DAYS_PER_ERA = 146_097  # 400 years
_EPOCH_SHIFT = 719_468  # from 0000-03-01 to 1970-01-01

_DATE = re.compile(
    r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL
)
_TIMESTAMP = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?\s*(\S+)?)?)?)?",
    re.ASCII,
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII)
_INTERVAL = re.compile(
    r"(?:INTERVAL\s+([+-])?')?([+-])?0*(\d{1,9}) (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?"
    r"(?:'\s+DAY\s+TO\s+SECOND)?",
    re.ASCII | re.IGNORECASE,
)


def days_from_civil(year: int, month: int, day: int) -> int:
    """The day number of a date."""
    year -= month <= 2
    year_of_era = year % 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return year // 400 * _DAYS_PER_ERA + day_of_era - _EPOCH_SHIFT


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day number."""
    era, day_of_era = divmod(days + _EPOCH_SHIFT, _DAYS_PER_ERA)
    leaps = day_of_era // 1460 - day_of_era // 36_524 + day_of_era // 146_096
    year_of_era = (day_of_era - leaps) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = (shifted_month + 2) % 12 + 1
    return era * 400 + year_of_era + (month <= 2), month, day


def format_date(days: int) -> str:
    year, month, day = civil_from_days(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def format_timestamp(micros: int) -> str:
    days, rest = divmod(micros, MICROS_PER_DAY)
    return f"{format_date(days)} {_format_time(rest)}"


def _format_time(micros: int) -> str:
    seconds, fraction = divmod(micros, MICROS_PER_SECOND)
    minutes, second = divmod(seconds, 60)
    text = f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"
    return text + f".{fraction:06d}".rstrip("0").rstrip(".")


def format_interval(micros: int) -> str:
    days, rest = divmod(abs(micros), MICROS_PER_DAY)
    sign = "-" if micros < 0 else ""
    return f"INTERVAL '{sign}{days} {_format_time(rest)}' DAY TO SECOND"


def parse_date(text: str) -> int | None:
    """The day number of `yyyy[-m[-d[ …]]]`, or None."""
    match = _DATE.fullmatch(text)
    return _days(*match.groups()) if match else None


def _days(sign: str, year: str, month: str | None, day: str | None) -> int | None:
    y, m, d = int(sign + year), int(month or 1), int(day or 1)
    if not 1 <= m <= 12 or d < 1:
        return None
    days = days_from_civil(y, m, d)
    return days if civil_from_days(days) == (y, m, d) else None


def parse_timestamp(text: str) -> int | None:
    """The instant of `yyyy[-m[-d[ h[:m[:s[.f]]][zone]]]]`, UTC where no zone is given, or None."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    sign, year, month, day, hour, minute, second, fraction, zone = match.groups()
    days = _days(sign, year, month, day)
    time = _time_of_day(int(hour or 0), int(minute or 0), int(second or 0), fraction or "")
    if days is None or time is None:
        return None
    local = days * MICROS_PER_DAY + time
    return local if zone is None else _to_utc(local, zone)


def _time_of_day(hour: int, minute: int, second: int, fraction: str) -> int | None:
    if hour > 23 or minute > 59 or second > 59:
        return None
    seconds = (hour * 60 + minute) * 60 + second
    return seconds * MICROS_PER_SECOND + int(fraction[:6].ljust(6, "0"))


def _to_utc(local: int, zone: str) -> int | None:
    if zone.upper() in ("Z", "UTC", "GMT", "UT"):
        return local
    match = _OFFSET.fullmatch(zone)
    if match is None:
        return _to_utc_by_region(local, zone)
    sign, hours, minutes, seconds = match.groups()
    offset = (int(hours) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    if offset > 18 * 3600:
        return None
    return local - (offset if sign == "+" else -offset) * MICROS_PER_SECOND


def _to_utc_by_region(local: int, region: str) -> int | None:
    """None for a region that does not exist, and outside the years from 1 to 9999."""
    try:
        zone = ZoneInfo(region)
        wall = datetime(1970, 1, 1) + timedelta(microseconds=local)
        moment = wall.replace(tzinfo=zone).astimezone(UTC)
    except (KeyError, ValueError, OSError, OverflowError):
        return None
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def parse_interval(text: str) -> int | None:
    """The length of `d h:m:s[.f]`, bare or as an INTERVAL … DAY TO SECOND literal; None for
    anything else, and for a billion days or more."""
    match = _INTERVAL.fullmatch(text)
    if match is None:
        return None
    outer, inner, days, hour, minute, second, fraction = match.groups()
    time = _time_of_day(int(hour), int(minute), int(second), fraction or "")
    if time is None:
        return None
    sign = -1 if (outer == "-") != (inner == "-") else 1
    return sign * (int(days) * MICROS_PER_DAY + time)
