"""The operators + - * / % div and the unary minus.

Integers are first computed by Arrow's checked kernels, which fail for a whole batch. Only after a
failure are the offending rows searched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.logical.functions import Signature
from millstream.model.types import (
    BIGINT,
    DATE,
    DOUBLE,
    FIRST_DATE,
    FIRST_TIMESTAMP,
    INT,
    INTERVAL,
    LAST_DATE,
    LAST_TIMESTAMP,
    TIMESTAMP,
    is_decimal,
    is_floating,
    is_integral,
)
from millstream.physical.expressions import decimals
from millstream.physical.expressions.nodes import Kernel, Node
from millstream.physical.expressions.vector import (
    Vector,
    either,
    failing,
    from_numbers,
    numbers,
)

Builder: TypeAlias = Callable[[Signature, Sequence[Node]], Kernel | None]

_CHECKED = {
    "+": "add_checked",
    "-": "subtract_checked",
    "*": "multiply_checked",
    "div": "divide_checked",
    "negate": "negate_checked",
    "abs": "abs_checked",
}
_UNCHECKED = {"+": "add", "-": "subtract", "*": "multiply", "negate": "negate", "abs": "abs"}


# --- integers, dates, timestamps and intervals ------------------------------------------------


def _sum(x: Any, y: Any) -> tuple[Any, Any]:
    value = x + y
    return value, ((x ^ value) & (y ^ value)) < 0


def _difference(x: Any, y: Any) -> tuple[Any, Any]:
    value = x - y
    return value, ((x ^ y) & (x ^ value)) < 0


def _product(x: Any, y: Any) -> tuple[Any, Any]:
    value = x * y
    least = np.iinfo(value.dtype).min
    back = np.where(x == 0, y, value // np.where(x == 0, 1, x))
    return value, (back != y) | ((x == -1) & (y == least))


def _quotient(x: Any, y: Any) -> tuple[Any, Any]:
    least = np.iinfo(x.dtype).min
    bad = (y == 0) | ((x == least) & (y == -1))
    divisor = np.where(bad, 1, y)
    return (x - np.fmod(x, divisor)) // divisor, bad


_WITH_FAULTS: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "div": _quotient,
}


def _integral(name: str, result: pa.DataType) -> Kernel:
    """Overflow, and division by zero, fail."""
    call = pc.get_function(_CHECKED[name]).call
    with_faults = _WITH_FAULTS[name]

    def kernel(a: pa.Array, b: pa.Array) -> Vector:
        try:
            values = call([a, b])
        except pa.ArrowInvalid:
            with np.errstate(all="ignore"):
                value, bad = with_faults(numbers(a), numbers(b))
            return failing(from_numbers(value, result, a, b), bad, a, b)
        return Vector(values)

    return kernel


def _shifted(name: str) -> Kernel:
    """A timestamp and an interval; a result that cannot be displayed fails too."""
    on_micros = _integral(name, TIMESTAMP)

    def kernel(a: pa.Array, b: pa.Array) -> Vector:
        values, failed = on_micros(a, b)
        micros = numbers(values)
        beyond = (micros < FIRST_TIMESTAMP) | (micros > LAST_TIMESTAMP)
        shown = failing(values, beyond, a, b)
        return Vector(shown.values, either(failed, shown.failed))

    return kernel


def _dates(name: str) -> Kernel:
    """A date and a number of days."""
    on_days = _integral(name, INT)

    def kernel(a: pa.Array, b: pa.Array) -> Vector:
        values, failed = on_days(_days(a), _days(b))
        days = numbers(values)
        beyond = (days < FIRST_DATE) | (days > LAST_DATE)
        shown = failing(values.view(DATE), beyond, a, b)
        return Vector(shown.values, either(failed, shown.failed))

    return kernel


def _days(values: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    if values.type == INT:
        return values
    return values.cast(INT) if isinstance(values, pa.Scalar) else values.view(INT)


def _whole_intervals(a: pa.Array, b: pa.Array) -> Vector:
    """How often one interval is contained in another."""
    return _whole(a.cast(BIGINT), b.cast(BIGINT))


_whole = _integral("div", BIGINT)


def _remainder(result: pa.DataType) -> Kernel:
    """Of integers; the sign is that of the dividend."""

    def kernel(a: pa.Array, b: pa.Array) -> Vector:
        x, y = numbers(a), numbers(b)
        zero = y == 0
        with np.errstate(all="ignore"):
            values = from_numbers(np.fmod(x, np.where(zero, 1, y)), result, a, b)
        return failing(values, _rows(zero, values), a, b) if zero.any() else Vector(values)

    return kernel


def _rows(mask: Any, values: pa.Array) -> Any:
    """Broadcasts the mask of a constant to all rows."""
    return np.broadcast_to(mask, len(values))


# --- floating point ---------------------------------------------------------------------------


def _floating(name: str) -> Kernel:
    call = pc.get_function(_UNCHECKED[name]).call
    return lambda a, b: Vector(call([a, b]))


def _floating_quotient(a: pa.Array, b: pa.Array) -> Vector:
    try:
        return Vector(_divide_checked([a, b]))
    except pa.ArrowInvalid:
        values = pc.divide(a, b)
        return failing(values, _rows(numbers(b) == 0, values), a, b)


_divide_checked = pc.get_function("divide_checked").call


def _floating_remainder(result: pa.DataType) -> Kernel:
    def kernel(a: pa.Array, b: pa.Array) -> Vector:
        x, y = numbers(a), numbers(b)
        with np.errstate(all="ignore"):
            values = from_numbers(np.fmod(x, y), result, a, b)
        zero = y == 0
        return failing(values, _rows(zero, values), a, b) if zero.any() else Vector(values)

    return kernel


# --- an interval times or divided by a number -------------------------------------------------


def _scaled_by_double(name: str) -> Kernel:
    def kernel(a: pa.Array, b: pa.Array) -> Vector:
        x, y = numbers(a).astype(np.float64), numbers(b).astype(np.float64)
        with np.errstate(all="ignore"):
            exact = x * y if name == "*" else x / y
            value = np.trunc(exact)
            value = value + np.where(np.abs(exact - value) >= 0.5, np.copysign(1.0, exact), 0.0)
            bad = ~((value >= -(2.0**63)) & (value < 2.0**63))
            whole = np.where(bad, 0.0, value).astype(np.int64)
        if name == "/":
            bad = bad | (y == 0)
        return failing(from_numbers(whole, INTERVAL, a, b), bad, a, b)

    return kernel


def _divided_by_integer(a: pa.Array, b: pa.Array) -> Vector:
    """Rounded half up to whole microseconds."""
    x, y = numbers(a), numbers(b)
    with np.errstate(all="ignore"):
        whole, bad = _quotient(x, y)
        rest = np.abs(x - whole * y).astype(np.uint64)
        size = np.abs(y).astype(np.uint64)  # the least integer wraps to itself: right here
        up = rest >= size - rest
        value = whole + np.where(up & ~bad, np.where((x < 0) == (y < 0), 1, -1), 0)
    return failing(from_numbers(value, INTERVAL, a, b), _rows(bad, value), a, b)


def _scaled(name: str, signature: Signature) -> Kernel | None:
    a, b = signature.arguments
    if DOUBLE in (a, b):
        return _scaled_by_double(name)
    if BIGINT in (a, b):
        return _integral("*", INTERVAL) if name == "*" else _divided_by_integer
    return None


# --- the table --------------------------------------------------------------------------------


def _binary(name: str) -> Builder:
    def build(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
        result = signature.result
        if result == INTERVAL and name in ("*", "/"):
            return _scaled(name, signature)
        if is_decimal(signature.arguments[0]):
            return _of_decimals(name, signature)
        if is_floating(result):
            return _of_floats(name, result)
        if result == DATE:
            return _dates(name)
        if result == TIMESTAMP:
            return _shifted(name)
        if name == "%":
            return _remainder(result)
        if name == "div" and signature.arguments[0] == INTERVAL:
            return _whole_intervals
        return _integral(name, result)

    return build


def _of_decimals(name: str, signature: Signature) -> Kernel | None:
    a, b = signature.arguments
    if name in ("+", "-", "*"):
        return decimals.summing(name, signature.result)
    if name == "/":
        return decimals.dividing(a, b, signature.result)
    if name == "%":
        return decimals.remainder(a, b, signature.result)
    return decimals.whole_quotient(a, b)


def _of_floats(name: str, result: pa.DataType) -> Kernel:
    if name == "/":
        return _floating_quotient
    return _floating_remainder(result) if name == "%" else _floating(name)


def _unary(name: str) -> Builder:
    """The minus, and ABS: only the smallest integer has no result."""

    def build(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
        type = signature.result
        if not (is_integral(type) or type == INTERVAL):
            unchecked = pc.get_function(_UNCHECKED[name]).call
            return lambda values: Vector(unchecked([values]))
        call = pc.get_function(_CHECKED[name]).call
        stored = INT if type == INT else BIGINT

        def kernel(values: pa.Array) -> Vector:
            integers = values.view(stored) if type == INTERVAL else values
            try:
                return Vector(call([integers]).view(type))
            except pa.ArrowInvalid:
                x = numbers(integers)
                bad = x == np.iinfo(x.dtype).min
                value = np.abs(x) if name == "abs" else -x
                return failing(from_numbers(value, type, values), bad, values)

        return kernel

    return build


KERNELS: dict[str, Builder] = {
    **{name: _binary(name) for name in ("+", "-", "*", "/", "%", "div")},
    "negate": _unary("negate"),
    "abs": _unary("abs"),
}
