"""Decimals: rounding, arithmetic and their unscaled integers.

Arrow's scales of sums and products agree with Spark's as long as the result has at most 38 digits.
Beyond that, and for quotients, the exact result is computed with up to 76 digits and then rounded
half up to the result type, which it may not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.model.types import BIGINT, MAX_PRECISION, decimal_type
from millstream.physical.expressions.vector import (
    Vector,
    as_array,
    either,
    failing,
    from_numbers,
    mask_of,
    null_where,
    present,
    validity,
)

_Binary: TypeAlias = Callable[[Any, Any], Vector]

_MOST = 76  # digits of Arrow's decimal256


def _wide(precision: int, scale: int) -> pa.DataType:
    if precision <= MAX_PRECISION:
        return decimal_type(precision, scale)
    return pa.decimal256(min(precision, _MOST), scale)


# Arrow divides incorrectly if 32 bits of the quotient are all ones, unless the divisor fits in 32
# bits (seen up to version 26). So only such divisors are used.
SAFE_DIGITS = 9
_SAFE_DIVISOR = 2**32


def rounded(values: pa.Array, digits: int) -> pa.Array:
    """Rounds half up to `digits` digits after the point, in a type with one more digit before
    it."""
    assert digits >= -SAFE_DIGITS
    values = shortened(values, max(digits + 1, 0))
    return pc.round(with_room(values), ndigits=digits, round_mode="half_towards_infinity")


def shortened(values: pa.Array, scale: int) -> pa.Array:
    """Truncates to at most `scale` digits after the point."""
    while values.type.scale > scale:
        fewer = max(scale, values.type.scale - SAFE_DIGITS)
        values = values.cast(_wide(values.type.precision, fewer), safe=False)
    return values


def whole(values: pa.Array, step: int) -> pa.Array:
    """The next whole number in the direction of the step, 1 or -1, in a type with one more
    digit."""
    cut = with_room(shortened(values, 0))
    one = pa.scalar(Decimal(step), decimal_type(1, 0))
    beyond = pc.greater(values, cut) if step > 0 else pc.less(values, cut)
    return pc.if_else(beyond, pc.add(cut, one).cast(cut.type), cut)


def divides_safely(values: pa.Array | pa.Scalar) -> bool:
    """Whether Arrow divides correctly by all of these."""
    low, high = unscaled(as_array(values, 1))
    large = (high != low >> 63) | (low >= _SAFE_DIVISOR) | (low <= -_SAFE_DIVISOR)
    valid = present(as_array(values, 1))
    return not (large if valid is None else large & valid).any()


def with_room(values: pa.Array) -> pa.Array:
    """The same values in a type with one more digit before the point."""
    return values.cast(_wide(values.type.precision + 1, values.type.scale))


def fit(values: pa.Array, target: pa.DataType) -> Vector:
    """Rounded half up to the scale of the target; rows beyond its precision fail."""
    source = values.type
    if source == target:
        return Vector(values)
    if source.scale > target.scale:
        values = rounded(values, target.scale)
    more = target.scale - source.scale
    if more > 0 and source.precision + more > MAX_PRECISION:
        # Arrow does not detect overflow of 128 bits in multiplications.
        values = values.cast(pa.decimal256(min(_MOST, source.precision + more), target.scale))
    try:
        return Vector(values.cast(target))
    except pa.ArrowInvalid:
        limit = pa.scalar(Decimal(10) ** (target.precision - target.scale), values.type)
        beyond = mask_of(pc.greater_equal(pc.abs(values), limit))
        return Vector(null_where(values, beyond).cast(target), beyond)


def summing(name: str, result: pa.DataType) -> _Binary:
    """The kernel of + - * for decimals."""
    call = pc.get_function({"+": "add", "-": "subtract", "*": "multiply"}[name]).call

    def kernel(a: pa.Array, b: pa.Array) -> Vector:
        if result.precision < MAX_PRECISION:
            values = call([a, b])
            if values.type == result:
                return Vector(values)
        return fit(call([_widened(a), _widened(b)]), result)

    return kernel


def _widened(values: pa.Array) -> pa.Array:
    return values.cast(pa.decimal256(values.type.precision, values.type.scale))


def dividing(a_type: pa.DataType, b_type: pa.DataType, result: pa.DataType) -> _Binary:
    """The kernel of / for decimals.

    Arrow truncates a quotient after s1 + p2 - s2 + 1 digits. One digit more than in the result
    suffices to round it half up.
    """
    more = max(0, result.scale - a_type.scale - b_type.precision + b_type.scale)
    dividend = pa.decimal256(min(_MOST, a_type.precision + more), a_type.scale + more)

    def kernel(a: pa.Array, b: pa.Array) -> Vector:
        if not divides_safely(b):
            raise pa.ArrowInvalid("for the reference")
        try:
            return fit(pc.divide(a.cast(dividend), _widened(b)), result)
        except pa.ArrowInvalid:
            zero = mask_of(pc.equal(b, pa.scalar(Decimal(0), b.type)))
            if not zero.any():
                raise
            zero = np.broadcast_to(zero, len(a) if isinstance(a, pa.Array) else len(b))
            if isinstance(b, pa.Scalar):
                return failing(pa.nulls(len(a), result), zero, a)
            divisor = null_where(b, zero)
            quotient = fit(pc.divide(a.cast(dividend), _widened(divisor)), result)
            zeros = failing(quotient.values, zero, a, b)
            return Vector(zeros.values, either(zeros.failed, quotient.failed))

    return kernel


def remainder(a_type: pa.DataType, b_type: pa.DataType, result: pa.DataType) -> _Binary | None:
    """The kernel of %, where integers of 18 digits are enough."""
    scales = _common_scale(a_type, b_type)
    if scales is None:
        return None

    def kernel(a: pa.Array, b: pa.Array) -> Vector:
        x, y = _integers(a, scales[0]), _integers(b, scales[1])
        rest = np.fmod(x, np.where(y == 0, 1, y))
        values = from_unscaled(rest, result, validity(a, b))
        return failing(values, np.broadcast_to(y == 0, len(rest)), a, b)

    return kernel


def whole_quotient(a_type: pa.DataType, b_type: pa.DataType) -> _Binary | None:
    """The kernel of div, where integers of 18 digits are enough."""
    scales = _common_scale(a_type, b_type)
    if scales is None:
        return None

    def kernel(a: pa.Array, b: pa.Array) -> Vector:
        x, y = _integers(a, scales[0]), _integers(b, scales[1])
        divisor = np.where(y == 0, 1, y)
        whole = (x - np.fmod(x, divisor)) // divisor
        values = from_numbers(whole, BIGINT, a, b)
        return failing(values, np.broadcast_to(y == 0, len(whole)), a, b)

    return kernel


def _common_scale(a: pa.DataType, b: pa.DataType) -> tuple[int, int] | None:
    """How many zeros to append to each for a common scale."""
    scale = max(a.scale, b.scale)
    more = scale - a.scale, scale - b.scale
    return more if max(a.precision + more[0], b.precision + more[1]) <= 18 else None


def _integers(values: pa.Array | pa.Scalar, more: int) -> npt.NDArray[np.int64]:
    low, _ = unscaled(as_array(values, 1))
    return low * np.int64(10**more)


def unscaled(values: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The low and high words of the unscaled integers (decimal × 10^scale)."""
    buffer = values.buffers()[1]
    if buffer is None:
        return np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
    words = np.frombuffer(buffer, np.int64, 2 * len(values), values.offset * 16)
    return words[0::2], words[1::2]


def from_unscaled(
    integers: npt.NDArray[np.int64], type: pa.DataType, bitmap: pa.Buffer | None
) -> pa.Array:
    """The decimals with these unscaled integers (integer × 10^-scale)."""
    words = np.empty((len(integers), 2), np.int64)
    words[:, 0] = integers
    words[:, 1] = integers >> 63
    return pa.Array.from_buffers(type, len(integers), [bitmap, pa.py_buffer(words)])
