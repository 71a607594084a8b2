"""The condition of a join, taken apart: equalities that can be keys, and the rest.

An equality of an expression of the left with one of the right is a key where neither can fail and
where nothing that can fail stands before it: then every pair that it leaves out is one that the
whole condition leaves out too, without an error.
"""

from __future__ import annotations

import pyarrow as pa

from millstream.logical.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    conjuncts,
    operands,
    walk,
)
from millstream.logical.plan import Join, Schema
from millstream.model import types
from millstream.physical.operators.join import JoinKey

# Functions that have a value for all arguments.
_TOTAL = frozenset(
    ["=", "<>", "<", "<=", ">", ">=", "<=>", "is null", "in", "and", "or", "not", "case", "if",
     "coalesce", "nvl2", "nullif", "greatest", "least", "upper", "lower", "trim", "btrim", "ltrim",
     "rtrim", "concat", "||", "length", "substring", "left", "right", "replace", "startswith",
     "endswith", "contains", "isnan", "nanvl", "year", "month", "day", "hour", "minute",
     "second", "quarter", "dayofweek", "dayofyear", "weekday", "weekofyear", "to_date"]
)  # fmt: skip


def join_keys(plan: Join) -> tuple[tuple[JoinKey, ...], Expression | None]:
    """The keys of a join, and what remains of its condition."""
    keys: list[JoinKey] = []
    rest: list[Expression] = []
    for part in conjuncts(plan.condition):
        key = None if any(map(can_fail, rest)) else _key(part, plan.left.schema, plan.right.schema)
        if key is None:
            rest.append(part)
        else:
            keys.append(key)
    if not rest:
        return tuple(keys), None
    return tuple(keys), rest[0] if len(rest) == 1 else Call("and", tuple(rest), types.BOOLEAN)


def _key(part: Expression, left: Schema, right: Schema) -> JoinKey | None:
    if not isinstance(part, Call) or part.function not in ("=", "<=>") or can_fail(part):
        return None
    a, b = part.arguments
    null_matches = part.function == "<=>"
    if _reads(a, left) and _reads(b, right):
        return JoinKey(a, b, null_matches)
    if _reads(b, left) and _reads(a, right):
        return JoinKey(b, a, null_matches)
    return None


def _reads(expression: Expression, schema: Schema) -> bool:
    """Whether it reads columns of the schema, and no others."""
    columns = [part.key for part in walk(expression) if isinstance(part, Column)]
    return bool(columns) and {*columns} <= {field.key for field in schema}


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
