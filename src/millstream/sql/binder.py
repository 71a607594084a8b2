"""From a parsed query to a logical plan. Checks names, types and rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from millstream.logical.analysis import growing, seeing_only_now
from millstream.logical.catalog import Catalog, DerivedStream, Stream
from millstream.logical.expressions import depth
from millstream.logical.plan import (
    Aggregate,
    Difference,
    Distinct,
    Granularity,
    Intersection,
    Join,
    Map,
    Named,
    Plan,
    Rstream,
    Source,
    TopN,
    Union,
    expressions,
    rename,
)
from millstream.model import types
from millstream.model.durations import Duration, chronons
from millstream.model.errors import BindError, Diagnostic, Span, listed
from millstream.model.modes import Emit
from millstream.model.time import ANY_TIME, TimeDomain
from millstream.sql.clauses import AsOf
from millstream.sql.ordering import complete_order, limit_of, output_named, sort_key
from millstream.sql.references import column_list, explaining
from millstream.sql.relations import Placement
from millstream.sql.scalar import ScalarBinder
from millstream.sql.scope import Scope, name_of, part, refuse_others, span_of
from millstream.sql.select import SelectBinder
from millstream.sql.statements import QueryStatement, clauses_of
from millstream.sql.whole_decimals import meeting_fractions
from millstream.sql.windows import ignored_bounds

RESERVED_OUTPUTS = ("valid_from", "valid_to", "at", "change")

ASKED_ONCE = "it is allowed only in a SELECT over views and tables"

_SET_OPERATIONS: dict[type[exp.Expression], type[Plan]] = {
    exp.Union: Union,
    exp.Except: Difference,
    exp.Intersect: Intersection,
}


@dataclass(frozen=True)
class Bound:
    """A query's plan, the streams it reads, and warnings."""

    plan: Plan
    emit: Emit
    depends_on: frozenset[str]
    warnings: tuple[Diagnostic, ...]


def bind_query(
    query: QueryStatement,
    catalog: Catalog,
    parameters: Mapping[str, object] | None = None,
    strict: bool = False,
) -> Bound:
    statement = StatementBinder(catalog, parameters or {})
    try:
        plan = Placement(catalog).placed(statement.query(query.tree, None, {}))
        _check_depth(plan, query.span)
    except RecursionError:
        raise BindError("the query is nested too deeply", query.span, _SHALLOWER) from None
    _check_output_names(query, plan)
    if query.every is not None:
        plan = given_every(query.every, plan)
    return Bound(
        plan,
        query.emit or Emit.FINAL,
        frozenset(statement.used),
        tuple(_warnings(plan, query, statement, strict)),
    )


def given_every(duration: Duration, plan: Plan) -> Plan:
    """EMIT EVERY: the whole answer at each multiple of a period."""
    every = chronons(duration, plan.domain, "the time from answer to answer")
    return Rstream(Granularity(plan, every), every)


_DEEPEST = 150  # levels of an expression
_SHALLOWER = "compute parts of it in a derived stream: CREATE STREAM … AS SELECT …"


def _check_depth(plan: Plan, span: Span | None) -> None:
    """Refuse expressions that would exhaust the stack when optimized or printed."""
    deepest = max((depth(part) for node in plan.walk() for part in expressions(node)), default=0)
    if deepest > _DEEPEST:
        raise BindError(
            f"an expression is nested {deepest:,} levels deep; the maximum is {_DEEPEST}",
            span,
            "compute parts of it in a subquery in FROM; AND and OR may be of any length",
        )


class StatementBinder:
    """What all parts of a statement share: the catalog, parameters, unused names, and the time
    domain of its streams."""

    def __init__(self, catalog: Catalog, parameters: Mapping[str, object]) -> None:
        self.catalog = catalog
        self.parameters = parameters
        self.used: dict[str, TimeDomain] = {}
        self.places: dict[str, Span | None] = {}  # where each stream is named first
        self.inherited: set[int] = set()  # nodes from derived streams
        self._taken: set[str] = set()

    def fresh(self, base: str) -> str:
        """`base`, or `base_2` and so on where the statement has used it."""
        name, number = base, 1
        while name.lower() in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name.lower())
        return name

    def note_use(self, stream: str, domain: TimeDomain, span: Span | None) -> None:
        for other, known in self.used.items():
            if known != domain and ANY_TIME not in (known, domain):
                raise BindError(
                    f'streams "{other}" and "{stream}" have different times: '
                    f"{known.describe()} and {domain.describe()}",
                    span,
                    "all streams of a query share one time type and unit",
                )
        self.used[stream] = domain
        self.places.setdefault(stream, span)

    def kept(
        self, entry: Stream | DerivedStream, as_of: AsOf | None, span: Span | None
    ) -> Plan | None:
        """A plan over the stored rows of a view or a table; None: use its own plan."""
        if as_of is not None:
            raise BindError("AS OF cannot be used in a continuous query", as_of.span, ASKED_ONCE)
        return None

    def history(self, entry: Stream | DerivedStream, span: Span | None) -> Plan:
        """A plan over the retained rows of a view or a stream."""
        raise BindError("HISTORY cannot be used in a continuous query", span, ASKED_ONCE)

    def query(self, tree: exp.Expression, outer: Scope | None, tables: Mapping[str, Plan]) -> Plan:
        """The plan of a query; its output columns have no qualifier."""
        tables = self._with(tree, outer, tables)
        if isinstance(tree, exp.Subquery):
            refuse_others(tree, ("this", "with", "order", "limit"), "a query")
            if tree.args.get("order") is None and tree.args.get("limit") is None:
                return self.query(tree.this, outer, tables)
            return self._top(tree, self.query(tree.this, outer, tables))
        if isinstance(tree, exp.SetOperation):
            return self._set_operation(tree, outer, tables)
        if isinstance(tree, exp.Select):
            return SelectBinder(self, tree, outer, tables).bind()
        raise BindError("expected a SELECT", span_of(tree))

    def _with(
        self, tree: exp.Expression, outer: Scope | None, tables: Mapping[str, Plan]
    ) -> Mapping[str, Plan]:
        clause = part(tree, "with")
        if clause is None:
            return tables
        if clause.args.get("recursive"):
            raise BindError("WITH RECURSIVE is not supported", span_of(clause))
        visible = dict(tables)
        own: set[str] = set()
        for entry in clause.expressions:
            refuse_others(entry, ("this", "alias"), "WITH")
            name = name_of(entry.args["alias"].this)
            if name.text.lower() in own:
                raise BindError(f'WITH names "{name.text}" twice', name.span)
            own.add(name.text.lower())
            unseen = outer.relations if outer is not None else []
            with explaining(unseen, "a query in WITH cannot refer to the outer query"):
                plan = self.query(entry.this, None, visible)
            columns = [column.name for column in entry.args["alias"].args.get("columns") or []]
            if columns:
                columns = column_list(columns, len(plan.schema), "WITH", name.span)
                plan = rename(plan, [("", column) for column in columns])
            # An inner name hides an outer one, however it is spelt.
            visible = {k: v for k, v in visible.items() if k.lower() != name.text.lower()}
            visible[name.text] = plan
        return visible

    def _set_operation(
        self, tree: exp.SetOperation, outer: Scope | None, tables: Mapping[str, Plan]
    ) -> Plan:
        refuse_others(tree, ("this", "expression", "distinct", "with", "order", "limit"), "a query")
        left = self.query(_side(tree.this), outer, tables)
        right = self.query(_side(tree.expression), outer, tables)
        left, right = self._aligned(tree, left, right)
        node = _SET_OPERATIONS[type(tree)]
        plan: Plan
        if not tree.args.get("distinct"):
            plan = node(left, right)  # type: ignore[call-arg]
        elif node is Difference:
            plan = Difference(Distinct(left), Distinct(right))
        else:
            plan = Distinct(node(left, right))  # type: ignore[call-arg]
        return self._top(tree, plan)

    def _aligned(self, tree: exp.SetOperation, left: Plan, right: Plan) -> tuple[Plan, Plan]:
        """Both sides cast to common types, column by column."""
        word = type(tree).__name__.upper()
        if len(left.schema) != len(right.schema):
            raise BindError(
                f"the sides of {word} have {len(left.schema)} and {len(right.schema)} columns",
                span_of(tree.expression),
            )
        common = []
        for number, (a, b) in enumerate(zip(left.schema, right.schema, strict=True), 1):
            type_ = types.common_type(a.type, b.type)
            if type_ is None:
                raise BindError(
                    f"column {number} of {word} is {types.sql_name(a.type)} on one side and "
                    f"{types.sql_name(b.type)} on the other",
                    span_of(tree.expression),
                    "cast one of them with CAST(… AS …)",
                )
            common.append(type_)
        return _cast_columns(left, common), _cast_columns(right, common)

    def _top(self, tree: exp.Expression, plan: Plan) -> Plan:
        limit = limit_of(tree, self.parameters)
        if limit is None:
            return plan
        columns = [field.column for field in plan.schema]
        keys = []
        for item in tree.args["order"].expressions:
            column = output_named(item.this, columns)
            if column is None:
                raise BindError(
                    "ORDER BY of a set operation names output columns only",
                    span_of(item),
                    f"the columns are {listed(column.name for column in columns)}",
                )
            keys.append(sort_key(item, column))
        return TopN(plan, limit, complete_order(keys, columns))


def _side(tree: exp.Expression) -> exp.Expression:
    """A side of a set operation, without redundant brackets."""
    while isinstance(tree, exp.Subquery) and {k for k, v in tree.args.items() if v} == {"this"}:
        tree = tree.this
    return tree


def _cast_columns(plan: Plan, targets: list[object]) -> Plan:
    if [field.type for field in plan.schema] == targets:
        return plan
    outputs = tuple(
        Named(ScalarBinder.cast(field.column, target), field.name, field.qualifier)
        for field, target in zip(plan.schema, targets, strict=True)
    )
    return Map(plan, outputs)


def _check_output_names(query: QueryStatement, plan: Plan) -> None:
    for field in plan.schema:
        if field.name.lower() in RESERVED_OUTPUTS:
            raise BindError(
                f'output column "{field.name}" has the name of a column that is added to results',
                _item_named(query.tree, field.name) or query.span,
                f"give it another name with AS, such as my_{field.name}",
            )


def _item_named(tree: exp.Expression, name: str) -> Span | None:
    """The position of an output column in the select list."""
    select = tree if isinstance(tree, exp.Select) else tree.find(exp.Select)
    for item in select.expressions if select is not None else []:
        if item.alias_or_name.lower() == name.lower():
            return span_of(item)
    return None


def _warnings(
    plan: Plan, query: QueryStatement, statement: StatementBinder, strict: bool
) -> Iterator[Diagnostic]:
    """Warnings about the operators that this statement adds. Warnings about a derived stream were
    given when it was created."""
    for operator in seeing_only_now(plan):
        if id(operator) not in statement.inherited:
            names = {Join: "a join", Distinct: "DISTINCT", Aggregate: "an aggregate"}
            what = names[type(operator)]
            yield Diagnostic(
                f"{what} sees only rows of the same instant, because no stream below it has a "
                "window",
                _place(operator, statement) or query.span,
                "write WINDOW(RANGE d) after the stream",
                severity="warning",
            )
            break
    for stream, column, how in meeting_fractions(plan, statement.catalog):
        yield Diagnostic(
            f'column "{column}" of "{stream}" is declared DECIMAL without a scale, which holds '
            f"whole numbers, and is {how} with fractions here",
            statement.places.get(stream) or query.span,
            "declare it with a scale, such as DECIMAL(10, 2)",
            severity="warning",
        )
    for node, what, source in growing(plan):
        if id(node) in statement.inherited:
            continue
        message = (
            f'{what} keeps every row of "{source.stream}" forever, because its window is UNBOUNDED'
        )
        span = statement.places.get(source.stream) or query.span
        help = "write a bounded window such as WINDOW(RANGE 1 DAY)"
        if strict:
            raise BindError(message, span, help)
        yield Diagnostic(message, span, help, severity="warning")
    for node in query.tree.walk(bfs=False):
        yield from ignored_bounds(clauses_of(node))


def _place(plan: Plan, statement: StatementBinder) -> Span | None:
    """The position at which the statement names a stream that the plan reads."""
    sources = (node.stream for node in plan.walk() if isinstance(node, Source))
    return next((s for s in map(statement.places.get, sources) if s is not None), None)
