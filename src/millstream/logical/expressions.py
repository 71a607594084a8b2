"""Scalar and aggregate expressions of bound plans. Names are resolved, types are known, and casts
are explicit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeAlias, TypeVar

import pyarrow as pa

from millstream.logical import aggregates, functions
from millstream.logical.functions import cast_facts

T = TypeVar("T")


@dataclass(frozen=True)
class Column:
    """A column of the input, by its unique name in the schema."""

    name: str
    type: pa.DataType
    qualifier: str = ""
    nullable: bool = field(default=True, compare=False)

    @property
    def key(self) -> tuple[str, str]:
        return self.qualifier, self.name

    @property
    def outward(self) -> OuterColumn:
        """The column as a subquery sees it."""
        return OuterColumn(self.name, self.type, self.qualifier, self.nullable)


@dataclass(frozen=True)
class OuterColumn:
    """A column of an enclosing query. Binding a subquery creates these and unnesting removes them,
    so a finished plan has none."""

    name: str
    type: pa.DataType
    qualifier: str = ""
    nullable: bool = field(default=True, compare=False)

    @property
    def key(self) -> tuple[str, str]:
        return self.qualifier, self.name

    @property
    def inward(self) -> Column:
        """The column as the query it belongs to sees it."""
        return Column(self.name, self.type, self.qualifier, self.nullable)


@dataclass(frozen=True)
class Literal:
    value: object
    type: pa.DataType


@dataclass(frozen=True)
class Cast:
    """CAST, or TRY_CAST (`attempt`), which is NULL where CAST fails."""

    operand: Expression
    type: pa.DataType
    attempt: bool = False


@dataclass(frozen=True)
class Call:
    """A scalar function or operator of `logical.functions`, or a user-defined function."""

    function: str
    arguments: tuple[Expression, ...]
    type: pa.DataType


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate over the rows of a group; occurs only in Aggregate nodes.

    `order` is the order for FIRST, LAST and ARRAY_AGG; `filter` excludes rows.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: pa.DataType
    distinct: bool = False
    filter: Expression | None = None
    order: tuple[Expression, ...] = ()


Expression: TypeAlias = Column | OuterColumn | Literal | Cast | Call | AggregateCall

TRUE = Literal(True, pa.bool_())


def operands(expression: Expression) -> tuple[Expression, ...]:
    match expression:
        case Cast(operand=operand):
            return (operand,)
        case Call(arguments=arguments):
            return arguments
        case AggregateCall(arguments=arguments, filter=None, order=order):
            return arguments + order
        case AggregateCall(arguments=arguments, filter=condition, order=order):
            assert condition is not None
            return (*arguments, condition, *order)
        case _:
            return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """All parts, each before its operands, from left to right."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += reversed(operands(part))


def rewrite(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """`expression` with `change` applied to every part of it, operands first."""
    match expression:
        case Cast(operand=operand):
            expression = replace(expression, operand=rewrite(operand, change))
        case Call(arguments=arguments):
            expression = replace(expression, arguments=_rewrite_all(arguments, change))
        case AggregateCall(arguments=arguments, filter=condition, order=order):
            expression = replace(
                expression,
                arguments=_rewrite_all(arguments, change),
                filter=None if condition is None else rewrite(condition, change),
                order=_rewrite_all(order, change),
            )
    return change(expression)


def _rewrite_all(
    expressions: tuple[Expression, ...], change: Callable[[Expression], Expression]
) -> tuple[Expression, ...]:
    return tuple(rewrite(expression, change) for expression in expressions)


def nullable(expression: Expression) -> bool:
    """False only where the value is known never to be NULL."""
    match expression:
        case Column(nullable=flag) | OuterColumn(nullable=flag):
            return flag
        case Literal(value=value):
            return value is None
        case Cast(operand=operand, type=type, attempt=False):
            return nullable(operand) or cast_facts.makes_nulls(operand.type, type)
        case AggregateCall(function=name):
            aggregate = aggregates.lookup(name)
            return aggregate is None or aggregate.empty is None
        case Call(function=name, arguments=arguments):
            function = functions.lookup(name)
            return function is None or function.facts.null_if(map(nullable, arguments))
    return True


def conjuncts(condition: Expression | None) -> list[Expression]:
    """The operands of AND, from left to right; empty without a condition."""
    if isinstance(condition, Call) and condition.function == "and":
        return [part for argument in condition.arguments for part in conjuncts(argument)]
    return [] if condition is None else [condition]


def conjunction(parts: list[Expression]) -> Expression | None:
    """The AND of the parts, with nested ANDs flattened; None if there are no parts."""
    parts = [conjunct for part in parts for conjunct in conjuncts(part)]
    if not parts:
        return None
    return chained(parts, lambda left, right: Call("and", (left, right), pa.bool_()))


_CHAIN = 32  # up to this many operands are connected from left to right


def chained(parts: Sequence[T], connect: Callable[[T, T], T]) -> T:
    """The parts connected by an associative operator, in order; a long chain is a balanced tree, so
    that its depth grows with the logarithm of its length."""
    if len(parts) <= _CHAIN:
        return reduce(connect, parts)
    middle = len(parts) // 2
    return connect(chained(parts[:middle], connect), chained(parts[middle:], connect))


def depth(expression: Expression) -> int:
    """The nesting depth."""
    deepest, waiting = 0, [(expression, 1)]
    while waiting:
        part, level = waiting.pop()
        deepest = max(deepest, level)
        waiting += [(operand, level + 1) for operand in operands(part)]
    return deepest
