"""Facts about casts, like those of `facts` for functions."""

from __future__ import annotations

import pyarrow as pa

from millstream.logical.functions.facts import Argument
from millstream.logical.functions.ranges import Range, has_range, range_of_type
from millstream.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    NULL,
    STRING,
    TIMESTAMP,
    is_decimal,
    is_floating,
    is_integral,
    is_numeric,
)


def makes_nulls(source: pa.DataType, target: pa.DataType) -> bool:
    """A DECIMAL of NaN or an infinity is NULL."""
    return is_floating(source) and is_decimal(target)


def has_zeros(type: pa.DataType) -> bool:
    """Whether it may have values that are equal but not identical: 0.0 and -0.0."""
    return is_floating(type) or bool(pa.types.is_nested(type))


def is_steady(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether equal values stay equal: 0.0 and -0.0 have different texts."""
    return not has_zeros(source) or source == target or (is_floating(source) and target != STRING)


def range_of(operand: Argument, target: pa.DataType) -> Range | None:
    """The range of the results, regardless of the range of their type."""
    source, values = operand.type, operand.range
    if source == BOOLEAN:
        return Range(0, 1)
    if values is None or source == target:
        return values
    if target == TIMESTAMP:
        return values.times(MICROS_PER_DAY if source == DATE else MICROS_PER_SECOND)
    if source == TIMESTAMP:
        return values.over(MICROS_PER_DAY if target == DATE else MICROS_PER_SECOND)
    return values


def is_total(operand: Argument, target: pa.DataType) -> bool:
    """Whether every value of the operand can be cast."""
    source = operand.type
    if source in (target, NULL) or (source == BOOLEAN and not is_decimal(target)):
        return True
    if target == STRING or (source, target) in ((STRING, BINARY), (TIMESTAMP, DATE)):
        return True
    if has_range(source) and has_range(target):
        values = range_of(operand, target)
        return values is not None and values.within(range_of_type(target))
    if is_decimal(target):
        return _fits_decimal(operand, target)
    if is_decimal(source) and is_integral(target):
        return _whole_part(source).within(range_of_type(target))
    numeric = is_numeric(source) or source == TIMESTAMP
    return bool(numeric and (is_floating(target) or target == BOOLEAN))


def _fits_decimal(operand: Argument, target: pa.DataType) -> bool:
    source, room = operand.type, _whole_part(target)
    if source == BOOLEAN:
        return room.most >= 1
    if is_integral(source):
        return operand.range is not None and operand.range.within(room)
    if not is_decimal(source):
        return False
    rounded = target.scale < source.scale  # rounding up may add a digit
    return bool(_whole_part(source).most + rounded <= room.most)


def _whole_part(type: pa.DataType) -> Range:
    """The range of a decimal type's values, truncated to integers."""
    most = 10 ** (type.precision - type.scale) - 1
    return Range(-most, most)
