"""Functions of numbers. Doubles follow IEEE 754 as in Java: NaN and ∞ instead of errors."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import pyarrow as pa

from millstream.logical.functions.arithmetic import fit, fitting, unary_signature
from millstream.logical.functions.casts import EXACT, fit_decimal, to_string
from millstream.logical.functions.facts import (
    MAYBE_NULL,
    NEVER_NULL,
    PLAIN,
    Argument,
    FunctionFacts,
)
from millstream.logical.functions.function import (
    Function,
    Resolve,
    Signature,
    Types,
    argument_error,
    check_argument,
    check_count,
    from_right,
    function,
)
from millstream.logical.functions.ranges import size_of
from millstream.model import types
from millstream.model.types import BIGINT, BOOLEAN, DOUBLE, INT, MAX_PRECISION, REAL, decimal_type
from millstream.model.values import NAN, is_nan


def _ieee(compute: Callable[..., float]) -> Callable[..., float]:
    """NaN where `math` raises an error; infinity where it overflows."""

    def evaluate(*values: float) -> float:
        try:
            result = compute(*values)
        except ValueError:
            return NAN
        except OverflowError:
            return math.inf
        return NAN if result != result else result

    return evaluate


def _power(base: float, exponent: float) -> float:
    if abs(base) == 1 and math.isinf(exponent):
        return NAN
    odd = math.isfinite(exponent) and math.fmod(exponent, 2) in (1.0, -1.0)
    try:
        return NAN if base == 1 and exponent != exponent else math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        if base != 0:
            return NAN
        return math.copysign(math.inf, base) if odd else math.inf


def _logarithm(compute: Callable[[float], float]) -> Callable[[float], float | None]:
    """NULL for zero and negative numbers."""

    def evaluate(value: float) -> float | None:
        if value != value:
            return NAN
        return compute(value) if value > 0 else None

    return evaluate


def _log(base: float, value: float) -> float | None:
    if base <= 0 or value <= 0:
        return None
    above, below = math.log(value), math.log(base)
    if below == 0:
        return NAN if above == 0 or above != above else math.copysign(math.inf, above)
    result = above / below
    return NAN if result != result else result


def _log2(value: float) -> float:
    return math.log(value) / math.log(2.0)


def _sign(value: float) -> float:
    if value != value:
        return NAN
    return value if value == 0 else math.copysign(1.0, value)


def _atan2(y: float, x: float) -> float:
    """-0.0 counts as 0.0."""
    return math.atan2(y + 0.0, x + 0.0)


def _nanvl_signature(given: Types) -> Signature:
    check_count("nanvl", given, 2, 2)
    for number, type in enumerate(given, 1):
        check_argument("nanvl", number, type, DOUBLE)
    type = REAL if given[0] == REAL and given[1] in (REAL, types.NULL) else DOUBLE
    return Signature((type, type), type)


def _nanvl(
    signature: Signature, value: Callable[[], float | None], other: Callable[[], float | None]
) -> float | None:
    """The other value is evaluated only if the first is NaN."""
    first = value()
    return other() if is_nan(first) else first


def _is_nan(value: float | None) -> bool:
    return is_nan(value)


# --- rounding ---------------------------------------------------------------------------------


def _whole_signature(name: str) -> Resolve:
    """CEIL and FLOOR: a decimal with a fraction has one digit more than its integral part, a
    decimal without stays unchanged, others are BIGINT."""

    def resolve(given: Types) -> Signature:
        check_count(name, given, 1, 1)
        type = given[0]
        if types.is_decimal(type):
            digits = type.precision - type.scale + 1 if type.scale else type.precision
            return Signature(given, decimal_type(min(MAX_PRECISION, digits), 0))
        check_argument(name, 1, type, DOUBLE)
        return Signature((BIGINT if types.is_integral(type) else DOUBLE,), BIGINT)

    return resolve


def _whole(name: str, mode: str, of_double: Callable[[float], int]) -> Callable[..., Any]:
    """NaN becomes 0, as in Java; an infinity overflows."""

    def evaluate(signature: Signature, value: Any) -> Any:
        if isinstance(value, Decimal):
            return fit_decimal(value.to_integral_value(mode), signature.result)
        if value != value:
            return 0
        result = value if math.isinf(value) else of_double(value)
        return fit(result, BIGINT, lambda: f"{name}({to_string(value, signature.arguments[0])})")

    return evaluate


def _round_signature(given: Types) -> Signature:
    """The type stays; a decimal gains a digit, and without a second argument loses its fraction."""
    check_count("round", given, 1, 2)
    type = DOUBLE if given[0] in (types.STRING, types.NULL) else given[0]
    if not types.is_numeric(type):
        raise argument_error("round", 1, type, "a number")
    result = type
    if types.is_decimal(type):
        scale = type.scale if len(given) == 2 else 0
        digits = type.precision - type.scale + 1 + scale
        result = decimal_type(min(MAX_PRECISION, digits), scale)
    if len(given) == 2:
        check_argument("round", 2, given[1], INT)
    return Signature((type, INT)[: len(given)], result)


def _round_narrowed(signature: Signature, _: object, digits: object = ...) -> pa.DataType:
    """The scale of a decimal is limited to the digits it is rounded to; there is room for the
    digits that rounding may add before the point."""
    type = signature.arguments[0]
    digits = 0 if digits is None else digits
    if not types.is_decimal(type) or not isinstance(digits, int):
        return signature.result
    scale = max(0, min(type.scale, digits))
    whole = max(type.precision - type.scale + 1, 1 - digits)
    return decimal_type(min(MAX_PRECISION, whole + scale), scale)


def _round(signature: Signature, value: Any, digits: int = 0) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return value
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    exponent = exact.as_tuple().exponent
    assert isinstance(exponent, int)
    if exponent < -digits:
        exact = _half_up(exact, digits)
    result = _like(value, exact)
    return fit(result, signature.result, lambda: f"round({value}, {digits})")


def _half_up(value: Decimal, digits: int) -> Decimal:
    if value.adjusted() < -digits - 1:
        return Decimal(0)
    return value.quantize(Decimal(1).scaleb(-digits), context=EXACT)


def _like(value: Any, exact: Decimal) -> Any:
    if isinstance(value, float):
        return float(exact) + 0.0  # never -0.0
    return exact if isinstance(value, Decimal) else int(exact)


def _has_room(of_doubles: bool) -> Callable[..., bool]:
    """Whether the rounded number always fits the type."""

    def total(result: pa.DataType, number: Argument, *digits: Argument) -> bool:
        type = number.type
        if types.is_decimal(type):
            return bool(result.precision - result.scale > type.precision - type.scale)
        return of_doubles if types.is_floating(type) else not digits

    return total


def _abs_signature(given: Types) -> Signature:
    check_count("abs", given, 1, 1)
    return unary_signature("abs", given[0])


def _abs(signature: Signature, value: Any) -> Any:
    type: pa.DataType = signature.result
    size = value.copy_abs() if isinstance(value, Decimal) else abs(value)
    return fit(size, type, lambda: f"abs({to_string(value, type)})")


# --- the table --------------------------------------------------------------------------------

_OF_ONE_DOUBLE: dict[str, Callable[[float], float]] = {
    "sqrt": _ieee(math.sqrt),
    "exp": _ieee(math.exp),
    "sign": _sign,
    "sin": _ieee(math.sin),
    "cos": _ieee(math.cos),
    "tan": _ieee(math.tan),
    "asin": _ieee(math.asin),
    "acos": _ieee(math.acos),
    "atan": _ieee(math.atan),
    "degrees": _ieee(math.degrees),
    "radians": _ieee(math.radians),
}

_LOGARITHMS: dict[str, Callable[[float], float | None]] = {
    "ln": _logarithm(math.log),
    "log10": _logarithm(math.log10),
    "log2": _logarithm(_log2),
}

_ROUNDINGS = (("ceil", ROUND_CEILING, math.ceil), ("floor", ROUND_FLOOR, math.floor))

_ROUNDED = FunctionFacts(total=_has_room(of_doubles=True), null_if=any, steady=True)
_WHOLE = FunctionFacts(total=_has_room(of_doubles=False), null_if=any, steady=True)
_SIZE = FunctionFacts(total=fitting(size_of), null_if=any, range=size_of, steady=True)

FUNCTIONS = [
    *(function(n, DOUBLE, [DOUBLE], f, facts=PLAIN) for n, f in _OF_ONE_DOUBLE.items()),
    *(function(n, DOUBLE, [DOUBLE], f, facts=MAYBE_NULL) for n, f in _LOGARITHMS.items()),
    function("log", DOUBLE, [DOUBLE, DOUBLE], _log, facts=MAYBE_NULL),
    function("atan2", DOUBLE, [DOUBLE, DOUBLE], _ieee(_atan2), facts=PLAIN),
    function("power", DOUBLE, [DOUBLE, DOUBLE], _power, facts=replace(PLAIN, steady=False)),
    Function("abs", _abs_signature, _abs, facts=_SIZE),
    *(
        Function(name, _whole_signature(name), _whole(name, mode, whole), facts=_WHOLE)
        for name, mode, whole in _ROUNDINGS
    ),
    Function(
        *("round", _round_signature, _round),
        narrowed=_round_narrowed,
        order=from_right,
        facts=_ROUNDED,
    ),
    Function("nanvl", _nanvl_signature, _nanvl, strict=False, lazy=True, facts=PLAIN),
    function("isnan", BOOLEAN, [DOUBLE], _is_nan, strict=False, facts=NEVER_NULL),
    function("pi", DOUBLE, [], lambda: math.pi, facts=NEVER_NULL),
    function("rand", DOUBLE, [], random.random, deterministic=False),
]
