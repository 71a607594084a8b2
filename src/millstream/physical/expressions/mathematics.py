"""Functions of numbers. Arrow calls the same C library as Python's `math`, so digits agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.logical.functions import Signature, lookup
from millstream.model.types import BIGINT, DOUBLE, INT, is_decimal, is_floating
from millstream.physical.expressions import decimals, rounding
from millstream.physical.expressions.arithmetic import Builder
from millstream.physical.expressions.by_distinct import by_distinct
from millstream.physical.expressions.mixing import mixed
from millstream.physical.expressions.nodes import ColumnNode, Constant, Kernel, Node
from millstream.physical.expressions.vector import (
    Mask,
    Vector,
    failing,
    from_numbers,
    null_scalar,
    numbers,
)

# --- functions of doubles ---------------------------------------------------------------------


def _arrow(name: str) -> Builder:
    """Arrow's function of that name; the reference if this version has none."""

    def build(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
        if not hasattr(pc, name):
            return None
        call = pc.get_function(name).call
        return lambda *values: Vector(call(list(values)))

    return build


def _logarithm(compute: Callable[[Any], Any]) -> Builder:
    """NULL for zero and below."""

    def kernel(values: pa.Array) -> Vector:
        none = pc.less_equal(values, 0.0)
        return Vector(pc.if_else(none, null_scalar(DOUBLE), compute(values)))

    return lambda signature, arguments: kernel


def _log2(values: Any) -> Any:
    return pc.divide(pc.ln(values), math.log(2.0))


def _log(signature: Signature, arguments: Sequence[Node]) -> Kernel:
    def kernel(base: pa.Array, value: pa.Array) -> Vector:
        none = pc.or_(pc.less_equal(base, 0.0), pc.less_equal(value, 0.0))
        return Vector(pc.if_else(none, null_scalar(DOUBLE), pc.divide(pc.ln(value), pc.ln(base))))

    return kernel


def _power(signature: Signature, arguments: Sequence[Node]) -> Kernel:
    """Java returns NaN where C returns 1: 1 to the power of NaN, ±1 to the power of ±∞."""

    def kernel(base: pa.Array, exponent: pa.Array) -> Vector:
        unit = pc.equal(pc.abs(base), 1.0)
        odd = pc.and_(unit, pc.invert(pc.is_finite(exponent)))
        return Vector(pc.if_else(odd, math.nan, pc.power(base, exponent)))

    return kernel


def _atan2(signature: Signature, arguments: Sequence[Node]) -> Kernel:
    """-0.0 counts as 0.0."""
    return lambda y, x: Vector(pc.atan2(pc.add(y, 0.0), pc.add(x, 0.0)))


def _times(factor: float) -> Builder:
    return lambda signature, arguments: lambda values: Vector(pc.multiply(values, factor))


def _sign(signature: Signature, arguments: Sequence[Node]) -> Kernel:
    def kernel(values: pa.Array) -> Vector:
        x = numbers(values)
        kept = (x == 0) | np.isnan(x)
        return Vector(from_numbers(np.where(kept, x, np.copysign(1.0, x)), DOUBLE, values))

    return kernel


# --- rounding ---------------------------------------------------------------------------------


def _whole(cut: Callable[[Any], Any], step: int) -> Builder:
    """CEIL and FLOOR: NaN gives 0, and a result that is not a BIGINT fails."""

    def of_doubles(values: pa.Array) -> Vector:
        whole = cut(numbers(values))
        fits = (whole >= -(2.0**63)) & (whole < 2.0**63)
        integers = np.where(fits, whole, 0.0).astype(np.int64)
        bad = ~(fits | np.isnan(whole))
        result = from_numbers(integers, BIGINT, values)
        return failing(result, bad, values) if bad.any() else Vector(result)

    def build(signature: Signature, arguments: Sequence[Node]) -> Kernel:
        type = signature.arguments[0]
        if type == BIGINT:
            return Vector
        if not is_decimal(type):
            return of_doubles
        return lambda values: decimals.fit(decimals.whole(values, step), signature.result)

    return build


def _round(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    _, *rest = arguments
    if rest and not isinstance(rest[0], Constant):
        return None
    digits = rest[0].plain if rest and isinstance(rest[0], Constant) else 0
    assert isinstance(digits, int)
    type = signature.arguments[0]
    if is_decimal(type):
        return _round_decimals(type, digits, signature.result)
    if is_floating(type):
        return _round_floating(signature, arguments, digits)
    return _round_integers(digits, signature.result)


def _round_decimals(type: pa.DataType, digits: int, result: pa.DataType) -> Kernel | None:
    if digits >= type.scale:
        return lambda values, *_: decimals.fit(values, result)
    if digits < max(type.scale - type.precision, -decimals.SAFE_DIGITS):
        return None
    return lambda values, *_: decimals.fit(decimals.rounded(values, digits), result)


def _round_integers(digits: int, result: pa.DataType) -> Kernel | None:
    if digits >= 0:
        return lambda values, *_: Vector(values)
    if digits < (-9 if result == INT else -18):
        return None
    size = 10**-digits

    def kernel(values: pa.Array, *_: pa.Scalar) -> Vector:
        x = numbers(values)
        rest = np.fmod(x, x.dtype.type(size))
        step = np.where(np.abs(rest) >= size - np.abs(rest), np.sign(x) * size, 0)
        with np.errstate(over="ignore"):
            value = (x - rest) + step.astype(x.dtype)
        bad = (step != 0) & ((value > x) != (step > 0))
        return failing(from_numbers(value, result, values), bad, values)

    return kernel


def _round_floating(signature: Signature, arguments: Sequence[Node], digits: int) -> Kernel | None:
    """The reference rounds doubles of 15 digits and more, unless they have no fraction."""
    type = signature.result
    if abs(digits) > rounding.MOST_DIGITS:
        return None

    reference = lookup("round")
    assert reference is not None
    meaning = partial(reference.evaluate, signature)
    exact = by_distinct(meaning, [ColumnNode(0, type), *arguments[1:]], type, strict=True)

    def rounded(values: pa.Array) -> tuple[pa.Array, Mask]:
        x = numbers(values).astype(np.float64, copy=False)
        result, sure = rounding.round_half_up(x, digits)
        kept = ~np.isfinite(x)
        if digits >= 0:
            kept |= np.abs(x) >= 2.0**52
        return from_numbers(np.where(kept, x, result), type, values), sure | kept

    def kernel(values: pa.Array, *_: pa.Scalar) -> Vector:
        result, sure = rounded(values)
        if sure.all():
            return Vector(result)
        return mixed(values, sure, lambda part: Vector(rounded(part)[0]), exact)

    return kernel


KERNELS: dict[str, Builder] = {
    **{name: _arrow(name) for name in ("sqrt", "exp", "sin", "cos", "tan")},
    **{name: _arrow(name) for name in ("asin", "acos", "atan")},
    "atan2": _atan2,
    "ln": _logarithm(pc.ln),
    "log10": _logarithm(pc.log10),
    "log2": _logarithm(_log2),
    "log": _log,
    "power": _power,
    "degrees": _times(180.0 / math.pi),
    "radians": _times(math.pi / 180.0),
    "sign": _sign,
    "ceil": _whole(np.ceil, 1),
    "floor": _whole(np.floor, -1),
    "round": _round,
}
