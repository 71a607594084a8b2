"""Correlated subqueries become joins.

`unnest(plan, domain)` evaluates a plan with outer columns for every row of `domain`, which contains
the combinations of outer values that occur. The result has the domain's columns first and then the
plan's, and for every row d of the domain the rows of plan(d). The domain is pushed down to where
the outer columns are used; below that point nothing is correlated, and a product with the domain
remains (Neumann and Kemper, Unnesting Arbitrary Queries, 2015).

All of this is correct at each instant, so it is correct for streams.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from millstream.logical import aggregates
from millstream.logical.expressions import (
    AggregateCall,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    OuterColumn,
    conjunction,
    rewrite,
    walk,
)
from millstream.logical.plan import (
    Aggregate,
    Difference,
    Distinct,
    Filter,
    Intersection,
    Join,
    JoinKind,
    Map,
    Named,
    Plan,
    TopN,
    Union,
    expressions,
    map_expressions,
)
from millstream.model.errors import BindError, Span


def outer_columns(plan: Plan) -> list[OuterColumn]:
    """The outer columns that a plan uses, each once, in order of use."""
    found = {
        expression: None
        for node in plan.walk()
        for expression in expressions(node)
        if isinstance(expression, OuterColumn)
    }
    return list(found)


def uses_outer(expression: Expression) -> bool:
    return any(isinstance(part, OuterColumn) for part in walk(expression))


@dataclass(frozen=True)
class Domain:
    """The combinations of outer values; `columns` maps each outer column to a column of `plan`."""

    plan: Plan
    columns: dict[tuple[str, str], Column]

    def inline(self, expression: Expression) -> Expression:
        """The expression with its outer columns taken from the domain."""
        return substitute(expression, self.columns)

    def renamed(self, qualifier: str) -> Domain:
        outputs = tuple(Named(f.column, f.name, qualifier) for f in self.plan.schema)
        columns = {k: replace(c, qualifier=qualifier) for k, c in self.columns.items()}
        return Domain(Map(self.plan, outputs), columns)

    @property
    def outputs(self) -> tuple[Named, ...]:
        return tuple(Named(f.column, f.name, f.qualifier) for f in self.plan.schema)


def substitute(expression: Expression, columns: dict[tuple[str, str], Column]) -> Expression:
    def inlined(part: Expression) -> Expression:
        return columns.get(part.key, part) if isinstance(part, OuterColumn) else part

    return rewrite(expression, inlined)


def domain_of(outer: Plan, used: Sequence[OuterColumn], qualifier: str) -> Domain:
    """The distinct combinations of the used columns in the snapshots of the outer query."""
    outputs: list[Named] = []
    columns: dict[tuple[str, str], Column] = {}
    for number, column in enumerate(used, 1):
        name = (
            column.name
            if column.name not in {o.name for o in outputs}
            else f"{column.name}_{number}"
        )
        outputs.append(Named(column.inward, name, qualifier))
        columns[column.key] = outputs[-1].field.column
    return Domain(Distinct(Map(outer, tuple(outputs))), columns)


def same_values(left: Sequence[Expression], right: Sequence[Expression]) -> Expression | None:
    """Equality of two lists of values, where NULL equals NULL."""
    pairs = zip(left, right, strict=True)
    return conjunction([Call("<=>", pair, pa.bool_()) for pair in pairs])


class Unnester:
    """`fresh` gives names that occur nowhere else in the statement; `span` is the subquery's."""

    def __init__(self, fresh: Callable[[str], str], span: Span | None) -> None:
        self.fresh = fresh
        self.span = span

    def unnest(self, plan: Plan, domain: Domain) -> Plan:
        used = {column.key for column in outer_columns(plan)}
        if not used & domain.columns.keys():
            return Join(domain.plan, plan)
        match plan:
            case Filter():
                return self._filter(plan, domain)
            case Map():
                inner = self.unnest(plan.input, domain)
                outputs = (replace(o, expression=domain.inline(o.expression)) for o in plan.outputs)
                return Map(inner, (*domain.outputs, *outputs))
            case Distinct():
                return Distinct(self.unnest(plan.input, domain))
            case TopN():
                inner = self.unnest(plan.input, domain)
                own = map_expressions(replace(plan, input=inner), domain.inline)
                assert isinstance(own, TopN)
                return replace(own, keys=(*_columns(domain), *own.keys))
            case Union() | Difference() | Intersection():
                other = domain.renamed(self.fresh("outside"))
                return plan.with_inputs(
                    self.unnest(plan.left, domain), self.unnest(plan.right, other)
                )
            case Aggregate() if plan.keys:
                inner = self.unnest(plan.input, domain)
                own = map_expressions(replace(plan, input=inner), domain.inline)
                assert isinstance(own, Aggregate)
                return replace(own, keys=(*domain.outputs, *own.keys))
            case Aggregate():
                return self._scalar_aggregate(plan, domain)
            case Join():
                return self._join(plan, domain)
        raise BindError(
            "below a window, a granularity or ISTREAM a subquery cannot depend on the outer query",
            self.span,
            "move the window to the stream itself",
        )

    def _filter(self, plan: Filter, domain: Domain) -> Plan:
        predicate = domain.inline(plan.predicate)
        inner = self.unnest(plan.input, domain)
        if isinstance(inner, Join) and inner.left is domain.plan and inner.condition is None:
            return replace(inner, condition=predicate)
        return Filter(inner, predicate)

    def _scalar_aggregate(self, plan: Aggregate, domain: Domain) -> Plan:
        """One row for every row of the domain, even if the subquery finds nothing."""
        inner = domain.renamed(self.fresh("outside"))
        own = map_expressions(replace(plan, input=self.unnest(plan.input, inner)), inner.inline)
        assert isinstance(own, Aggregate)
        grouped = replace(own, keys=inner.outputs)
        joined = Join(
            domain.plan, grouped, JoinKind.LEFT, same_values(_columns(domain), _columns(inner))
        )
        values = (
            Named(over_nothing(named), named.name, named.qualifier) for named in plan.aggregates
        )
        return Map(joined, (*domain.outputs, *values))

    def _join(self, plan: Join, domain: Domain) -> Plan:
        condition = None if plan.condition is None else domain.inline(plan.condition)
        right_depends = _depends(plan.right, domain)
        if plan.kind is JoinKind.RIGHT:
            mirrored = self._join(
                Join(plan.right, plan.left, JoinKind.LEFT, plan.condition), domain
            )
            return Map(mirrored, _picked(domain, plan))
        left = self.unnest(plan.left, domain)
        if not right_depends and plan.kind is not JoinKind.FULL:
            return Join(left, plan.right, plan.kind, condition)
        other = domain.renamed(self.fresh("outside"))
        right = self.unnest(plan.right, other)
        same = same_values(_columns(domain), _columns(other))
        both = [part for part in (condition, same) if part is not None]
        joined = Join(left, right, plan.kind, conjunction(both))
        if plan.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return joined
        outputs = _picked(domain, plan)
        if plan.kind is JoinKind.FULL:
            outputs = _coalesced(domain, other) + outputs[len(domain.outputs) :]
        return Map(joined, outputs)


def _depends(plan: Plan, domain: Domain) -> bool:
    return any(column.key in domain.columns for column in outer_columns(plan))


def _columns(domain: Domain) -> tuple[Column, ...]:
    return tuple(f.column for f in domain.plan.schema)


def _picked(domain: Domain, plan: Plan) -> tuple[Named, ...]:
    own = (Named(f.column, f.name, f.qualifier) for f in plan.schema)
    return (*domain.outputs, *own)


def _coalesced(one: Domain, other: Domain) -> tuple[Named, ...]:
    """The value of the side of a full join that exists. A row of the domain is never padding on
    both sides: the side that exists has it, NULLs included."""
    return tuple(
        Named(Call("coalesce", (a, b), a.type), a.name, a.qualifier)
        for a, b in zip(_columns(one), _columns(other), strict=True)
    )


def over_nothing(named: Named) -> Expression:
    """An aggregate's output, with its value over no rows where a left join padded it."""
    call = named.expression
    assert isinstance(call, AggregateCall)
    column = Column(named.name, call.type, named.qualifier)
    function = aggregates.lookup(call.function)
    if function is None or function.empty is None:
        return column
    empty = Cast(Literal(function.empty, pa.int32()), call.type)
    return Call("coalesce", (column, empty), call.type)
