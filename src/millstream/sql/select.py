"""One SELECT: FROM, WHERE, GROUP BY, HAVING, the select list, DISTINCT, ORDER BY … LIMIT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from millstream.logical.analysis import exactly_one_row
from millstream.logical.expressions import (
    AggregateCall,
    Column,
    Expression,
    OuterColumn,
    conjunction,
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
    SortKey,
    TopN,
)
from millstream.model.errors import BindError, Span
from millstream.model.names import check_name
from millstream.sql.aggregation import bind_aggregate, is_ordered_aggregate
from millstream.sql.clause_binders import (
    GroupedBinder,
    HostedBinder,
    InputBinder,
    PlainBinder,
    has_subquery,
    outermost_aggregates,
    outermost_subqueries,
)
from millstream.sql.contexts import StatementContext
from millstream.sql.ordering import (
    complete_order,
    limit_of,
    output_named,
    sort_key,
    whole_number,
)
from millstream.sql.parser import STREAM_FUNCTIONS
from millstream.sql.references import FromBinder, distinct_names
from millstream.sql.scalar import ScalarBinder, connected
from millstream.sql.scope import Scope, name_of, part, refuse_others, span_of
from millstream.sql.unnest import outer_columns
from millstream.sql.windows import apply_stream_function, with_arrival, with_order

_UNDERSTOOD = (
    "with", "expressions", "from", "joins", "where", "group", "having", "distinct", "order",
    "limit",
)  # fmt: skip


class SelectBinder:
    """Binds one SELECT. `plan` grows from FROM to the select list; the binders of the clauses
    attach the joins of their subqueries to it."""

    def __init__(
        self,
        statement: StatementContext,
        node: exp.Select,
        outer: Scope | None,
        tables: Mapping[str, Plan],
    ) -> None:
        refuse_others(node, _UNDERSTOOD, "a query")
        self.statement = statement
        self.node = node
        self.tables = tables
        source = part(node, "from")
        if source is None:
            raise BindError("a query needs FROM", span_of(node), "write SELECT … FROM stream")
        # The order for FIRST, LAST and ARRAY_AGG: the order of FROM, if any of them is used.
        self.order: tuple[Expression, ...] = ()
        references = FromBinder(statement, outer, tables)
        self.plan = references.bind(source.this, list(node.args.get("joins") or []))
        self.scope = references.scope

    # --- Host of subqueries ----------------------------------------------------------------------

    def fresh(self, base: str) -> str:
        return self.statement.fresh(base)

    def subplan(self, tree: exp.Expression) -> Plan:
        return self.statement.query(tree, self.scope, self.tables)

    # --- the clauses in order --------------------------------------------------------------------

    def bind(self) -> Plan:
        items, stream_function = self._items()
        calls = self._aggregate_calls(items)
        if any(map(is_ordered_aggregate, calls)):
            self.plan, self.order = with_order(self.plan)
        if (where := self.node.args.get("where")) is not None:
            self._where(where.this)
        binder = self._grouped_or_plain(items, calls)
        if (having := self.node.args.get("having")) is not None:
            if not isinstance(binder, GroupedBinder):
                raise BindError("HAVING needs GROUP BY or an aggregate", span_of(having))
            binder.place = "HAVING"
            self._condition(having.this, binder)
        binder.place = "the select list"
        outputs = self._outputs(items, binder)
        plan = self._ordered(outputs, binder)
        if stream_function is not None:
            plan = apply_stream_function(plan, *stream_function)
        return plan

    def _items(self) -> tuple[list[exp.Expression], tuple[str, Span | None] | None]:
        """The select list, and the ISTREAM, DSTREAM or RSTREAM around all of it (CQL)."""
        items = list(self.node.expressions)
        if not items:
            raise BindError(
                "the select list is empty", span_of(self.node), "write SELECT * for all columns"
            )
        first = items[0]
        if isinstance(first, exp.Tuple) and len(items) == 1 and self.node.args.get("distinct"):
            return list(first.expressions), None  # SELECT DISTINCT(a, b)
        if isinstance(first, exp.Anonymous) and first.name.upper() in STREAM_FUNCTIONS:
            if len(items) > 1:
                raise BindError(
                    f"{first.name.upper()} must enclose the whole select list", span_of(first)
                )
            if any(isinstance(item, exp.Distinct) for item in first.expressions):
                raise BindError(
                    f"DISTINCT must come before {first.name.upper()}",
                    span_of(first),
                    f"write SELECT DISTINCT {first.name.upper()}(…)",
                )
            return list(first.expressions), (first.name.upper(), span_of(first))
        return items, None

    # --- WHERE -----------------------------------------------------------------------------------

    def _where(self, node: exp.Expression) -> None:
        self._condition(node, PlainBinder(self, "WHERE"))

    def _condition(self, node: exp.Expression, binder: HostedBinder) -> None:
        """Keep the rows for which the condition is TRUE: plain parts first, subqueries after."""
        parts = connected(node, exp.And)
        plain = [binder.predicate(part) for part in parts if not has_subquery(part)]
        remaining = []
        for condition in plain:
            placed = _into_join(self.plan, condition)
            if placed is None:
                remaining.append(condition)
            else:
                self.plan = placed
        if (rest := conjunction(remaining)) is not None:
            self.plan = Filter(self.plan, rest)
        for item in parts:
            if has_subquery(item):
                self._subquery_condition(item, binder)

    def _subquery_condition(self, node: exp.Expression, binder: HostedBinder) -> None:
        if binder.subqueries.attach_condition(node):
            return
        if self._attach_as_semijoin(node, binder):
            return
        condition = binder.predicate(node)
        self.plan = Filter(self.plan, condition)

    def _attach_as_semijoin(self, node: exp.Expression, binder: HostedBinder) -> bool:
        """`x θ (SELECT MAX(y) …)`: a semi-join with the one row of an aggregate (K §9.3)."""
        inner = list(outermost_subqueries(node))
        if len(inner) != 1 or not isinstance(inner[0], exp.Subquery):
            return False
        plan = binder.subqueries.checked_scalar(inner[0])
        if outer_columns(plan) or not exactly_one_row(plan):
            return False
        plan = binder.subqueries.qualified(plan)
        binder.known[id(inner[0])] = plan.schema[0].column
        condition = binder.predicate(node)
        self.plan = Join(self.plan, plan, JoinKind.SEMI, condition)
        return True

    # --- GROUP BY --------------------------------------------------------------------------------

    def _aggregate_calls(self, items: list[exp.Expression]) -> list[exp.Expression]:
        """The aggregates of the select list, HAVING and ORDER BY."""
        others = [self.node.args.get(key) for key in ("having", "order")]
        clauses = [*items, *(clause for clause in others if clause is not None)]
        return [node for clause in clauses for node in outermost_aggregates(clause, self.statement)]

    def _grouped_or_plain(
        self, items: list[exp.Expression], calls: list[exp.Expression]
    ) -> HostedBinder:
        group = self.node.args.get("group")
        if group is None and not calls:
            return PlainBinder(self, "the select list")
        if group is not None:
            refuse_others(group, ("expressions",), "GROUP BY")
            for key in group.expressions:
                if isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets):
                    sets = isinstance(key, exp.GroupingSets)
                    word = "GROUPING SETS" if sets else type(key).__name__.upper()
                    raise BindError(f"{word} is not supported in GROUP BY", span_of(key))
        inner = InputBinder(self, "GROUP BY")
        keys = [self._key(node, items, inner) for node in (group.expressions if group else [])]
        return self._aggregated(_unique(keys), calls, inner)

    def _key(self, node: exp.Expression, items: list[exp.Expression], inner: ScalarBinder) -> Named:
        """A grouping expression; a number or an alias refers to an item of the select list."""
        if isinstance(node, exp.Literal) and not node.is_string:
            number = whole_number(node) or 0
            if not 1 <= number <= len(items):
                raise BindError(
                    f"GROUP BY {node.this} is not a position in the select list", span_of(node)
                )
            node = _unaliased(items[number - 1])
        elif isinstance(node, exp.Column) and not node.args.get("table"):
            node = self._aliased(node, items)
        if list(outermost_aggregates(node, self.statement)):
            raise BindError("an aggregate is not allowed in GROUP BY", span_of(node))
        expression = inner.bind(node)
        if isinstance(expression, Column):
            return Named(expression, expression.name, expression.qualifier)
        return Named(expression, self.fresh("key"))

    def _aliased(self, node: exp.Column, items: list[exp.Expression]) -> exp.Expression:
        name = name_of(node.this)
        try:
            self.scope.resolve(name, None)
        except BindError:
            for item in items:
                if isinstance(item, exp.Alias) and name.matches(item.alias):
                    return item.this
        return node

    def _aggregated(
        self, keys: list[Named], calls: list[exp.Expression], inner: InputBinder
    ) -> GroupedBinder:
        inner.place = "an aggregate"
        bound = [bind_aggregate(node, inner, self.order) for node in calls]
        outputs: dict[AggregateCall, Named] = {}
        for call in bound:
            if call not in outputs:
                outputs[call] = Named(call, self.fresh(call.function))
        self.plan = Aggregate(self.plan, tuple(keys), tuple(outputs.values()))
        columns = {
            id(node): outputs[call].field.column for node, call in zip(calls, bound, strict=True)
        }
        return GroupedBinder(self, keys, columns, inner)

    # --- the select list -------------------------------------------------------------------------

    def _outputs(self, items: list[exp.Expression], binder: HostedBinder) -> list[Named]:
        pairs: list[tuple[str, Expression]] = []
        for item in items:
            pairs += self._item_outputs(item, binder)
        if isinstance(binder, PlainBinder) and binder.draws:
            carried = with_arrival(self.plan)
            assert carried is not None
            self.plan = carried
        names = distinct_names([name for name, _ in pairs])
        return [Named(expression, name) for (_, expression), name in zip(pairs, names, strict=True)]

    def _item_outputs(
        self, item: exp.Expression, binder: HostedBinder
    ) -> list[tuple[str, Expression]]:
        if isinstance(item, exp.Star):
            refuse_others(item, (), "the select list")
            columns = self.scope.star(None)
            return [(name, binder.reduced(column, item)) for name, column in columns]
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            refuse_others(item.this, (), "the select list")
            columns = self.scope.star(name_of(item.args["table"]))
            return [(name, binder.reduced(column, item)) for name, column in columns]
        expression = binder.bind(_unaliased(item))
        if isinstance(item, exp.Alias):
            alias = name_of(item.args["alias"])
            check_name(alias)
            return [(alias.text, expression)]
        if isinstance(item, exp.Column):  # the declared name; for a field of a struct, its own
            name = expression.name if isinstance(expression, Column) else item.name
            return [(name, expression)]
        text = item.sql(dialect="spark", normalize_functions=False, comments=False)
        return [(" ".join(text.split()), expression)]

    # --- DISTINCT and ORDER BY … LIMIT -----------------------------------------------------------

    def _ordered(self, outputs: list[Named], binder: HostedBinder) -> Plan:
        distinct = self.node.args.get("distinct")
        if distinct is not None:
            refuse_others(distinct, (), "SELECT DISTINCT")
        limit = limit_of(self.node, self.statement.parameters)
        if limit is None:
            plan: Plan = Map(self.plan, tuple(outputs))
            return Distinct(plan) if distinct is not None else plan
        binder.place = "ORDER BY"
        keys, hidden = self._sort_keys(outputs, binder)
        if hidden and distinct is not None:
            raise BindError(
                "with DISTINCT, ORDER BY names columns of the select list only",
                span_of(self.node.args["order"]),
            )
        plan = Map(self.plan, (*outputs, *hidden))
        plan = Distinct(plan) if distinct is not None else plan
        plan = TopN(plan, limit, complete_order(keys, [o.field.column for o in outputs]))
        if hidden:
            plan = Map(plan, tuple(Named(o.field.column, o.name) for o in outputs))
        return plan

    def _sort_keys(
        self, outputs: list[Named], binder: HostedBinder
    ) -> tuple[list[SortKey], list[Named]]:
        """The sort keys over the outputs, and the outputs to add for keys that are not selected."""
        keys: list[SortKey] = []
        hidden: list[Named] = []
        for item in self.node.args["order"].expressions:
            column = output_named(item.this, [o.field.column for o in outputs])
            if column is None:
                expression = binder.bind(item.this)
                known = next((o for o in outputs if o.expression == expression), None)
                if known is None:
                    known = Named(expression, self.fresh("$order"))
                    hidden.append(known)
                column = known.field.column
            keys.append(sort_key(item, column))
        return keys, hidden


def _unaliased(node: exp.Expression) -> exp.Expression:
    return node.this if isinstance(node, exp.Alias) else node


def _unique(keys: list[Named]) -> list[Named]:
    return list({key.expression: key for key in keys}.values())


def _into_join(plan: Plan, condition: Expression) -> Plan | None:
    """The plan with a condition between two sides placed into the lowest inner join that has
    both; None where it belongs to one side, or where it is correlated."""
    if not isinstance(plan, Join) or plan.kind is not JoinKind.INNER:
        return None
    parts = list(walk(condition))
    if any(isinstance(p, OuterColumn) for p in parts):
        return None
    used = {p.key for p in parts if isinstance(p, Column)}
    left, right = ({f.key for f in side.schema} for side in plan.inputs)
    if used <= left:
        inner = _into_join(plan.left, condition)
        return None if inner is None else replace(plan, left=inner)
    if used <= right:
        inner = _into_join(plan.right, condition)
        return None if inner is None else replace(plan, right=inner)
    both = [condition] if plan.condition is None else [plan.condition, condition]
    return replace(plan, condition=conjunction(both))
