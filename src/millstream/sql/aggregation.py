"""Recognizing and binding aggregates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from millstream.logical import aggregates
from millstream.logical.catalog import Catalog
from millstream.logical.expressions import (
    AggregateCall,
    Column,
    Expression,
    OuterColumn,
    walk,
)
from millstream.logical.functions import SignatureError
from millstream.model.errors import BindError, did_you_mean
from millstream.sql import other_dialects
from millstream.sql.calls import aggregate_of, written_name
from millstream.sql.scope import name_span_of, refuse_others, span_of


class ArgumentBinder(Protocol):
    """Binds the arguments of an aggregate."""

    catalog: Catalog

    def bind(self, node: exp.Expression) -> Expression: ...

    def predicate(self, node: exp.Expression) -> Expression: ...

    def cast(self, operand: Expression, target: pa.DataType) -> Expression: ...


def is_aggregate(node: exp.Expression, catalog: Catalog) -> bool:
    if isinstance(node, exp.Filter):
        return True
    if isinstance(node, exp.Anonymous) and node.name.lower() in catalog.aggregates:
        return True
    return isinstance(node, exp.Func | exp.Any) and _aggregate_of(node) is not None


def _aggregate_of(node: exp.Expression) -> tuple[str, list[exp.Expression], bool] | None:
    """Like `aggregate_of`, but an unsupported form of an aggregate is an error at its position."""
    try:
        found = aggregate_of(node)
    except ValueError as error:
        if any(isinstance(part, exp.Order | exp.WithinGroup) for part in _own_parts(node)):
            raise BindError(
                "ORDER BY inside an aggregate is not supported",
                span_of(node),
                "ARRAY_AGG, FIRST and LAST use the order of arrival; MIN_BY(x, key) and "
                "MAX_BY(x, key) use a key",
            ) from None
        raise BindError(str(error), span_of(node)) from None
    if found is not None and isinstance(node.this, exp.Star):
        refuse_others(node.this, (), "an aggregate")
    return found


def _own_parts(node: exp.Expression) -> Iterator[exp.Expression]:
    yield node
    yield from node.iter_expressions()


def is_ordered_aggregate(node: exp.Expression) -> bool:
    """Whether the value of an aggregate depends on the order of the rows."""
    while isinstance(node, exp.Filter):
        node = node.this
    named = _aggregate_of(node)
    function = aggregates.lookup(named[0]) if named is not None else None
    return function is not None and function.ordered


def bind_aggregate(
    node: exp.Expression, inner: ArgumentBinder, order: tuple[Expression, ...]
) -> AggregateCall:
    """The aggregate of a node, its arguments bound by `inner`; `order` is the order for FIRST."""
    condition = None
    if isinstance(node, exp.Filter):
        condition = inner.predicate(node.expression.this)
        node = node.this
        if not is_aggregate(node, inner.catalog):
            raise BindError("FILTER belongs to an aggregate", span_of(node))
    anonymous = isinstance(node, exp.Anonymous)
    user = inner.catalog.aggregates.get(node.name.lower()) if anonymous else None
    if user is not None:
        given = node.expressions
        distinct = len(given) == 1 and isinstance(given[0], exp.Distinct)
        bound = tuple(inner.bind(a) for a in (given[0].expressions if distinct else given))
        return AggregateCall(user.name, bound, user.returns, distinct, condition)
    named = _aggregate_of(node)
    assert named is not None
    name, arguments, distinct = named
    function = aggregates.lookup(name)
    if function is None:
        written = written_name(node, name)
        raise BindError(
            f'function "{written}" does not exist',
            name_span_of(node),
            other_dialects.FUNCTIONS.get(written)
            or did_you_mean(written, [*aggregates.names(), *inner.catalog.aggregates]),
        )
    bound = tuple(map(inner.bind, arguments))
    _check_own(node, bound)
    try:
        signature = function.signature(tuple(argument.type for argument in bound))
    except SignatureError as error:
        raise BindError(str(error), span_of(node)) from None
    cast = tuple(map(inner.cast, bound, signature.arguments))
    return AggregateCall(
        name, cast, signature.result, distinct, condition, order if function.ordered else ()
    )


def _check_own(node: exp.Expression, arguments: tuple[Expression, ...]) -> None:
    """Refuse an aggregate over outer columns alone: in SQL it belongs to the outer query."""
    parts = [part for argument in arguments for part in walk(argument)]
    outer = any(isinstance(part, OuterColumn) for part in parts)
    if outer and not any(isinstance(part, Column) for part in parts):
        raise BindError(
            "an aggregate in a subquery must use a column of the subquery",
            span_of(node),
            "compute an aggregate of the outer query in a separate query",
        )
