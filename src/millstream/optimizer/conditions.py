"""The condition of a join, split into equalities that can be keys and the rest.

An equality of an expression of the left with one of the right is a key if neither can fail and
nothing before it can fail: then every pair that it excludes is also excluded by the whole
condition, without an error.
"""

from __future__ import annotations

from millstream.logical.expression_facts import can_fail
from millstream.logical.expressions import (
    Call,
    Column,
    Expression,
    conjuncts,
    walk,
)
from millstream.logical.plan import Join, Schema
from millstream.model import types
from millstream.physical.operators.join import JoinKey


def join_keys(plan: Join) -> tuple[tuple[JoinKey, ...], Expression | None]:
    """The keys of a join, and the rest of its condition."""
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
    """Whether it reads columns, and only columns of the schema."""
    columns = [part.key for part in walk(expression) if isinstance(part, Column)]
    return bool(columns) and {*columns} <= {field.key for field in schema}
