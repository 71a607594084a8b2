"""Durations as users write them: `10 MINUTES`, or a bare number of time units."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction

import pyarrow as pa

from millstream.model.errors import BindError, ParseError, Span
from millstream.model.time import LONGEST, TimeDomain, unit_named

UNITS = "MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS or WEEKS"

_WRITTEN = re.compile(
    r"\s*(?P<sign>-?)\s*(?P<number>(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)\s*(?P<unit>[a-z]*)\s*",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True)
class Duration:
    """`10 MINUTES`, or a bare number of raw time units (unit None)."""

    amount: Fraction
    unit: str | None
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        # Amounts are parsed from decimal notation, so they have an exact decimal.
        with localcontext(prec=100):
            exact = Decimal(self.amount.numerator) / Decimal(self.amount.denominator)
        text = format(exact, "f")
        return text if self.unit is None else f"{text} {self.unit}"


def parse_duration(text: str, span: Span | None = None) -> Duration:
    """A duration from a string, such as `delay="5 seconds"` in a Python call."""
    written = _WRITTEN.fullmatch(text)
    unit = None if written is None else unit_named(written["unit"])
    if written is None or (written["unit"] and unit is None):
        raise ParseError(f'"{text}" is not a duration', span, f"write a number and {UNITS}")
    return Duration(exact_number(written["sign"] + written["number"], span), unit, span)


def exact_number(text: str, span: Span | None = None) -> Fraction:
    """The exact value of a number in decimal notation."""
    try:
        exact = Decimal(text)
    except ArithmeticError:
        raise ParseError(f'"{text}" is not a number', span) from None
    if len(text) > 60 or not -30 < exact.adjusted() < 30:
        raise ParseError("the number is out of range", span)
    return Fraction(exact)


def chronons(duration: Duration, domain: TimeDomain, what: str) -> int:
    """The length of a duration in this time domain: a positive whole number of chronons."""
    if duration.unit is not None and domain.microseconds is None:
        raise BindError(
            f"{what} has a unit, but the stream's BIGINT time has none",
            duration.span,
            "declare it with ORDERED BY column UNIT MILLISECONDS, or write a bare number",
        )
    if duration.amount <= 0:
        raise BindError(f"{what} must be positive", duration.span)
    if duration.unit is None and pa.types.is_timestamp(domain.type):
        raise BindError(
            f"{what} needs a unit, because the stream has TIMESTAMP time",
            duration.span,
            f"write {duration} SECONDS, or another of {UNITS}",
        )
    length = domain.chronons(duration.amount, duration.unit)
    if length is None:
        raise BindError(f"{what} is not a whole number of {domain.units}", duration.span)
    if length > LONGEST:
        raise BindError(f"{what} is too long", duration.span, "write UNBOUNDED")
    return length


def chronons_or_zero(duration: Duration, domain: TimeDomain, what: str) -> int:
    """Like `chronons`, but the duration may be zero."""
    if duration.amount < 0:
        raise BindError(f"{what} cannot be negative", duration.span)
    return 0 if duration.amount == 0 else chronons(duration, domain, what)


def length(value: str | int | None, domain: TimeDomain, what: str) -> int | None:
    """The chronons of a duration given to a Python call; None stays None."""
    if value is None:
        return None
    return chronons_or_zero(parse_duration(str(value)), domain, what)
