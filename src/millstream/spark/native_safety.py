"""Which expressions cannot fail, whatever the row."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from millstream.logical.evaluate import evaluator
from millstream.logical.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    operands,
    rewrite,
    walk,
)
from millstream.logical.functions import EvaluationError, Signature, lookup
from millstream.model import types
from millstream.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    MAX_PRECISION,
    MICROS_PER_SECOND,
    STRING,
    TIMESTAMP,
    is_decimal,
    is_floating,
    is_integral,
)
from millstream.spark.native_ranges import Range, exact_range, has_range, range_of_type, value_range


def non_failing(expression: Expression) -> bool:
    """Whether no row makes the expression fail. Functions of the user's may always do."""
    return all(map(_is_safe, walk(folded(expression))))


def folded(expression: Expression) -> Expression:
    """The expression with literals for what is computed of literals alone, unless that fails."""
    return rewrite(expression, _folded)


def _folded(part: Expression) -> Expression:
    constant = all(isinstance(operand, Literal) for operand in operands(part))
    if not isinstance(part, Cast | Call) or not constant or not _is_built_in(part):
        return part
    try:
        return Literal(evaluator(part, (), {})(()), part.type)
    except EvaluationError:
        return part


def _is_built_in(part: Cast | Call) -> bool:
    """And gives the same value each time."""
    function = lookup(part.function) if isinstance(part, Call) else None
    return isinstance(part, Cast) or (function is not None and function.deterministic)


def _is_safe(part: Expression) -> bool:
    """Whether a part does not fail where its operands do not."""
    match part:
        case Column() | Literal():
            return True
        case Cast(operand=operand, type=target, attempt=attempt):
            return attempt or cast_is_safe(operand, target)
        case Call(function=name):
            return name in _SAFE or name.startswith(".") or _holds(_SAFE_IF.get(name), part)
    return False


def _holds(condition: Callable[[Call], bool] | None, call: Call) -> bool:
    return condition is not None and condition(call)


# --- casts ------------------------------------------------------------------------------------


def cast_is_safe(operand: Expression, target: pa.DataType) -> bool:
    """Whether every value of the operand can be cast."""
    source = operand.type
    if source in (target, types.NULL) or (source == BOOLEAN and not is_decimal(target)):
        return True
    if target == STRING or (source, target) in ((STRING, BINARY), (TIMESTAMP, DATE)):
        return True
    if has_range(source) and has_range(target):
        return _moved_fits(value_range(operand), source, target)
    if is_decimal(target):
        return _fits_decimal(operand, target)
    if is_decimal(source) and is_integral(target):
        return _whole_part(source).within(range_of_type(target))
    numeric = types.is_numeric(source) or source == TIMESTAMP
    return bool(numeric and (is_floating(target) or target == BOOLEAN))


def _moved_fits(values: Range, source: pa.DataType, target: pa.DataType) -> bool:
    """Of types whose values are integers; seconds and days become microseconds and back."""
    if target == TIMESTAMP:
        values = values.times(types.MICROS_PER_DAY if source == DATE else MICROS_PER_SECOND)
    elif source == TIMESTAMP:
        values = values.over(MICROS_PER_SECOND)
    return values.within(range_of_type(target))


def _fits_decimal(operand: Expression, target: pa.DataType) -> bool:
    source, room = operand.type, _whole_part(target)
    if source == BOOLEAN:
        return room.most >= 1
    if is_integral(source):
        return value_range(operand).within(room)
    if not is_decimal(source):
        return False
    rounded = target.scale < source.scale  # upwards, perhaps, to one digit more
    return bool(_whole_part(source).most + rounded <= room.most)


def _whole_part(type: pa.DataType) -> Range:
    """The integers that a decimal type holds, or cuts its values to."""
    most = 10 ** (type.precision - type.scale) - 1
    return Range(-most, most)


# --- calls ------------------------------------------------------------------------------------

_SAFE = frozenset(
    [
        *("=", "<>", "<", "<=", ">", ">=", "<=>", "in", "is null", "and", "or", "not"),
        *("case", "if", "nvl2", "coalesce", "greatest", "least"),
        *("sqrt", "exp", "ln", "log", "log2", "log10", "sign", "sin", "cos", "tan", "asin", "acos"),
        *("atan", "atan2", "degrees", "radians", "power", "isnan", "pi"),
        *("||", "concat", "concat_ws", "length", "substring", "upper", "lower", "initcap", "left"),
        *("right", "trim", "ltrim", "rtrim", "btrim", "replace", "startswith", "endswith"),
        *("contains", "position", "translate", "reverse", "ascii", "chr", "md5", "sha2", "crc32"),
        *("year", "quarter", "month", "day", "weekday", "dayofweek", "dayofyear", "weekofyear"),
        *("hour", "minute", "second", "extract_second", "to_date", "unix_seconds", "unix_millis"),
        *("unix_micros", "array", "size", "array_contains", "nanvl", "trunc"),
    ]
)


def _exact(call: Call) -> bool:
    """Arithmetic whose result always fits its type, as it is."""
    if is_floating(call.type):
        return True
    if is_decimal(call.type):
        return all(is_decimal(a.type) for a in call.arguments) and _digits(call) <= MAX_PRECISION
    exact = exact_range(call)
    return exact is not None and exact.within(range_of_type(call.type))


def _digits(call: Call) -> int:
    """How many digits the result has that no rule shortened."""
    given = [argument.type for argument in call.arguments]
    if len(given) == 1:
        return int(given[0].precision)
    if call.function == "*":
        return 1 + sum(int(type.precision) for type in given)
    whole, scale = max(t.precision - t.scale for t in given), max(t.scale for t in given)
    return int(whole + scale + 1)


def _divides(call: Call) -> bool:
    """Division by something that is never zero."""
    divisor = call.arguments[1]
    if is_floating(divisor.type):
        return isinstance(divisor, Literal) and divisor.value not in (None, 0)
    if not is_integral(divisor.type):
        return False
    values = value_range(divisor)
    return (values.least > 0 or values.most < 0) and _exact(call)


def _rounds(call: Call) -> bool:
    value = call.arguments[0]
    if is_floating(value.type):
        return call.function == "round"
    if is_decimal(value.type):
        return bool(call.type.precision - call.type.scale > value.type.precision - value.type.scale)
    return len(call.arguments) == 1


def _agrees_to_constants(call: Call) -> bool:
    """The arguments after the text are constants, and ones that the function accepts."""
    function = lookup(call.function)
    assert function is not None
    values = [a.value for a in call.arguments[1:] if isinstance(a, Literal)]
    if len(values) < len(call.arguments) - 1 or None in values:
        return False
    try:
        function.evaluate(Signature(tuple(a.type for a in call.arguments), call.type), "", *values)
    except EvaluationError:
        return False
    return True


def _of_one_type(call: Call) -> bool:
    return len({argument.type for argument in call.arguments}) == 1


def _in_microseconds(factor: int) -> Callable[[Call], bool]:
    def holds(call: Call) -> bool:
        (count,) = call.arguments
        if not is_integral(count.type):
            return False
        return value_range(count).times(factor).within(range_of_type(TIMESTAMP))

    return holds


_SAFE_IF: dict[str, Callable[[Call], bool]] = {
    **dict.fromkeys(("+", "-", "*", "negate", "abs", "date_add", "date_sub", "datediff"), _exact),
    **dict.fromkeys(("/", "%", "div"), _divides),
    **dict.fromkeys(("ceil", "floor", "round"), _rounds),
    **dict.fromkeys(("like", "rlike", "split_part"), _agrees_to_constants),
    "nullif": _of_one_type,
    "instr_from": lambda call: len(call.arguments) < 4,
    "timestamp_seconds": _in_microseconds(MICROS_PER_SECOND),
    "timestamp_millis": _in_microseconds(1000),
    "timestamp_micros": _in_microseconds(1),
}
