"""Which expressions can fail on some row."""

from __future__ import annotations

import pyarrow as pa

from millstream.logical.expressions import Call, Cast, Column, Expression, Literal, operands
from millstream.model import types

# Functions that have a value for all arguments.
_TOTAL = frozenset(
    ["=", "<>", "<", "<=", ">", ">=", "<=>", "is null", "in", "and", "or", "not", "case", "if",
     "coalesce", "nvl2", "nullif", "greatest", "least", "upper", "lower", "trim", "btrim", "ltrim",
     "rtrim", "concat", "||", "length", "substring", "left", "right", "replace", "startswith",
     "endswith", "contains", "isnan", "nanvl", "year", "month", "day", "hour", "minute",
     "second", "quarter", "dayofweek", "dayofyear", "weekday", "weekofyear", "to_date"]
)  # fmt: skip


def can_fail(expression: Expression) -> bool:
    """Whether some row may make its evaluation fail; False only where that is known."""
    match expression:
        case Column() | Literal():
            return False
        case Cast(operand=operand, type=target, attempt=attempt):
            return can_fail(operand) or not (attempt or _widens(operand.type, target))
        case Call(function=function, type=type):
            rounds = types.is_floating(type) and function in ("+", "-", "*")
            total = rounds or function in _TOTAL
            return not total or any(map(can_fail, operands(expression)))
    return True


def _widens(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether every value of a type is one of the other."""
    if source == target or source == types.NULL or target == types.STRING:
        return True
    if types.is_floating(target):
        return types.is_numeric(source)
    if target == types.BIGINT:
        return bool(source == types.INT)
    if types.is_decimal(target):
        exact = types.is_integral(source) or types.is_decimal(source)
        if not exact:
            return False
        given = types.as_decimal(source)
        whole = target.precision - target.scale >= given.precision - given.scale
        return bool(whole and target.scale >= given.scale)
    return bool(source == types.DATE and target == types.TIMESTAMP)
