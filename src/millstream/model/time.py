"""Time: an int64 count of chronons, and durations in the time domain of a stream."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

INFINITY = 2**63 - 1

# The limit of instants and durations in data and statements. Sums of a few of them stay within
# int64.
FARTHEST = 2**62
LONGEST = 2**60

ALWAYS = -FARTHEST - 1  # the start of rows that have always been valid: before all others

MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}


def unit_named(word: str) -> str | None:
    """The unit that a word names: `minutes` and `MINUTE` are MINUTE; None if it is not a unit."""
    singular = word.upper().removesuffix("S")
    return singular if singular in MICROSECONDS else None


def plus(instant: int, distance: int) -> int:
    """`instant + distance`, never beyond INFINITY."""
    return min(instant + distance, INFINITY)


@dataclass(frozen=True)
class TimeDomain:
    """The time domain of a stream: its type, and the length of a chronon in microseconds.

    `microseconds` is None for raw units, where only bare numbers are durations.
    """

    type: pa.DataType
    microseconds: int | None

    def describe(self) -> str:
        if pa.types.is_timestamp(self.type):
            return "TIMESTAMP time"
        if self.microseconds is None:
            return "BIGINT time in raw units"
        return f"BIGINT time in {self.units.upper()}"

    @property
    def units(self) -> str:
        """The name of the unit of a chronon."""
        if self.microseconds is None:
            return "time units"
        unit = next(unit for unit, size in MICROSECONDS.items() if size == self.microseconds)
        return f"{unit.lower()}s"

    def chronons(self, amount: Fraction, unit: str | None) -> int | None:
        """The length of `amount unit` in chronons; None if that is not a whole number.

        A bare number counts chronons. A unit on raw time must be refused by the caller.
        """
        if unit is not None:
            assert self.microseconds is not None, "units on raw time are refused before"
            amount = amount * MICROSECONDS[unit] / self.microseconds
        return int(amount) if amount.denominator == 1 else None

    def format(self, chronons: int) -> str:
        """A duration as text, in the largest unit that divides it."""
        if self.microseconds is None:
            return str(chronons)
        total = chronons * self.microseconds
        for unit, size in reversed(MICROSECONDS.items()):
            if total % size == 0:
                count = total // size
                return f"{count} {unit}" if count == 1 else f"{count} {unit}S"
        raise AssertionError("a microsecond divides everything")


TIMESTAMP_TIME = TimeDomain(pa.timestamp("us"), 1)
RAW_TIME = TimeDomain(pa.int64(), None)

# The time domain of a table without times: it takes that of the streams it is joined with.
ANY_TIME = TimeDomain(pa.null(), None)

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def microseconds_of(moment: datetime.datetime) -> int:
    """Microseconds since the epoch; a datetime without a zone counts as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)
