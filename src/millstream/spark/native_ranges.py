"""Between which integers the values of an expression lie: a proof that a sum does not overflow.

Of types whose values are integers: INT and BIGINT, and DATE, TIMESTAMP and INTERVAL as counts of
days and microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from millstream.logical.expressions import Call, Cast, Expression, Literal
from millstream.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    INT,
    INTERVAL,
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    TIMESTAMP,
    stored_range,
)


class Range(NamedTuple):
    """From the least to the most, both included."""

    least: int
    most: int

    def within(self, other: Range) -> bool:
        return other.least <= self.least and self.most <= other.most

    def times(self, factor: int) -> Range:
        return Range(self.least * factor, self.most * factor)

    def over(self, divisor: int) -> Range:
        return Range(self.least // divisor, self.most // divisor)


_OF_INTEGERS = (INT, BIGINT, DATE, TIMESTAMP, INTERVAL)

_SIZE = Range(0, 2**31 - 1)
_OF_FUNCTIONS = {
    "quarter": Range(1, 4),
    "month": Range(1, 12),
    "day": Range(1, 31),
    "weekday": Range(0, 6),
    "dayofweek": Range(1, 7),
    "dayofyear": Range(1, 366),
    "weekofyear": Range(1, 53),
    "hour": Range(0, 23),
    "minute": Range(0, 59),
    "second": Range(0, 59),
    "length": _SIZE,
    "position": _SIZE,
    "size": _SIZE,
    "crc32": Range(0, 2**32 - 1),
}


def has_range(type: pa.DataType) -> bool:
    return type in _OF_INTEGERS


def range_of_type(type: pa.DataType) -> Range:
    return Range(*stored_range(type))


def value_range(expression: Expression) -> Range:
    """Where the values of an expression of such a type lie, those apart for which it fails."""
    most = range_of_type(expression.type)
    match expression:
        case Literal(value=int() as value):
            return Range(value, value)
        case Cast(operand=operand, type=target):
            found = _of_cast(operand, target)
        case Call():
            found = _of_call(expression)
        case _:
            return most
    return found if found is not None and found.within(most) else most


def _of_cast(operand: Expression, target: pa.DataType) -> Range | None:
    if operand.type == BOOLEAN:
        return Range(0, 1)
    if not has_range(operand.type):
        return None
    given = value_range(operand)
    match operand.type, target:
        case (t, d) if t == TIMESTAMP and d == DATE:
            return given.over(MICROS_PER_DAY)
        case (t, d) if t == TIMESTAMP and d != TIMESTAMP:
            return given.over(MICROS_PER_SECOND)
        case (d, t) if d == DATE and t == TIMESTAMP:
            return given.times(MICROS_PER_DAY)
        case (n, t) if n != TIMESTAMP and t == TIMESTAMP:
            return given.times(MICROS_PER_SECOND)
    return given


def _of_call(call: Call) -> Range | None:
    if call.function in _OF_FUNCTIONS:
        return _OF_FUNCTIONS[call.function]
    if call.function in ("coalesce", "greatest", "least"):
        return _hull(call.arguments)
    if call.function in ("if", "case"):
        values = call.arguments[1::2]
        return _hull(values + call.arguments[-1:] if len(call.arguments) % 2 else values)
    return exact_range(call)


def _hull(expressions: Iterable[Expression]) -> Range:
    ranges = [value_range(expression) for expression in expressions]
    return Range(min(r.least for r in ranges), max(r.most for r in ranges))


def exact_range(call: Call) -> Range | None:
    """Where the exact results of integer arithmetic lie, whatever its type can hold; None of other
    functions."""
    if not all(has_range(argument.type) for argument in call.arguments):
        return None
    match call.function, [value_range(argument) for argument in call.arguments]:
        case "+" | "date_add", [a, b]:
            return Range(a.least + b.least, a.most + b.most)
        case "-" | "datediff" | "date_sub", [a, b]:
            return Range(a.least - b.most, a.most - b.least)
        case "*", [a, b]:
            products = [x * y for x in a for y in b]
            return Range(min(products), max(products))
        case "%", [a, b]:
            most = max(abs(b.least), abs(b.most)) - 1
            return Range(max(-most, min(a.least, 0)), min(most, max(a.most, 0)))
        case "div", [a, b]:
            if b.least > 0:
                return Range(min(a.least, 0), max(a.most, 0))
            size = max(abs(a.least), abs(a.most))
            return Range(-size, size)
        case "negate", [a]:
            return Range(-a.most, -a.least)
        case "abs", [a]:
            return Range(0, max(abs(a.least), abs(a.most)))
    return None
