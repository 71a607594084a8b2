"""Expressions in the clauses of a SELECT: the meaning of aggregates and subqueries in each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from millstream.logical.expressions import (
    AggregateCall,
    Call,
    Cast,
    Column,
    Expression,
    operands,
)
from millstream.logical.plan import (
    CountWindow,
    Filter,
    Granularity,
    Named,
    PartitionedWindow,
    Plan,
    Source,
    TimeWindow,
)
from millstream.model.errors import BindError
from millstream.model.names import Name
from millstream.sql.aggregation import is_aggregate
from millstream.sql.contexts import SelectContext, StatementContext
from millstream.sql.scalar import ScalarBinder, is_subquery
from millstream.sql.scope import name_of, span_of
from millstream.sql.subqueries import SubqueryBinder


class HostedBinder(ScalarBinder):
    """Binds over the plan of a SELECT, to which it attaches subqueries."""

    def __init__(self, select: SelectContext, place: str) -> None:
        statement = select.statement
        super().__init__(statement.catalog, select.scope, statement.parameters, place)
        self.select = select
        self.subqueries = SubqueryBinder(select, self)
        # Subqueries that are already attached, by their syntax node.
        self.known: dict[int, Expression] = {}

    def subquery(self, node: exp.Expression) -> Expression:
        if id(node) not in self.known:
            self.known[id(node)] = self.subqueries.value(node)
        return self.known[id(node)]

    def column(self, node: exp.Column) -> Expression:
        try:
            return super().column(node)
        except BindError as error:
            if self.place != "WHERE" or self.item_called(name_of(node.this)) is None:
                raise
            raise BindError(
                error.diagnostic.message,
                error.diagnostic.span,
                f'"{node.name}" is an alias of the select list, which WHERE cannot see: repeat '
                "the expression",
            ) from None

    def item_called(self, name: Name) -> exp.Expression | None:
        """The item of the select list that has a name as its alias."""
        for item in self.select.node.expressions:
            if isinstance(item, exp.Alias) and name.matches(item.alias):
                return item.this
        return None

    def reduced(self, expression: Expression, at: exp.Expression) -> Expression:
        """An expression over FROM's columns, rewritten over the plan's columns."""
        return expression


class PlainBinder(HostedBinder):
    """Without grouping. `draws` is set once a function that is not deterministic is used."""

    draws = False

    def nondeterministic(self, node: exp.Expression, name: str) -> None:
        if self.place != "the select list" or not _is_first_projection(self.select.plan):
            super().nondeterministic(node, name)
        self.draws = True


class InputBinder(HostedBinder):
    """The arguments of aggregates and the grouping expressions."""

    def aggregate(self, node: exp.Expression) -> Expression:
        raise BindError("aggregates cannot be nested", span_of(node))


class GroupedBinder(HostedBinder):
    """After grouping: an expression is made of grouping expressions and aggregates."""

    def __init__(
        self,
        select: SelectContext,
        keys: list[Named],
        aggregates: dict[int, Column],
        inner: InputBinder,
    ) -> None:
        super().__init__(select, "the select list")
        self.keys = {key.expression: key.field.column for key in keys}
        self.aggregates = aggregates
        self.inner = inner

    def bind(self, node: exp.Expression) -> Expression:
        if self._is_of_the_input(node):
            return self.reduced(self.inner.bind(node), node)
        return super().bind(node)

    def _is_of_the_input(self, node: exp.Expression) -> bool:
        """Whether the node is an expression over the grouped rows: it has no aggregate, no alias
        of the select list, and no subqueries except those of GROUP BY."""
        if any(id(query) not in self.inner.known for query in outermost_subqueries(node)):
            return False
        if any(True for _ in outermost_aggregates(node, self.select.statement)):
            return False
        return not any(self._aliased(column) for column in node.find_all(exp.Column))

    def column(self, node: exp.Column) -> Expression:
        item = self._aliased(node)
        return super().column(node) if item is None else self.bind(item)

    def _aliased(self, node: exp.Column) -> exp.Expression | None:
        """The item of the select list that a name in HAVING refers to, if no column has it."""
        if self.place != "HAVING" or len(node.parts) > 1 or isinstance(node.this, exp.Star):
            return None
        item = self.item_called(name_of(node.this))
        if item is None:
            return None
        try:
            self.scope.resolve(name_of(node.this), None)
        except BindError:
            return item
        return None

    def aggregate(self, node: exp.Expression) -> Expression:
        return self.aggregates[id(node)]

    def reduced(self, expression: Expression, at: exp.Expression) -> Expression:
        if expression in self.keys:
            return self.keys[expression]
        if isinstance(expression, Column):
            columns = (c for c in at.find_all(exp.Column) if c.name == expression.name)
            raise BindError(
                f'column "{expression.name}" must appear in GROUP BY or in an aggregate',
                span_of(next(columns, at)),
            )
        parts = {operand: self.reduced(operand, at) for operand in operands(expression)}
        return _with_operands(expression, parts)


def _with_operands(expression: Expression, parts: dict[Expression, Expression]) -> Expression:
    match expression:
        case Cast(operand=operand):
            return replace(expression, operand=parts[operand])
        case Call(arguments=arguments):
            return replace(expression, arguments=tuple(parts[a] for a in arguments))
        case AggregateCall():
            raise AssertionError("an aggregate was bound as a plain expression")
    return expression


def _is_first_projection(plan: Plan) -> bool:
    while isinstance(plan, Filter | TimeWindow | CountWindow | PartitionedWindow | Granularity):
        plan = plan.input
    return isinstance(plan, Source)


def outermost_subqueries(node: exp.Expression) -> Iterator[exp.Expression]:
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if is_subquery(part):
            yield part
        else:
            waiting += reversed(list(part.iter_expressions()))


def has_subquery(node: exp.Expression) -> bool:
    return any(True for _ in outermost_subqueries(node))


def outermost_aggregates(
    node: exp.Expression, statement: StatementContext
) -> Iterator[exp.Expression]:
    """The aggregates of a clause, not those of its subqueries."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.Query | exp.Subquery | exp.Window):
            continue
        if is_aggregate(part, statement.catalog):
            yield part
        else:
            waiting += reversed(list(part.iter_expressions()))
