"""The columns that expressions read, and their substitution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from millstream.logical.expression_facts import can_fail
from millstream.logical.expressions import Column, Expression, conjuncts, nullable, rewrite, walk
from millstream.logical.plan import Schema

Key: TypeAlias = tuple[str, str]  # of a column: qualifier and name


def columns_of(expressions: Iterable[Expression]) -> set[Key]:
    """The columns that expressions read."""
    parts = (part for expression in expressions for part in walk(expression))
    return {part.key for part in parts if isinstance(part, Column)}


def keys_of(schema: Schema) -> set[Key]:
    return {field.key for field in schema}


def substituted(expression: Expression, values: Mapping[Key, Expression]) -> Expression:
    """The expression with other expressions in place of columns."""

    def change(part: Expression) -> Expression:
        return values.get(part.key, part) if isinstance(part, Column) else part

    return rewrite(expression, change)


def movable(predicate: Expression) -> tuple[list[Expression], list[Expression]]:
    """The parts of a predicate that can be tested separately and earlier; and the others.

    If a part can fail, the rows that it sees must stay the same: those for which no part before it
    is FALSE, since AND continues after a NULL.
    """
    parts = conjuncts(predicate)
    if not any(map(can_fail, parts)):
        return parts, []
    count = next(i for i, part in enumerate(parts) if can_fail(part) or nullable(part))
    return parts[:count], parts[count:]
