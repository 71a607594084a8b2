"""What an operator reads of its rows, and what can go wrong with that.

A row that cannot be evaluated goes to the errors as the operator sees it. So an operator that can
fail reads all columns, and nothing may keep rows from it, nor give it others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import pyarrow as pa

from millstream.logical.expressions import (
    AggregateCall,
    Cast,
    Column,
    Expression,
    conjuncts,
    nullable,
    operands,
    rewrite,
    walk,
)
from millstream.logical.failing import can_fail
from millstream.logical.plan import (
    Aggregate,
    CountWindow,
    Filter,
    Join,
    Map,
    PartitionedWindow,
    Plan,
    Schema,
    TopN,
)
from millstream.model import types

Key: TypeAlias = tuple[str, str]  # of a column: qualifier and name


def evaluated(plan: Plan) -> tuple[Expression, ...]:
    """What the operator computes of each of its rows, or of pairs of them."""
    match plan:
        case Filter():
            return (plan.predicate,)
        case Map():
            return tuple(output.expression for output in plan.outputs)
        case Join():
            return tuple(conjuncts(plan.condition))
        case Aggregate():
            arguments = (part for call in plan.aggregates for part in operands(call.expression))
            return (*(key.expression for key in plan.keys), *arguments)
        case TopN():
            return (*(sort.expression for sort in plan.order), *plan.keys)
        case CountWindow():
            return plan.order
        case PartitionedWindow():
            return plan.keys + plan.order
    return ()


def rows_can_fail(plan: Plan) -> bool:
    """Whether some row, or pair of rows, may make the operator fail."""
    return any(map(can_fail, evaluated(plan)))


# Aggregates that have a value over any rows; so has the sum of doubles.
_TOTAL = frozenset(
    ["count", "count_if", "min", "max", "first", "last", "array_agg", "bool_and", "bool_or",
     "min_by", "max_by"]
)  # fmt: skip


def aggregate_can_fail(call: Expression) -> bool:
    """Whether the rows of some group may make it fail, or one of them."""
    assert isinstance(call, AggregateCall)
    total = call.function in _TOTAL or (call.function in ("sum", "avg") and _is_double(call.type))
    return not total or any(map(can_fail, operands(call)))


def _is_double(type: pa.DataType) -> bool:
    return bool(type == types.DOUBLE)


def columns_of(expressions: Iterable[Expression]) -> set[Key]:
    """The columns that expressions read."""
    parts = (part for expression in expressions for part in walk(expression))
    return {part.key for part in parts if isinstance(part, Column)}


def keys_of(schema: Schema) -> set[Key]:
    return {field.key for field in schema}


def substituted(expression: Expression, values: Mapping[Key, Expression]) -> Expression:
    """The expression with other expressions in the place of columns."""

    def change(part: Expression) -> Expression:
        return values.get(part.key, part) if isinstance(part, Column) else part

    return rewrite(expression, change)


def movable(predicate: Expression) -> tuple[list[Expression], list[Expression]]:
    """The parts of a predicate that can each be tested apart, and earlier; and the others.

    If a part can fail, the rows that it sees must stay the same: those for which no part before it
    is FALSE, since AND looks on where a part is NULL.
    """
    parts = conjuncts(predicate)
    if not any(map(can_fail, parts)):
        return parts, []
    count = next(i for i, part in enumerate(parts) if can_fail(part) or nullable(part))
    return parts[:count], parts[count:]


def tells_equals_apart(expression: Expression) -> bool:
    """Whether it may differ for values that are equal: 0.0 and -0.0 have different texts."""
    return any(
        isinstance(part, Cast) and part.type == types.STRING and has_zeros(part.operand.type)
        for part in walk(expression)
    )


def has_zeros(type: pa.DataType) -> bool:
    """Whether it may have values that are equal and not the same."""
    return types.is_floating(type) or bool(pa.types.is_nested(type))
