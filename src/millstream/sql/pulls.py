"""Pull queries: over views and tables alone, answered once from the stored rows.

They are plain SQL over constant relations: each view is read at its frontier, or `AS OF t`;
`HISTORY(view)` is its retained rows, with valid_from and valid_to as ordinary columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from millstream.logical.catalog import Catalog, ChangeMode, DerivedStream, Stream, Table
from millstream.logical.expressions import Column
from millstream.logical.instants import chronon
from millstream.logical.plan import Field, Lifetime, Map, Plan, SortKey, Source, TopN
from millstream.model.errors import BindError, QueryError, Span
from millstream.model.time import RAW_TIME, TimeDomain
from millstream.sql.binder import StatementBinder
from millstream.sql.clauses import AsOf
from millstream.sql.ordering import limit_of
from millstream.sql.scope import name_of, part
from millstream.sql.statements import QueryStatement, clauses_of


@dataclass(frozen=True)
class Read:
    """What a query reads: a view or a table now, a view at an instant, or its history."""

    entry: Stream | DerivedStream
    at: int | None = None
    history: bool = False

    def __str__(self) -> str:
        if self.history:
            return f"HISTORY({self.name})"
        return self.name if self.at is None else f"{self.name} AS OF {self.at}"

    @property
    def name(self) -> str:
        return self.entry.name


@dataclass(frozen=True)
class Pull:
    """A plan over what is read, by the names of its sources. The answer is the first `limit` rows
    in the order of `keys`, and has the first `width` columns of the plan."""

    plan: Plan
    reads: Mapping[str, Read]
    keys: tuple[SortKey, ...]
    limit: int | None
    width: int


def is_pull(query: QueryStatement, catalog: Catalog) -> bool:
    """Whether a query reads only views and tables and uses nothing that needs a started query, or
    uses something that no started query supports."""
    references = list(_registered(query.tree, ()))
    if any(_is_history(node) or clauses_of(node).as_of for node in references):
        return True
    return (
        query.emit is None
        and bool(references)
        and all(_is_kept_reference(node, catalog) for node in references)
    )


def _registered(node: exp.Expression, hidden: tuple[str, ...]) -> Iterator[exp.Table]:
    """The references to registered relations, not to queries in WITH. The name of a query in WITH
    is visible in the queries after it and in the query below the WITH, including everything inside
    it; not in the query itself, nor in those before it."""
    waiting = [(node, hidden)]
    while waiting:  # a long chain of AND is deep, so there is no recursion
        current, hidden = waiting.pop()
        inside = []
        clause = part(current, "with")
        for entry in clause.expressions if clause is not None else ():
            inside.append((entry.this, hidden))
            hidden = (*hidden, entry.alias)
        if isinstance(current, exp.Table) and not _is_hidden(current, hidden):
            yield current
        inside += [(child, hidden) for child in current.iter_expressions() if child is not clause]
        waiting += reversed(inside)


def _is_hidden(node: exp.Table, hidden: tuple[str, ...]) -> bool:
    return isinstance(node.this, exp.Identifier) and any(map(name_of(node.this).matches, hidden))


def _is_history(node: exp.Table) -> bool:
    return isinstance(node.this, exp.Anonymous) and node.this.name.upper() == "HISTORY"


def _is_kept_reference(node: exp.Table, catalog: Catalog) -> bool:
    if not isinstance(node.this, exp.Identifier) or str(clauses_of(node)):
        return False
    entry = catalog.find_stream(name_of(node.this))
    return entry is not None and is_kept(entry)


def is_kept(entry: Stream | DerivedStream) -> bool:
    """Whether it has current rows; a table whose rows have their own validity does not."""
    if isinstance(entry, Table):
        return entry.changes is not ChangeMode.OWN
    return entry.kind == "view"


def bind_pull(query: QueryStatement, catalog: Catalog, parameters: Mapping[str, object]) -> Pull:
    """The plan, and the order of the rows."""
    if query.emit is not None:
        raise BindError(
            "a query with AS OF or HISTORY is answered once",
            query.emit_span,
            "leave EMIT out",
        )
    if query.shed is not None:
        raise BindError(
            "a query over tables and views is answered once and drops no rows",
            query.span,
            "leave SHED out",
        )
    statement = PullBinder(catalog, parameters)
    tree, limited = _ordered(query.tree)
    plan = statement.query(tree, None, {})
    width = len(plan.schema)
    if tree.args.get("order") is None:
        return Pull(plan, statement.reads, (), None, width)
    top = plan.input if isinstance(plan, Map) else plan
    assert isinstance(top, TopN)
    limit = limit_of(tree, parameters) if limited else None
    return Pull(top.input, statement.reads, top.order, limit, width)


def _ordered(tree: exp.Expression) -> tuple[exp.Expression, bool]:
    """The query with both ORDER BY and LIMIT, if it has one of them; and whether it has LIMIT.
    Without ORDER BY, rows are ordered by their columns, from left to right."""
    order, limit = tree.args.get("order"), tree.args.get("limit")
    if (order is None) == (limit is None):
        return tree, limit is not None
    tree = tree.copy()
    if order is None:
        first = exp.Ordered(this=exp.Literal.number(1), nulls_first=True)
        tree.set("order", exp.Order(expressions=[first]))
    else:
        tree.set("limit", exp.Limit(expression=exp.Literal.number(1)))
    return tree, limit is not None


class PullBinder(StatementBinder):
    """Reads the stored rows of views and tables."""

    def __init__(self, catalog: Catalog, parameters: Mapping[str, object]) -> None:
        super().__init__(catalog, parameters)
        self.reads: dict[str, Read] = {}

    def kept(
        self, entry: Stream | DerivedStream, as_of: AsOf | None, span: Span | None
    ) -> Plan | None:
        if not is_kept(entry):
            raise BindError(
                f'{entry.kind} "{entry.name}" is not stored: AS OF and HISTORY need a view',
                span,
                "create a materialized view of it and read that",
            )
        at = None if as_of is None else _instant(entry, as_of)
        return self._source(Read(entry, at), entry.columns, span)

    def history(self, entry: Stream | DerivedStream, span: Span | None) -> Plan:
        if isinstance(entry, Table):
            raise BindError(f'table "{entry.name}" has no history', span, _VIEW_OF_IT)
        time = _domain(entry).type
        times = (Field("valid_from", time, nullable=False), Field("valid_to", time, nullable=False))
        return self._source(Read(entry, history=True), (*entry.columns, *times), span)

    def _source(self, read: Read, columns: tuple[Field, ...], span: Span | None) -> Plan:
        self.reads[str(read)] = read
        self.note_use(read.name, RAW_TIME, span)  # rows that are always valid have no time
        columns = tuple(replace(column, qualifier="") for column in columns)
        alias = self.fresh(read.name)
        source = Source(str(read), alias, columns, RAW_TIME, Lifetime.ALWAYS, relation=True)
        return replace(source, numbered=isinstance(read.entry, Table))


def _domain(entry: Stream | DerivedStream) -> TimeDomain:
    return entry.domain if isinstance(entry, Stream) else entry.plan.domain


def _instant(entry: Stream | DerivedStream, as_of: AsOf) -> int:
    if isinstance(entry, Table):
        raise BindError(
            f'table "{entry.name}" has no history: AS OF reads views', as_of.span, _VIEW_OF_IT
        )
    try:
        return chronon(as_of.instant, _domain(entry))
    except QueryError as error:
        raise BindError(error.diagnostic.message, as_of.span, _INSTANTS) from None


_VIEW_OF_IT = "create a materialized view of it with RETAIN d"
_INSTANTS = "write AS OF TIMESTAMP '…' on TIMESTAMP time, else AS OF a number"


def place_of(key: SortKey, plan: Plan) -> int:
    """The column that a sort key names."""
    assert isinstance(key.expression, Column)
    return [field.key for field in plan.schema].index(key.expression.key)
