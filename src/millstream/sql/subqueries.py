"""Subqueries in expressions become joins, semi-joins, anti-joins and aggregates (K §7.2.5, §9.3).

In WHERE and HAVING, where only TRUE matters, EXISTS, IN, ANY and ALL are semi-joins and anti-joins:

    x IN (S)         semi-join on x = y
    x NOT IN (S)     anti-join on x = y or unknown
    x θ ANY (S)      semi-join on x θ y
    x θ ALL (S)      anti-join on not x θ y or unknown
    [NOT] EXISTS(S)  semi-join (anti-join) on the condition that correlates S

A scalar subquery is joined. Elsewhere, a quantifier is a scalar subquery that counts the rows for
which it is true and those for which it is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from millstream.logical.analysis import exactly_one_row
from millstream.logical.expressions import (
    AggregateCall,
    Call,
    Column,
    Expression,
    Literal,
    OuterColumn,
    conjunction,
    conjuncts,
    nullable,
    rewrite,
    walk,
)
from millstream.logical.plan import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Map,
    Named,
    Plan,
    rename,
)
from millstream.logical.uniqueness import at_most_one_row
from millstream.model.errors import BindError, Span
from millstream.sql.scalar import BOOLEAN, ScalarBinder
from millstream.sql.scope import Scope, span_of
from millstream.sql.unnest import (
    Unnester,
    domain_of,
    outer_columns,
    over_nothing,
    same_values,
    substitute,
    uses_outer,
)

_OPERATORS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class Host(Protocol):
    """The query to which subqueries are attached; each adds a join to its plan."""

    plan: Plan
    scope: Scope

    def fresh(self, base: str) -> str: ...

    def subplan(self, tree: exp.Expression) -> Plan: ...


class SubqueryBinder:
    def __init__(self, host: Host, binder: ScalarBinder) -> None:
        self.host = host
        self.binder = binder
        self._plans: dict[int, Plan] = {}  # by the tree, so that each subquery is bound once

    # --- where only TRUE matters -----------------------------------------------------------------

    def attach_condition(self, node: exp.Expression) -> bool:
        """Attach a condition that is [NOT] EXISTS, IN, ANY or ALL as a semi-join or anti-join;
        False if it is none of these."""
        negated = False
        while isinstance(node, exp.Paren | exp.Not):
            negated ^= isinstance(node, exp.Not)
            node = node.this
        if isinstance(node, exp.Exists):
            plan = self._plan(node.this)
            self._semi(plan, negated, lambda values: None, span_of(node))
            return True
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            plan = self._plan(node.args["query"])
            outer = self._row_of(node.this)
            self._check_width(plan, len(outer), node)
            self._semi(plan, negated, lambda values: self._equal(outer, values, node, negated),
                       span_of(node))  # fmt: skip
            return True
        if type(node) in _OPERATORS and isinstance(node.expression, exp.Any | exp.All):
            self._quantified(node, negated)
            return True
        return False

    def _quantified(self, node: exp.Expression, negated: bool) -> None:
        operator = _OPERATORS[type(node)]
        every = isinstance(node.expression, exp.All) is not negated
        if negated:
            operator = _NEGATED[operator]
        plan = self._plan(node.expression.this)
        self._check_width(plan, 1, node)
        outer = self.binder.bind(node.this)

        def condition(values: list[Expression]) -> Expression:
            if every:
                return self._fails(operator, outer, values[0], node)
            return self.binder.call(operator, outer, values[0], at=node)

        self._semi(plan, every, condition, span_of(node))

    def _equal(
        self, outer: list[Expression], values: list[Expression], node: exp.Expression, fails: bool
    ) -> Expression:
        pairs = zip(outer, values, strict=True)
        equal = conjunction([self.binder.call("=", x, y, at=node) for x, y in pairs])
        assert equal is not None
        return self._or_unknown(equal) if fails else equal

    def _fails(
        self, operator: str, outer: Expression, value: Expression, node: exp.Expression
    ) -> Expression:
        """`outer operator value` is not TRUE."""
        return self._or_unknown(self.binder.call(_NEGATED[operator], outer, value, at=node))

    def _or_unknown(self, condition: Expression) -> Expression:
        if not nullable(condition):
            return condition
        return self.binder.call("or", condition, self.binder.call("is null", condition))

    def _semi(
        self,
        plan: Plan,
        anti: bool,
        condition: Callable[[list[Expression]], Expression | None],
        span: Span | None,
    ) -> None:
        """Keep the rows of the host for which some row of `plan` satisfies the condition (or, with
        `anti`, none does)."""
        self._check_reachable(plan, span)
        plan, values, pulled = self._opened(plan)
        deeper = self._own_outer(plan)
        if deeper:
            domain = domain_of(self.host.plan, deeper, self.host.fresh("outside"))
            plan = Unnester(self.host.fresh, span).unnest(plan, domain)
            same = same_values([column.inward for column in deeper], list(domain.columns.values()))
            pulled = [*pulled, *([same] if same is not None else [])]
        own = condition([self._inlined(value) for value in values])
        parts = [*([] if own is None else [own]), *map(self._inlined, pulled)]
        kind = JoinKind.ANTI if anti else JoinKind.SEMI
        self.host.plan = Join(self.host.plan, plan, kind, conjunction(parts))

    def _opened(self, plan: Plan) -> tuple[Plan, list[Expression], list[Expression]]:
        """The plan without operators that do not matter to a semi-join, its values, and the
        correlated conditions removed from its top. An uncorrelated plan stays unchanged."""
        if not self._own_outer(plan):
            plan = self.qualified(plan)
            return plan, [field.column for field in plan.schema], []
        while isinstance(plan, Distinct):
            plan = plan.input
        values: list[Expression]
        if isinstance(plan, Map):
            values = [output.expression for output in plan.outputs]
            plan = plan.input
        else:
            plan = self.qualified(plan)
            values = [field.column for field in plan.schema]
        plan, pulled = pull_correlated(plan)
        return plan, values, pulled

    # --- values ----------------------------------------------------------------------------------

    def value(self, node: exp.Expression) -> Expression:
        """The value of a subquery or quantifier, over the host's plan extended by a join."""
        if isinstance(node, exp.Exists):
            return self._attach_scalar(self._exists(node), span_of(node))
        if isinstance(node, exp.In):
            outer = self._row_of(node.this)
            plan = self._plan(node.args["query"])
            self._check_width(plan, len(outer), node)
            return self._attach_scalar(
                self._any(plan, lambda values: self._equal(outer, values, node, False)),
                span_of(node),
            )
        if isinstance(node, exp.Binary):
            return self._quantified_value(node)
        return self.scalar(node)

    def scalar(self, node: exp.Expression) -> Expression:
        plan = self.checked_scalar(node)
        return self._attach_scalar(plan, span_of(node))

    def checked_scalar(self, node: exp.Expression) -> Plan:
        tree = node.this if isinstance(node, exp.Subquery) else node
        plan = self._plan(tree)
        if len(plan.schema) != 1:
            raise BindError(
                f"a scalar subquery has one column, not {len(plan.schema)}", span_of(node)
            )
        if not at_most_one_row(plan):
            raise BindError(
                "a scalar subquery has at most one row, and this one might have more",
                span_of(node),
                "use an aggregate such as MAX, or ORDER BY … LIMIT 1, or use IN or ANY",
            )
        return plan

    def _quantified_value(self, node: exp.Expression) -> Expression:
        operator = _OPERATORS.get(type(node))
        if operator is None:
            raise BindError("ANY and ALL follow a comparison", span_of(node))
        every = isinstance(node.expression, exp.All)
        operator = _NEGATED[operator] if every else operator
        plan = self._plan(node.expression.this)
        self._check_width(plan, 1, node)
        outer = self.binder.bind(node.this)
        held = self._any(plan, lambda values: self.binder.call(operator, outer, values[0], at=node))
        value = self._attach_scalar(held, span_of(node))
        return self.binder.call("not", value) if every else value

    def _exists(self, node: exp.Exists) -> Plan:
        plan = self._plan(node.this)
        count = Named(AggregateCall("count", (), pa.int64()), self.host.fresh("count"))
        zero = Literal(0, pa.int32())
        found = self.binder.call(">", count.field.column, zero)
        return Map(Aggregate(plan, (), (count,)), (Named(found, "exists"),))

    def _any(self, plan: Plan, compare: Callable[[list[Expression]], Expression]) -> Plan:
        """A plan of one row and column: whether `compare` is true for any row, as in SQL."""
        plan = self.qualified(plan)
        condition = _outward(
            compare([field.column for field in plan.schema]), {f.key for f in plan.schema}
        )
        unknown = self.binder.call("is null", condition)
        counts = [
            Named(AggregateCall("count_if", (c,), pa.int64()), self.host.fresh(name))
            for c, name in ((condition, "held"), (unknown, "unknown"))
        ]
        some = [
            self.binder.call(">", named.field.column, Literal(0, pa.int32())) for named in counts
        ]
        value = self.binder.call(
            "case", some[0], Literal(True, BOOLEAN), some[1], Literal(None, pa.null()),
            Literal(False, BOOLEAN),
        )  # fmt: skip
        return Map(Aggregate(plan, (), tuple(counts)), (Named(value, "any"),))

    def _attach_scalar(self, plan: Plan, span: Span | None) -> Expression:
        self._check_reachable(plan, span)
        used = self._own_outer(plan)
        kind = JoinKind.INNER if exactly_one_row(plan) else JoinKind.LEFT
        if not used:
            plan = self.qualified(plan)
            self.host.plan = Join(self.host.plan, plan, kind)
            return self.host.plan.schema[-1].column
        simple = self._attach_by_equality(plan)
        if simple is not None:
            return simple
        domain = domain_of(self.host.plan, used, self.host.fresh("outside"))
        unnested = Unnester(self.host.fresh, span).unnest(plan, domain)
        qualifier = self.host.fresh("subquery")
        names = [f.key for f in domain.plan.schema] + [(qualifier, f.name) for f in plan.schema]
        unnested = rename(unnested, names)
        same = same_values([column.inward for column in used], list(domain.columns.values()))
        self.host.plan = Join(self.host.plan, unnested, kind, same)
        return self.host.plan.schema[-1].column

    def _attach_by_equality(self, plan: Plan) -> Expression | None:
        """An aggregate whose rows are selected by equality with outer values becomes one aggregate,
        grouped by the compared columns, and a left join."""
        if not (isinstance(plan, Map) and isinstance(plan.input, Aggregate)):
            return None
        aggregate = plan.input
        rest, pulled = pull_correlated(aggregate.input)
        grouped = replace(aggregate, input=rest)
        if aggregate.keys or not pulled or self._own_outer(grouped):
            return None
        keys, matches = [], []
        for condition in pulled:
            sides = _sides(condition)
            if sides is None:
                return None
            inner, outer = sides
            key = Named(inner, self.host.fresh("key"))
            keys.append(key)
            matches.append(Call("=", (self._inlined(outer), key.field.column), BOOLEAN))
        grouped = replace(grouped, keys=tuple(keys))
        self.host.plan = Join(self.host.plan, grouped, JoinKind.LEFT, conjunction(list(matches)))
        defaults = {(n.qualifier, n.name): over_nothing(n) for n in aggregate.aggregates}

        def padded(part: Expression) -> Expression:
            return defaults.get(part.key, part) if isinstance(part, Column) else part

        return self._inlined(rewrite(plan.outputs[0].expression, padded))

    # --- shared ----------------------------------------------------------------------------------

    def _plan(self, tree: exp.Expression) -> Plan:
        while isinstance(tree, exp.Subquery) and not tree.args.get("alias"):
            tree = tree.this
        if id(tree) not in self._plans:
            self._plans[id(tree)] = self.host.subplan(tree)
        return self._plans[id(tree)]

    def qualified(self, plan: Plan) -> Plan:
        qualifier = self.host.fresh("subquery")
        return rename(plan, [(qualifier, field.name) for field in plan.schema])

    def _row_of(self, node: exp.Expression) -> list[Expression]:
        nodes = node.expressions if isinstance(node, exp.Tuple) else [node]
        return [self.binder.bind(part) for part in nodes]

    @staticmethod
    def _check_width(plan: Plan, width: int, node: exp.Expression) -> None:
        if len(plan.schema) != width:
            columns = "column" if width == 1 else "columns"
            raise BindError(
                f"the subquery must have {width} {columns}, not {len(plan.schema)}", span_of(node)
            )

    def _own_outer(self, plan: Plan) -> list[OuterColumn]:
        """The outer columns of a plan that belong to the host itself."""
        own = {field.key for field in self.host.plan.schema}
        return [column for column in outer_columns(plan) if column.key in own]

    def _check_reachable(self, plan: Plan, span: Span | None) -> None:
        """An outer column that grouping has removed from the host can no longer be used."""
        own = {field.key for field in self.host.plan.schema}
        declared = {c.key for relation in self.host.scope.relations for c in relation.columns}
        for column in outer_columns(plan):
            if column.key in declared - own:
                raise BindError(
                    f'column "{column.name}" of the outer query must appear in its GROUP BY', span
                )

    def _inlined(self, expression: Expression) -> Expression:
        columns = {field.key: field.column for field in self.host.plan.schema}
        return substitute(expression, columns)


def pull_correlated(plan: Plan) -> tuple[Plan, list[Expression]]:
    """The plan without the correlated conditions of the filters at its top; these conditions."""
    pulled: list[Expression] = []
    kept: list[Expression] = []
    while isinstance(plan, Filter):
        for part in conjuncts(plan.predicate):
            (pulled if uses_outer(part) else kept).append(part)
        plan = plan.input
    rest = conjunction(kept)
    return (plan if rest is None else Filter(plan, rest)), pulled


def _sides(condition: Expression) -> tuple[Expression, Expression] | None:
    """(inner, outer) of an equality between the subquery and the outer query."""
    if not (isinstance(condition, Call) and condition.function == "="):
        return None
    for inner, outer in (condition.arguments, condition.arguments[::-1]):
        outer_has_inner = any(isinstance(part, Column) for part in walk(outer))
        if not uses_outer(inner) and uses_outer(outer) and not outer_has_inner:
            return inner, outer
    return None


def _outward(expression: Expression, inner: set[tuple[str, str]]) -> Expression:
    """The expression as seen from inside the subquery: the host's columns become outer ones."""

    def outward(part: Expression) -> Expression:
        if isinstance(part, Column) and part.key not in inner:
            return part.outward
        return part

    return rewrite(expression, outward)
