"""The operators + - * / % div and the unary minus, on numbers, dates, timestamps and intervals.

Overflow of integers and decimals is an error, and so is division by zero, including of doubles.
The precision and scale of decimal results follow Spark: beyond 38 digits the fraction is shortened,
but not below 6 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow as pa

from millstream.logical.functions.casts import EXACT, fit_decimal, holds, to_string
from millstream.logical.functions.facts import Argument, FunctionFacts
from millstream.logical.functions.function import (
    EvaluationError,
    Function,
    Order,
    Resolve,
    Signature,
    Types,
    check_count,
    from_left,
    from_right,
    operand_error,
)
from millstream.logical.functions.ranges import (
    Range,
    RangeOf,
    difference_of,
    negative_of,
    product_of,
    quotient_of,
    range_of_type,
    remainder_of,
    sum_of,
)
from millstream.model import types
from millstream.model.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    MAX_PRECISION,
    MIN_FRACTION,
    NULL,
    REAL,
    STRING,
    TIMESTAMP,
    as_decimal,
    decimal_type,
    is_decimal,
    is_floating,
    is_integral,
    is_numeric,
)
from millstream.model.values import NAN, canonical, round_real

# --- types ------------------------------------------------------------------------------------

_SHIFT = Signature((TIMESTAMP, INTERVAL), TIMESTAMP)
_SHIFT_BY = Signature((INTERVAL, TIMESTAMP), TIMESTAMP)
_BETWEEN = Signature((TIMESTAMP, TIMESTAMP), INTERVAL)
_INTERVALS = Signature((INTERVAL, INTERVAL), INTERVAL)

_TEMPORAL: dict[tuple[str, pa.DataType, pa.DataType], Signature] = {
    ("+", DATE, INT): Signature((DATE, INT), DATE),
    ("+", INT, DATE): Signature((INT, DATE), DATE),
    ("-", DATE, INT): Signature((DATE, INT), DATE),
    ("+", DATE, INTERVAL): _SHIFT,
    ("+", TIMESTAMP, INTERVAL): _SHIFT,
    ("-", DATE, INTERVAL): _SHIFT,
    ("-", TIMESTAMP, INTERVAL): _SHIFT,
    ("+", INTERVAL, DATE): _SHIFT_BY,
    ("+", INTERVAL, TIMESTAMP): _SHIFT_BY,
    ("-", DATE, DATE): _BETWEEN,
    ("-", DATE, TIMESTAMP): _BETWEEN,
    ("-", TIMESTAMP, DATE): _BETWEEN,
    ("-", TIMESTAMP, TIMESTAMP): _BETWEEN,
    ("+", INTERVAL, INTERVAL): _INTERVALS,
    ("-", INTERVAL, INTERVAL): _INTERVALS,
    ("div", INTERVAL, INTERVAL): Signature((INTERVAL, INTERVAL), BIGINT),
}


def _adjusted(precision: int, scale: int) -> pa.DataType:
    """The decimal type of a result, its fraction shortened to keep the integral digits."""
    if precision <= MAX_PRECISION:
        return decimal_type(precision, scale)
    kept = max(MAX_PRECISION - (precision - scale), min(scale, MIN_FRACTION))
    return decimal_type(MAX_PRECISION, kept)


Digits = tuple[int, int]  # precision and scale


def _sum_digits(a: pa.DataType, b: pa.DataType) -> Digits:
    scale = max(a.scale, b.scale)
    return max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale


def _product_digits(a: pa.DataType, b: pa.DataType) -> Digits:
    return a.precision + b.precision + 1, a.scale + b.scale


def _quotient_digits(a: pa.DataType, b: pa.DataType) -> Digits:
    scale = max(MIN_FRACTION, a.scale + b.precision + 1)
    return a.precision - a.scale + b.scale + scale, scale


def _remainder_digits(a: pa.DataType, b: pa.DataType) -> Digits:
    scale = max(a.scale, b.scale)
    return min(a.precision - a.scale, b.precision - b.scale) + scale, scale


# Of the exact results of operators on decimals.
_DIGITS: dict[str, Callable[[pa.DataType, pa.DataType], Digits]] = {
    "+": _sum_digits,
    "-": _sum_digits,
    "*": _product_digits,
    "/": _quotient_digits,
    "%": _remainder_digits,
}


def _binary(name: str) -> Resolve:
    def resolve(given: Types) -> Signature:
        check_count(name, given, 2, 2)
        a, b = _promoted(name, *given)
        signature = _TEMPORAL.get((name, a, b)) or _scaled(name, a, b) or _numeric(name, a, b)
        if signature is None:
            raise operand_error(name, given)
        return signature

    return resolve


def _promoted(name: str, a: pa.DataType, b: pa.DataType) -> Types:
    """The operands; a NULL or a string takes its type from the other one."""
    if a == b == NULL:
        return DOUBLE, DOUBLE
    if NULL in (a, b):
        other = b if a == NULL else a
        if name == "/" and is_numeric(other) and (a == NULL or not is_decimal(a)):
            return DOUBLE, DOUBLE
        return (other, other) if is_numeric(other) or other == INTERVAL else (a, b)
    if STRING in (a, b):
        other = b if a == STRING else a
        wanted = types.common_type(a, b)
        if is_numeric(other) or (name == "-" and other in (DATE, TIMESTAMP)):
            return wanted, wanted
    return a, b


def _scaled(name: str, a: pa.DataType, b: pa.DataType) -> Signature | None:
    """An interval times or divided by a number."""
    if a == INTERVAL and is_numeric(b) and name in ("*", "/"):
        return Signature((INTERVAL, _factor(b)), INTERVAL)
    if b == INTERVAL and is_numeric(a) and name == "*":
        return Signature((_factor(a), INTERVAL), INTERVAL)
    return None


def _factor(type: pa.DataType) -> pa.DataType:
    if is_integral(type):
        return BIGINT
    return DOUBLE if is_floating(type) else type


def _numeric(name: str, a: pa.DataType, b: pa.DataType) -> Signature | None:
    if not (is_numeric(a) and is_numeric(b)):
        return None
    if is_floating(a) or is_floating(b):
        type = REAL if a == b == REAL and name != "/" else DOUBLE
        return None if name == "div" else Signature((type, type), type)
    if is_decimal(a) or is_decimal(b):
        a, b = as_decimal(a), as_decimal(b)
        return Signature((a, b), BIGINT if name == "div" else _adjusted(*_DIGITS[name](a, b)))
    if name == "/":
        return Signature((DOUBLE, DOUBLE), DOUBLE)
    type = BIGINT if name == "div" else types.common_type(a, b)
    return Signature((type, type), type)


def _negate_signature(given: Types) -> Signature:
    check_count("-", given, 1, 1)
    return unary_signature("-", given[0])


def unary_signature(name: str, type: pa.DataType) -> Signature:
    """The type of a function that changes at most the sign: a number or an interval."""
    if type in (STRING, NULL):
        type = DOUBLE
    if not is_numeric(type) and type != INTERVAL:
        raise operand_error(name, (type,))
    return Signature((type,), type)


# --- values -----------------------------------------------------------------------------------


def fit(value: Any, type: pa.DataType, expression: Callable[[], str]) -> Any:
    """The exact result as a value of its type, or an error that shows the expression."""
    if is_decimal(type):
        return fit_decimal(value, type)
    if is_floating(type):
        return round_real(value) if type == REAL else canonical(value)
    if holds(type, value):
        return value
    raise EvaluationError(f"{_KIND.get(type, 'integer')} overflow in {expression()}")


_KIND = {DATE: "date", TIMESTAMP: "timestamp", INTERVAL: "interval"}


def _evaluator(name: str, exact: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def evaluate(signature: Signature, a: Any, b: Any) -> Any:
        def expression() -> str:
            left, right = signature.arguments
            return f"{to_string(a, left)} {name} {to_string(b, right)}"

        if signature.result == INTERVAL and name in ("*", "/"):
            value = _scale_interval(name, a, b)
        else:
            value = exact(a, b)
        return fit(value, signature.result, expression)

    return evaluate


def _scale_interval(name: str, a: Any, b: Any) -> int:
    """Rounded half up to whole microseconds; with a double, computed in doubles."""
    if name == "/" and b == 0:
        raise EvaluationError("division by zero")
    if isinstance(a, float) or isinstance(b, float):
        value = float(a) * float(b) if name == "*" else a / b
        if not math.isfinite(value):
            raise EvaluationError("interval overflow")
        exact = Decimal(value)
    else:
        compute = EXACT.multiply if name == "*" else EXACT.divide
        exact = compute(Decimal(a), Decimal(b))
    return int(exact.to_integral_value(ROUND_HALF_UP))


def _add(a: Any, b: Any) -> Any:
    return EXACT.add(a, b) if isinstance(a, Decimal) else a + b


def _subtract(a: Any, b: Any) -> Any:
    return EXACT.subtract(a, b) if isinstance(a, Decimal) else a - b


def _multiply(a: Any, b: Any) -> Any:
    return EXACT.multiply(a, b) if isinstance(a, Decimal) else a * b


def _divide(a: Any, b: Any) -> Any:
    _refuse_zero(b)
    return EXACT.divide(a, b) if isinstance(a, Decimal) else a / b


def _remainder(a: Any, b: Any) -> Any:
    """The result has the sign of the dividend."""
    _refuse_zero(b)
    if isinstance(a, Decimal):
        return EXACT.remainder(a, b)
    if isinstance(a, float):
        return NAN if math.isinf(a) else math.fmod(a, b)
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def _whole_quotient(a: Any, b: Any) -> int:
    """Truncated towards zero."""
    _refuse_zero(b)
    if isinstance(a, Decimal):
        return int(EXACT.divide_int(a, b))
    quotient: int = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _refuse_zero(divisor: Any) -> None:
    if divisor == 0:
        raise EvaluationError("division by zero")


def _negate(signature: Signature, value: Any) -> Any:
    type = signature.result
    negated = value.copy_negate() if isinstance(value, Decimal) else -value
    return fit(negated, type, lambda: f"- {to_string(value, type)}")


# --- facts ------------------------------------------------------------------------------------


def fitting(exact: RangeOf, digits: str = "") -> Callable[..., bool]:
    """Whether the result, `digits` of decimals, always fits its type."""

    def total(result: pa.DataType, *arguments: Argument) -> bool:
        if is_floating(result):
            return True
        given = [argument.type for argument in arguments]
        if is_decimal(result):
            if not all(map(is_decimal, given)):
                return False
            return not digits or _DIGITS[digits](*given)[0] <= MAX_PRECISION
        values = exact(*(argument.range for argument in arguments))
        return values is not None and values.within(range_of_type(result))

    return total


def _dividing(exact: RangeOf) -> Callable[..., bool]:
    """Whether the divisor is never zero, and the result always fits."""

    def total(result: pa.DataType, dividend: Argument, divisor: Argument) -> bool:
        if is_floating(divisor.type) and is_floating(result):
            return isinstance(divisor.value, float) and divisor.value != 0
        values = divisor.range
        if values is None or values.least <= 0 <= values.most or not is_integral(divisor.type):
            return False
        return fitting(exact)(result, dividend, divisor)

    return total


def _no_range(*ranges: Range | None) -> None:
    return None


_RANGES: dict[str, RangeOf] = {
    "+": sum_of,
    "-": difference_of,
    "*": product_of,
    "/": _no_range,
    "%": remainder_of,
    "div": quotient_of,
}


def _facts(name: str) -> FunctionFacts:
    exact = _RANGES[name]
    divides = name in ("/", "%", "div")
    total = _dividing(exact) if divides else fitting(exact, digits=name)
    return FunctionFacts(total, null_if=any, range=exact, steady=True)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": _remainder,
    "div": _whole_quotient,
}


def _order(name: str) -> Order:
    """A divisor is evaluated first. So is an interval beside a number, and a date or timestamp
    to which something is added."""

    def order(signature: Signature) -> Sequence[int]:
        left, right = signature.arguments
        moved = right in (DATE, TIMESTAMP) and left in (INT, INTERVAL)
        scaled = right == INTERVAL and left != INTERVAL and name == "*"
        divided = name in ("/", "%", "div") and signature.result != INTERVAL
        return (from_right if moved or scaled or divided else from_left)(signature)

    return order


FUNCTIONS = [
    *(
        Function(name, _binary(name), _evaluator(name, f), order=_order(name), facts=_facts(name))
        for name, f in _OPERATORS.items()
    ),
    Function(
        *("negate", _negate_signature, _negate),
        facts=FunctionFacts(fitting(negative_of), null_if=any, range=negative_of, steady=True),
    ),
]
