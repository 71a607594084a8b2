"""CAST: a kernel for each pair of types that Arrow or NumPy convert with the same semantics.

The reference handles the other pairs, and rows that are not in the usual form (numbers in text with
an exponent, dates followed by a time).
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FIRST_TIMESTAMP,
    INT,
    LAST_TIMESTAMP,
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    NULL,
    REAL,
    STRING,
    TIMESTAMP,
    as_decimal,
    decimal_type,
    integral_range,
    is_decimal,
    is_floating,
    is_integral,
    is_numeric,
)
from millstream.physical.expressions import decimals, rounding
from millstream.physical.expressions.by_distinct import exact_cast
from millstream.physical.expressions.mixing import mixed
from millstream.physical.expressions.nodes import Kernel
from millstream.physical.expressions.text_casts import from_text, to_text
from millstream.physical.expressions.vector import (
    Vector,
    failing,
    from_numbers,
    numbers,
    validity,
)


@lru_cache(maxsize=256)
def cast_kernel(source: pa.DataType, target: pa.DataType) -> Kernel | None:
    """The conversion of one type to another; None if only the reference can do it."""
    if source == target:
        return Vector
    if source == NULL:
        return lambda values: Vector(pa.nulls(len(values), target))
    if STRING in (source, target):
        return from_text(target) if source == STRING else to_text(source)
    if target == BOOLEAN:
        return _to_boolean(source) if is_numeric(source) else None
    if source == BOOLEAN:
        return _from_boolean(target)
    if source in (TIMESTAMP, DATE) or target in (TIMESTAMP, DATE):
        return _temporal(source, target)
    if is_numeric(source) and is_numeric(target):
        return _numeric(source, target)
    return None


# --- numbers ----------------------------------------------------------------------------------


def _numeric(source: pa.DataType, target: pa.DataType) -> Kernel:
    if is_decimal(target):
        return (
            _floating_to_decimal(source, target)
            if is_floating(source)
            else _to_decimal(source, target)
        )
    if is_floating(target):
        return _decimal_to_floating(source, target) if is_decimal(source) else _to_floating(target)
    if is_decimal(source):
        return _decimal_to_integral(target)
    return _floating_to_integral(target) if is_floating(source) else _to_integral(target)


def _to_floating(target: pa.DataType) -> Kernel:
    """Via a double, as a REAL is a rounded double."""

    def kernel(values: pa.Array) -> Vector:
        doubles = values.cast(DOUBLE, safe=False)
        return Vector(doubles if target == DOUBLE else doubles.cast(REAL, safe=False))

    return kernel


def _to_integral(target: pa.DataType) -> Kernel:
    def kernel(values: pa.Array) -> Vector:
        try:
            return Vector(values.cast(target))
        except pa.ArrowInvalid:
            least, most = integral_range(target)
            x = numbers(values)
            return failing(from_numbers(x, target, values), (x < least) | (x > most), values)

    return kernel


def _floating_to_integral(target: pa.DataType) -> Kernel:
    """Truncated towards zero. The double nearest to the largest BIGINT converts to that BIGINT."""
    dtype = np.int32 if target == INT else np.int64
    limit = 2.0**31 if target == INT else 2.0**63
    most = integral_range(target)[1]

    def kernel(values: pa.Array) -> Vector:
        whole = np.trunc(_doubles(values))
        fits = (whole >= -limit) & (whole < limit)
        if fits.all():
            return Vector(from_numbers(whole.astype(dtype), target, values))
        stored = np.where(fits, whole, 0.0).astype(dtype)
        if target == BIGINT:
            largest = whole == limit
            stored, fits = np.where(largest, dtype(most), stored), fits | largest
        return failing(from_numbers(stored, target, values), ~fits, values)

    return kernel


def _to_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    if is_integral(source):
        between = as_decimal(source)
        return lambda values: decimals.fit(values.cast(between), target)
    return partial(decimals.fit, target=target)


def _decimal_to_integral(target: pa.DataType) -> Kernel:
    options = pc.CastOptions(target, allow_decimal_truncate=True)

    def kernel(values: pa.Array) -> Vector:
        values = decimals.shortened(values, 0)
        try:
            return Vector(pc.cast(values, options=options))
        except pa.ArrowInvalid:
            least, most = (
                pa.scalar(bound, decimal_type(38, 0)) for bound in integral_range(target)
            )
            whole = values.cast(decimal_type(38, 0))
            inside = pc.and_(pc.less_equal(least, whole), pc.less_equal(whole, most))
            kept = pc.if_else(inside, values, pa.scalar(None, values.type))
            bad = ~inside.fill_null(True).to_numpy(zero_copy_only=False)
            return Vector(pc.cast(kept, options=options), bad)

    return kernel


def _decimal_to_floating(source: pa.DataType, target: pa.DataType) -> Kernel:
    """One division rounds correctly if both numbers are exact doubles; the reference does the
    rest."""
    exact = exact_cast(source, target)
    power = 10.0**source.scale

    def divided(values: pa.Array) -> Vector:
        low, _ = decimals.unscaled(values)
        doubles = from_numbers(low.astype(np.float64) / power, DOUBLE, values)
        return Vector(doubles if target == DOUBLE else doubles.cast(REAL, safe=False))

    def kernel(values: pa.Array) -> Vector:
        low, high = decimals.unscaled(values)
        small = (high == low >> 63) & (low <= 2**53) & (low >= -(2**53))
        return mixed(values, small, divided, exact)

    return kernel if source.scale <= 22 else exact


def _floating_to_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Rounds the shortest digits that identify the double half up."""
    exact = exact_cast(source, target)
    between = decimal_type(38, target.scale)

    def kernel(values: pa.Array) -> Vector:
        whole, sure = rounding.half_up(_doubles(values), target.scale)

        def fast(part: pa.Array) -> Vector:
            integers = (
                whole if part is values else rounding.half_up(_doubles(part), target.scale)[0]
            )
            stored = decimals.from_unscaled(integers.astype(np.int64), between, validity(part))
            return decimals.fit(stored, target)

        return mixed(values, sure, fast, exact)

    return kernel if target.scale <= rounding.MOST_DIGITS else exact


def _doubles(values: pa.Array) -> Any:
    return numbers(values).astype(np.float64, copy=False)


# --- BOOLEAN ----------------------------------------------------------------------------------


def _to_boolean(source: pa.DataType) -> Kernel:
    zero = pa.scalar(Decimal(0) if is_decimal(source) else 0, source)
    return lambda values: Vector(pc.not_equal(values, zero))


def _from_boolean(target: pa.DataType) -> Kernel | None:
    if not is_decimal(target):
        return lambda values: Vector(values.cast(INT).cast(target))
    to_decimal = _to_decimal(INT, target)
    return lambda values: to_decimal(values.cast(INT))


# --- DATE and TIMESTAMP -----------------------------------------------------------------------


def _temporal(source: pa.DataType, target: pa.DataType) -> Kernel | None:
    if source == DATE:
        return scaled_to_timestamp(MICROS_PER_DAY) if target == TIMESTAMP else None
    if source == TIMESTAMP:
        return _from_timestamp(target)
    if is_integral(source) and target == TIMESTAMP:
        return scaled_to_timestamp(MICROS_PER_SECOND)
    return _floating_to_timestamp if is_floating(source) else None


def scaled_to_timestamp(micros: int) -> Kernel:
    """Each unit counts `micros` microseconds."""
    least, most = -(-FIRST_TIMESTAMP // micros), LAST_TIMESTAMP // micros

    def kernel(values: pa.Array) -> Vector:
        counts = values.view(INT).cast(BIGINT) if values.type == DATE else values.cast(BIGINT)
        x = numbers(counts)
        bad = (x < least) | (x > most)
        if not bad.any():
            return Vector(from_numbers(x * np.int64(micros), TIMESTAMP, values))
        stored = np.where(bad, 0, x) * np.int64(micros)
        return failing(from_numbers(stored, TIMESTAMP, values), bad, values)

    return kernel


def _floating_to_timestamp(values: pa.Array) -> Vector:
    """Seconds, multiplied as doubles and truncated to microseconds."""
    with np.errstate(all="ignore"):
        micros = np.trunc(_doubles(values) * float(MICROS_PER_SECOND))
    fits = (micros >= FIRST_TIMESTAMP) & (micros <= LAST_TIMESTAMP)
    stored = np.where(fits, micros, 0.0).astype(np.int64)
    fits &= stored <= LAST_TIMESTAMP  # not exact as a double
    return failing(from_numbers(stored, TIMESTAMP, values), ~fits, values)


def _from_timestamp(target: pa.DataType) -> Kernel | None:
    if target == DATE:
        return lambda values: Vector(_floored(values, MICROS_PER_DAY, DATE))
    if is_integral(target):
        narrow = _to_integral(target)
        return lambda values: narrow(_floored(values, MICROS_PER_SECOND, BIGINT))
    if is_decimal(target):
        return partial(_timestamp_to_decimal, target)
    return _timestamp_to_floating(target) if is_floating(target) else None


def _floored(values: pa.Array, unit: int, type: pa.DataType) -> pa.Array:
    return from_numbers(numbers(values) // unit, type, values)


def _timestamp_to_decimal(target: pa.DataType, values: pa.Array) -> Vector:
    exact = decimals.from_unscaled(numbers(values), decimal_type(25, 6), validity(values))
    return decimals.fit(exact, target)


def _timestamp_to_floating(target: pa.DataType) -> Kernel:
    def kernel(values: pa.Array) -> Vector:
        seconds = numbers(values).astype(np.float64) / float(MICROS_PER_SECOND)
        doubles = from_numbers(seconds, DOUBLE, values)
        return Vector(doubles if target == DOUBLE else doubles.cast(REAL, safe=False))

    return kernel
