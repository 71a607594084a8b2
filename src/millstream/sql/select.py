"""One SELECT: FROM, WHERE, GROUP BY, HAVING, the select list, DISTINCT, ORDER BY … LIMIT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.errors import BindError, Span
from millstream.logical.expressions import (
    AggregateCall,
    Call,
    Cast,
    Column,
    Expression,
    OuterColumn,
    conjunction,
    operands,
    walk,
)
from millstream.logical.plan import (
    Aggregate,
    CountWindow,
    Distinct,
    Filter,
    Granularity,
    Join,
    JoinKind,
    Map,
    Named,
    PartitionedWindow,
    Plan,
    SortKey,
    Source,
    TimeWindow,
    TopN,
)
from millstream.sql.parser import STREAM_FUNCTIONS
from millstream.sql.references import FromBinder
from millstream.sql.scalar import (
    ScalarBinder,
    bind_aggregate,
    is_aggregate,
    is_ordered_aggregate,
    is_subquery,
)
from millstream.sql.scope import Scope, name_of, part, refuse_others, span_of
from millstream.sql.subqueries import SubqueryBinder, exactly_one_row
from millstream.sql.unnest import outer_columns
from millstream.sql.windows import apply_stream_function, with_arrival, with_order

if TYPE_CHECKING:
    from millstream.sql.binder import StatementBinder

_UNDERSTOOD = (
    "with", "expressions", "from", "joins", "where", "group", "having", "distinct", "order",
    "limit",
)  # fmt: skip


class SelectBinder:
    """Binds one SELECT. `plan` grows from FROM to the select list; the binders of the clauses
    attach the joins of their subqueries to it."""

    def __init__(
        self,
        statement: StatementBinder,
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
            raise BindError(
                "a query needs FROM a stream", span_of(node), "write SELECT … FROM stream"
            )
        # What FIRST, LAST and ARRAY_AGG go by; the order of FROM, if any of them asks for it.
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
                    f"{first.name.upper()} stands around the whole select list", span_of(first)
                )
            return list(first.expressions), (first.name.upper(), span_of(first))
        return items, None

    # --- WHERE -----------------------------------------------------------------------------------

    def _where(self, node: exp.Expression) -> None:
        self._condition(node, PlainBinder(self, "WHERE"))

    def _condition(self, node: exp.Expression, binder: HostedBinder) -> None:
        """Keep the rows for which the condition is TRUE: plain parts first, subqueries after."""
        parts = list(_conjuncts(node))
        plain = [binder.predicate(part) for part in parts if not _has_subquery(part)]
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
            if _has_subquery(item):
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
        inner = list(_outermost_subqueries(node))
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
        return [
            node for clause in clauses for node in _outermost_aggregates(clause, self.statement)
        ]

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
        return self._aggregated(_unique(keys), calls)

    def _key(self, node: exp.Expression, items: list[exp.Expression], inner: ScalarBinder) -> Named:
        """A grouping expression: a number or an alias of the select list stands for its item."""
        if isinstance(node, exp.Literal) and not node.is_string:
            number = whole_number(node) or 0
            if not 1 <= number <= len(items):
                raise BindError(
                    f"GROUP BY {node.this} is not a place in the select list", span_of(node)
                )
            node = _unaliased(items[number - 1])
        elif isinstance(node, exp.Column) and not node.args.get("table"):
            node = self._aliased(node, items)
        if list(_outermost_aggregates(node, self.statement)):
            raise BindError("an aggregate cannot stand in GROUP BY", span_of(node))
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

    def _aggregated(self, keys: list[Named], calls: list[exp.Expression]) -> GroupedBinder:
        inner = InputBinder(self, "an aggregate")
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
        return [
            Named(expression, name)
            for (_, expression), name in zip(pairs, _distinct_names(pairs), strict=True)
        ]

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
            return [(name_of(item.args["alias"]).text, expression)]
        if isinstance(item, exp.Column) and isinstance(expression, Column):
            return [(expression.name, expression)]
        text = item.sql(dialect="spark", normalize_functions=False, comments=False)
        return [(" ".join(text.split()), expression)]

    # --- DISTINCT and ORDER BY … LIMIT -----------------------------------------------------------

    def _ordered(self, outputs: list[Named], binder: HostedBinder) -> Plan:
        distinct = self.node.args.get("distinct")
        if distinct is not None:
            refuse_others(distinct, (), "SELECT DISTINCT")
        limit = limit_of(self.node)
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
        """The sort keys over the outputs, and the outputs to add for what is not selected."""
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


# --- binders of the clauses -----------------------------------------------------------------------


class HostedBinder(ScalarBinder):
    """Binds over the plan of a SELECT, to which it attaches subqueries."""

    def __init__(self, select: SelectBinder, place: str) -> None:
        statement = select.statement
        super().__init__(statement.catalog, select.scope, statement.parameters, place)
        self.select = select
        self.subqueries = SubqueryBinder(select, self)
        # Subqueries that are attached already, by the node they were parsed to.
        self.known: dict[int, Expression] = {}

    def subquery(self, node: exp.Expression) -> Expression:
        if id(node) not in self.known:
            self.known[id(node)] = self.subqueries.value(node)
        return self.known[id(node)]

    def column(self, node: exp.Column) -> Expression:
        try:
            return super().column(node)
        except BindError as error:
            name = name_of(node.this)
            for item in self.select.node.expressions if self.place == "WHERE" else []:
                if isinstance(item, exp.Alias) and name.matches(item.alias):
                    raise BindError(
                        error.diagnostic.message,
                        error.diagnostic.span,
                        f'"{name.text}" is an alias of the select list, which WHERE cannot see: '
                        "repeat the expression",
                    ) from None
            raise

    def reduced(self, expression: Expression, at: exp.Expression) -> Expression:
        """An expression over FROM's columns as one over the plan's."""
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
        raise BindError("an aggregate cannot stand inside an aggregate", span_of(node))


class GroupedBinder(HostedBinder):
    """After grouping: an expression is made of grouping expressions and aggregates."""

    def __init__(
        self,
        select: SelectBinder,
        keys: list[Named],
        aggregates: dict[int, Column],
        inner: ScalarBinder,
    ) -> None:
        super().__init__(select, "the select list")
        self.keys = {key.expression: key.field.column for key in keys}
        self.aggregates = aggregates
        self.inner = inner

    def bind(self, node: exp.Expression) -> Expression:
        node_is_plain = not _has_subquery(node) and not any(
            True for _ in _outermost_aggregates(node, self.select.statement)
        )
        if node_is_plain:
            return self.reduced(self.inner.bind(node), node)
        return super().bind(node)

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


# --- parts of trees -------------------------------------------------------------------------------


def _conjuncts(node: exp.Expression) -> Iterator[exp.Expression]:
    while isinstance(node, exp.Paren) and isinstance(node.this, exp.And | exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    else:
        yield node


def _outermost_subqueries(node: exp.Expression) -> Iterator[exp.Expression]:
    if is_subquery(node):
        yield node
        return
    for child in node.iter_expressions():
        yield from _outermost_subqueries(child)


def _has_subquery(node: exp.Expression) -> bool:
    return any(True for _ in _outermost_subqueries(node))


def _outermost_aggregates(
    node: exp.Expression, statement: StatementBinder
) -> Iterator[exp.Expression]:
    """The aggregates of a clause, not those of its subqueries."""
    if isinstance(node, exp.Query | exp.Subquery | exp.Window):
        return
    if is_aggregate(node, statement.catalog):
        yield node
        return
    for child in node.iter_expressions():
        yield from _outermost_aggregates(child, statement)


def _unaliased(node: exp.Expression) -> exp.Expression:
    return node.this if isinstance(node, exp.Alias) else node


def limit_of(node: exp.Expression) -> int | None:
    """n of ORDER BY … LIMIT n; each needs the other."""
    order, limit = node.args.get("order"), node.args.get("limit")
    if order is None and limit is None:
        return None
    if limit is None:
        raise BindError(
            "ORDER BY without LIMIT has no meaning for an answer that changes",
            span_of(order),
            "add LIMIT n for the first n rows of every instant, or sort where you read the answer",
        )
    if order is None:
        raise BindError(
            "LIMIT without ORDER BY would pick rows by chance", span_of(limit), "add ORDER BY"
        )
    if not isinstance(limit, exp.Limit):
        raise BindError("FETCH is not supported", span_of(limit), "write LIMIT n")
    value = limit.expression
    number = whole_number(value)
    if number is None or number < 1:
        raise BindError("LIMIT takes a whole number of 1 or more", span_of(limit))
    return number


def whole_number(node: exp.Expression | None) -> int | None:
    """The value of a literal that is a whole number of at most 18 digits."""
    if isinstance(node, exp.Literal) and not node.is_string:
        text = str(node.this)
        return int(text) if text.isdecimal() and len(text) <= 18 else None
    return None


def output_named(node: exp.Expression, columns: list[Column]) -> Column | None:
    """The output that ORDER BY names, by its place or its name; None if it is an expression."""
    if isinstance(node, exp.Literal) and not node.is_string:
        number = whole_number(node) or 0
        if not 1 <= number <= len(columns):
            raise BindError(
                f"ORDER BY {node.this} is not a place in the select list", span_of(node)
            )
        return columns[number - 1]
    if isinstance(node, exp.Column) and not node.args.get("table"):
        name = name_of(node.this)
        return next((column for column in columns if name.matches(column.name)), None)
    return None


def sort_key(item: exp.Expression, column: Column) -> SortKey:
    refuse_others(item, ("this", "desc", "nulls_first"), "ORDER BY")
    descending = bool(item.args.get("desc"))
    nulls_first = item.args.get("nulls_first")
    return SortKey(column, descending, not descending if nulls_first is None else bool(nulls_first))


def complete_order(keys: list[SortKey], columns: list[Column]) -> tuple[SortKey, ...]:
    """Ties fall to the remaining output columns, left to right."""
    named = {key.expression for key in keys}
    return (*keys, *(SortKey(column) for column in columns if column not in named))


def _distinct_names(pairs: list[tuple[str, Expression]]) -> list[str]:
    """Output names; the second of two equal ones gets a number, as in `a`, `a_1`."""
    taken: set[str] = set()
    names = []
    for name, _ in pairs:
        candidate, number = name, 0
        while candidate.lower() in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.lower())
        names.append(candidate)
    return names


def _unique(keys: list[Named]) -> list[Named]:
    return list({key.expression: key for key in keys}.values())


def _is_first_projection(plan: Plan) -> bool:
    while isinstance(plan, Filter | TimeWindow | CountWindow | PartitionedWindow | Granularity):
        plan = plan.input
    return isinstance(plan, Source)


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
