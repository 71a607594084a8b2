"""Ranges of integer values, to prove that a sum does not overflow.

They exist for types with integer values: INT and BIGINT, and DATE, TIMESTAMP and INTERVAL as counts
of days and microseconds. Functions of ranges return None if an argument has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

from millstream.model.types import BIGINT, DATE, INT, INTERVAL, TIMESTAMP, stored_range


class Range(NamedTuple):
    """From the minimum to the maximum, inclusive."""

    least: int
    most: int

    def within(self, other: Range) -> bool:
        return other.least <= self.least and self.most <= other.most

    def times(self, factor: int) -> Range:
        return Range(self.least * factor, self.most * factor)

    def over(self, divisor: int) -> Range:
        return Range(self.least // divisor, self.most // divisor)


def has_range(type: pa.DataType) -> bool:
    """Whether the values are integers, or counts of days or microseconds."""
    return type in (INT, BIGINT, DATE, TIMESTAMP, INTERVAL)


def range_of_type(type: pa.DataType) -> Range:
    return Range(*stored_range(type))


def hull(*ranges: Range | None) -> Range | None:
    """The smallest range that contains all of them."""
    known = [each for each in ranges if each is not None]
    if len(known) < len(ranges):
        return None
    return Range(min(each.least for each in known), max(each.most for each in known))


RangeOf = Callable[..., Range | None]


def _of_integers(compute: Callable[..., Range]) -> RangeOf:
    """The range of exact results, if all arguments are integers."""

    def result(*ranges: Range | None) -> Range | None:
        return None if None in ranges else compute(*ranges)

    return result


@_of_integers
def sum_of(a: Range, b: Range) -> Range:
    return Range(a.least + b.least, a.most + b.most)


@_of_integers
def difference_of(a: Range, b: Range) -> Range:
    return Range(a.least - b.most, a.most - b.least)


@_of_integers
def size_of(a: Range) -> Range:
    return Range(0, max(abs(a.least), abs(a.most)))


@_of_integers
def product_of(a: Range, b: Range) -> Range:
    products = [x * y for x in a for y in b]
    return Range(min(products), max(products))


@_of_integers
def remainder_of(a: Range, b: Range) -> Range:
    most = max(abs(b.least), abs(b.most), 1) - 1
    return Range(max(-most, min(a.least, 0)), min(most, max(a.most, 0)))


@_of_integers
def quotient_of(a: Range, b: Range) -> Range:
    if b.least > 0:
        return Range(min(a.least, 0), max(a.most, 0))
    size = max(abs(a.least), abs(a.most))
    return Range(-size, size)


@_of_integers
def negative_of(a: Range) -> Range:
    return Range(-a.most, -a.least)
