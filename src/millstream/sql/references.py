"""FROM: references, aliases, windows and joins become a plan and the names it offers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce

from sqlglot import exp

from millstream.logical.catalog import DerivedStream, Stream
from millstream.logical.expressions import Column, Expression, conjunction, rewrite, walk
from millstream.logical.plan import Join, JoinKind, Map, Named, Plan, rename
from millstream.model.errors import BindError, CatalogError, Span, UnknownNameError, did_you_mean
from millstream.model.names import Name, check_name
from millstream.sql import other_dialects
from millstream.sql.clauses import Clauses
from millstream.sql.contexts import StatementContext
from millstream.sql.parser import STREAM_FUNCTIONS
from millstream.sql.scalar import ScalarBinder
from millstream.sql.scope import Key, Merged, Relation, Scope, name_of, part, refuse_others, span_of
from millstream.sql.statements import clauses_of, is_comma
from millstream.sql.windows import apply_clauses, apply_stream_function, without_arrival

_SIDES = {
    ("", ""): JoinKind.INNER,
    ("", "INNER"): JoinKind.INNER,
    ("", "CROSS"): JoinKind.INNER,
    ("LEFT", ""): JoinKind.LEFT,
    ("LEFT", "OUTER"): JoinKind.LEFT,
    ("RIGHT", ""): JoinKind.RIGHT,
    ("RIGHT", "OUTER"): JoinKind.RIGHT,
    ("FULL", ""): JoinKind.FULL,
    ("FULL", "OUTER"): JoinKind.FULL,
    ("", "OUTER"): JoinKind.FULL,
    ("LEFT", "SEMI"): JoinKind.SEMI,
    ("", "SEMI"): JoinKind.SEMI,
    ("LEFT", "ANTI"): JoinKind.ANTI,
    ("", "ANTI"): JoinKind.ANTI,
}


class FromBinder:
    """Binds one FROM clause; `scope` collects the names of the references."""

    def __init__(
        self,
        statement: StatementContext,
        outer: Scope | None,
        tables: Mapping[str, Plan],
    ) -> None:
        self.statement = statement
        self.outer = outer
        self.tables = tables  # the queries that WITH named
        self.scope = Scope(parent=outer)

    def bind(self, first: exp.Expression, joins: list[exp.Expression]) -> Plan:
        """JOIN binds more tightly than a comma, which is a product. Inside brackets, sqlglot
        attaches the joins to the first reference."""
        groups: list[tuple[exp.Expression, list[exp.Expression]]] = [(first, [])]
        for join in [*(first.args.get("joins") or []), *joins]:
            if is_comma(join):
                groups.append((join.this, []))
            else:
                groups[-1][1].append(join)
        plans = [self._group(*group) for group in groups]
        return reduce(Join, plans)

    def _group(self, first: exp.Expression, joins: list[exp.Expression]) -> Plan:
        """References joined from left to right; a condition sees the names of its group only."""
        outside = self.scope
        self.scope = Scope(parent=self.outer)
        plan = self._reference_or_bracket(first, outside)
        for join in joins:
            plan = self._join(plan, join, outside)
        outside.absorb(self.scope, span_of(first))
        self.scope = outside
        return plan

    # --- references ------------------------------------------------------------------------------

    def _item(self, node: exp.Expression, beside: Scope) -> Plan:
        """The right side of a join: a reference, or a nested join in A JOIN B JOIN C ON … ON …"""
        if not node.args.get("joins"):
            return self._reference_or_bracket(node, beside)
        inner = FromBinder(self.statement, self.outer, self.tables)
        plan = inner.bind(node, [])
        self.scope.absorb(inner.scope, span_of(node))
        return plan

    def _reference_or_bracket(self, node: exp.Expression, beside: Scope) -> Plan:
        """`beside` are the names before it in FROM, which a subquery cannot refer to."""
        if _is_bracket(node):
            return self._bracket(node, beside)
        plan, relation = self._reference(node, beside)
        self.scope.add(relation, span_of(node))
        return plan

    def _bracket(self, node: exp.Subquery, beside: Scope) -> Plan:
        """`(a JOIN b ON …)`; an alias qualifies all its columns."""
        refuse_others(node, ("this", "alias", "joins"), "FROM")
        inner = FromBinder(self.statement, self.outer, self.tables)
        plan = inner.bind(node.this, [])
        if node.args.get("alias") is None:
            self.scope.absorb(inner.scope, span_of(node))
            return apply_clauses(plan, clauses_of(node), "the join")
        columns = inner.scope.star(None)
        names = distinct_names([name for name, _ in columns])
        outputs = [Named(e, name) for (_, e), name in zip(columns, names, strict=True)]
        plan, relation = self._named(Map(plan, tuple(outputs)), node, "", "join")
        self.scope.add(relation, span_of(node))
        return plan

    def _reference(self, node: exp.Expression, beside: Scope) -> tuple[Plan, Relation]:
        match node:
            case exp.Table(this=exp.Identifier()):
                refuse_others(node, ("this", "alias", "joins"), "FROM")
                return self._stream(node, name_of(node.this))
            case exp.Table(this=exp.Anonymous() as call) if call.name.upper() in STREAM_FUNCTIONS:
                refuse_others(node, ("this", "alias", "joins"), "FROM")
                return self._stream_function(node, call)
            case exp.Table(this=exp.Anonymous() as call) if call.name.upper() == "HISTORY":
                refuse_others(node, ("this", "alias", "joins"), "FROM")
                return self._history(node, call)
            case exp.Table(this=exp.Func() as call):
                called = str(call.name or call.sql_name())
                raise BindError(
                    f'"{called}" is not a function of FROM',
                    span_of(call),
                    other_dialects.FUNCTIONS.get(called.lower())
                    or "ISTREAM, DSTREAM, RSTREAM and HISTORY are",
                )
            case exp.Subquery():
                refuse_others(node, ("this", "alias", "joins"), "FROM")
                return self._named(self._subquery(node, beside), node, "", "subquery")
        if isinstance(node, exp.Lateral):
            raise BindError("LATERAL is not supported in FROM", span_of(node))
        if isinstance(node, exp.Unnest):
            help = other_dialects.FUNCTIONS["unnest"]
            raise BindError("UNNEST is not supported in FROM", span_of(node), help)
        if isinstance(node, exp.Values):
            raise BindError("VALUES is not supported in FROM", span_of(node))
        raise BindError("expected a stream or a subquery in FROM", span_of(node))

    def _subquery(self, node: exp.Subquery, beside: Scope) -> Plan:
        unseen = [*beside.relations, *self.scope.relations]
        with explaining(unseen, "a subquery in FROM cannot refer to other streams in FROM"):
            return self.statement.query(node.this, self.outer, self.tables)

    def _stream(self, node: exp.Expression, name: Name) -> tuple[Plan, Relation]:
        for table, plan in self.tables.items():
            if name.matches(table):
                return self._named(plan, node, table, "subquery")
        stream = self._registered(name)
        clauses = clauses_of(node)
        kept = self.statement.kept(stream, clauses.as_of, name.span)
        if kept is not None:
            clauses = replace(clauses, as_of=None)
            return self._named(kept, node, stream.name, stream.kind, clauses)
        if not isinstance(stream, Stream):
            self.statement.note_use(stream.name, stream.plan.domain, name.span)
            self.statement.inherited.update(map(id, stream.plan.walk()))
            return self._named(stream.plan, node, stream.name, "derived stream")
        self.statement.note_use(stream.name, stream.domain, name.span)
        alias, columns = _alias_of(node)
        visible_name = alias or stream.name
        qualifier = self.statement.fresh(visible_name)
        plan = stream.source(qualifier)
        if columns:
            return self._named(plan, node, stream.name, stream.kind)
        described = f'{stream.kind} "{stream.name}"'
        windowed = apply_clauses(plan, clauses_of(node), described, (visible_name, stream.name))
        return windowed, Relation(visible_name, stream.kind, windowed.schema, stream.name)

    def _registered(self, name: Name) -> Stream | DerivedStream:
        try:
            return self.statement.catalog.stream(name)
        except CatalogError as error:
            help = did_you_mean(name.text, self.tables) or error.diagnostic.help
            raise BindError(error.diagnostic.message, name.span, help) from None

    def _history(self, node: exp.Expression, call: exp.Anonymous) -> tuple[Plan, Relation]:
        inner = call.expressions[0] if len(call.expressions) == 1 else None
        if not isinstance(inner, exp.Column) or inner.args.get("table"):
            raise BindError("HISTORY takes the name of a view or a stream", span_of(call))
        entry = self._registered(name_of(inner.this))
        plan = self.statement.history(entry, span_of(inner))
        return self._named(plan, node, entry.name, "history")

    def _stream_function(self, node: exp.Expression, call: exp.Anonymous) -> tuple[Plan, Relation]:
        function = call.name.upper()
        if len(call.expressions) != 1:
            raise BindError(f"{function} takes one stream or query", span_of(call))
        inner = call.expressions[0]
        if isinstance(inner, exp.Column) and not inner.args.get("table"):
            plan, relation = self._stream(inner, name_of(inner.this))
            name = relation.name
        elif isinstance(inner, exp.Query | exp.Subquery):
            tree = inner.this if isinstance(inner, exp.Subquery) else inner
            plan = self.statement.query(tree, self.outer, self.tables)
            name = ""
        else:
            raise BindError(f"{function} takes a stream or a query", span_of(inner))
        plan = apply_stream_function(without_arrival(plan), function, span_of(call))
        return self._named(plan, node, name, function)

    def _named(
        self,
        plan: Plan,
        node: exp.Expression,
        name: str,
        kind: str,
        clauses: Clauses | None = None,
    ) -> tuple[Plan, Relation]:
        """`plan` under its alias (or `name`), with its window and its names."""
        alias, columns = _alias_of(node)
        plan = without_arrival(plan)
        names = distinct_names([field.name for field in plan.schema])
        if columns:
            names = column_list(columns, len(names), "the alias", span_of(node.args["alias"]))
        qualifier = self.statement.fresh(alias or name or "subquery")
        plan = rename(plan, [(qualifier, column) for column in names])
        described = f'{kind} "{alias or name}"' if alias or name else f"the {kind}"
        plan = apply_clauses(plan, clauses or clauses_of(node), described, (alias, name))
        return plan, Relation(alias or name, kind, plan.schema, name)

    # --- joins -----------------------------------------------------------------------------------

    def _join(self, left: Plan, node: exp.Expression, beside: Scope) -> Plan:
        understood = ("this", "side", "kind", "method", "on", "using")
        refuse_others(node, understood, "a join")
        side, kind = str(node.args.get("side") or ""), str(node.args.get("kind") or "")
        join_kind = _SIDES.get((side.upper(), kind.upper()))
        method = str(node.args.get("method") or "").upper()
        if join_kind is None or method not in ("", "NATURAL"):
            words = " ".join(word for word in (method, side, kind) if word)
            raise BindError(f"{words} JOIN is not supported", span_of(node))
        if method == "NATURAL" and (kind.upper() == "CROSS" or part(node, "on") or _using(node)):
            raise BindError(
                "a NATURAL JOIN takes no condition",
                span_of(node.this),
                "put a nested join into brackets",
            )
        scope = self.scope
        before = Scope(list(scope.relations), list(scope.merged), order=list(scope.order))
        right = self._item(node.this, beside)
        added = Scope(
            self.scope.relations[len(before.relations) :],
            self.scope.merged[len(before.merged) :],
            order=self.scope.order[len(before.order) :],
        )
        plan = Join(left, right, join_kind)
        using = self._using(node, method == "NATURAL", before, added)
        if using:
            plan = self._join_using(plan, using, before, added)
        elif (on := part(node, "on")) is not None:
            binder = ScalarBinder(
                self.statement.catalog, self.scope, self.statement.parameters, "ON"
            )
            plan = replace(plan, condition=binder.predicate(on))
        if join_kind in (JoinKind.SEMI, JoinKind.ANTI):
            self.scope.relations, self.scope.merged = before.relations, before.merged
            self.scope.order = _first(before, using)
        else:
            self._note_padding(plan)
        return plan

    def _using(
        self,
        node: exp.Expression,
        natural: bool,
        before: Scope,
        added: Scope,
    ) -> list[Name]:
        if natural:
            left = {name.lower(): name for name, _ in before.star(None)}
            right = {name.lower() for name, _ in added.star(None)}
            common = [name for folded, name in left.items() if folded in right]
            return [Name(name, span=span_of(node)) for name in common]
        return [name_of(item) for item in _using(node)]

    def _join_using(self, plan: Join, names: list[Name], before: Scope, added: Scope) -> Join:
        binder = ScalarBinder(
            self.statement.catalog, self.scope, self.statement.parameters, "USING"
        )
        matches: list[Expression] = []
        merged: list[Merged] = []
        for name in names:
            left, right = before.resolve(name, None), added.resolve(name, None)
            matches.append(binder.call("=", left, right, span=name.span))
            if plan.kind is JoinKind.RIGHT:
                value = right
            elif plan.kind is JoinKind.FULL:
                value = binder.call("coalesce", left, right)
            else:
                value = left
            columns = [part for side in (left, right) for part in walk(side)]
            keys = frozenset(part.key for part in columns if isinstance(part, Column))
            earlier = [m.parts for m in self.scope.merged if name.matches(m.name)]
            merged.append(Merged(name.text, value, keys.union(*earlier)))
        if plan.kind not in (JoinKind.SEMI, JoinKind.ANTI):
            replaced = [m for m in self.scope.merged if any(n.matches(m.name) for n in names)]
            self.scope.merge(merged, replaced)
        return replace(plan, condition=conjunction(matches))

    def _note_padding(self, plan: Join) -> None:
        """Columns that an outer join may pad are nullable from here on."""
        fields = {field.key: field for field in plan.schema}
        self.scope.relations = [
            replace(relation, columns=tuple(fields.get(c.key, c) for c in relation.columns))
            for relation in self.scope.relations
        ]

        def padded(part: Expression) -> Expression:
            return fields[part.key].column if isinstance(part, Column) else part

        self.scope.merged = [
            replace(merged, expression=rewrite(merged.expression, padded))
            for merged in self.scope.merged
        ]


def _first(scope: Scope, names: list[Name]) -> list[Key | frozenset[Key]]:
    """The order of `*`, with these columns before all others."""
    named = zip(scope.star(None), scope.order, strict=True)
    places = {column.lower(): place for (column, _), place in named}
    first = [places[name.text.lower()] for name in names if name.text.lower() in places]
    return [*first, *(place for place in scope.order if place not in first)]


def _using(join: exp.Expression) -> list[exp.Expression]:
    return list(join.args.get("using") or [])


def _is_bracket(node: exp.Expression) -> bool:
    """Whether brackets in FROM contain references, not a query."""
    if not isinstance(node, exp.Subquery):
        return False
    inner = node.this
    named_or_joined = inner.args.get("alias") is not None or inner.args.get("joins")
    return isinstance(inner, exp.Table) or (
        isinstance(inner, exp.Subquery) and (bool(named_or_joined) or _is_bracket(inner))
    )


def distinct_names(names: list[str]) -> list[str]:
    """The names, the second of two equal ones with a number, as in `a`, `a_1`."""
    taken: set[str] = set()
    result = []
    for name in names:
        candidate, number = name, 0
        while candidate.lower() in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.lower())
        result.append(candidate)
    return result


def column_list(columns: list[str], width: int, owner: str, span: Span | None) -> list[str]:
    """The column names of `AS t(a, b)` or `WITH t(a, b)`: one per column, without duplicates."""
    if len(columns) != width:
        raise BindError(f"{owner} names {len(columns)} columns, but there are {width}", span)
    for number, column in enumerate(columns):
        check_name(Name(column, span=span))
        if column.lower() in [other.lower() for other in columns[:number]]:
            raise BindError(f'{owner} names column "{column}" twice', span)
    return columns


@contextmanager
def explaining(unseen: list[Relation], help: str) -> Iterator[None]:
    """Add help to an error about a name that exists, but is not visible here."""
    try:
        yield
    except UnknownNameError as error:
        if any(error.name.lower() == relation.name.lower() for relation in unseen):
            raise UnknownNameError(error.name, error.diagnostic.span, help) from None
        raise


def _alias_of(node: exp.Expression) -> tuple[str, list[str]]:
    """The alias and the column names that it gives."""
    alias = node.args.get("alias")
    if alias is None:
        return "", []
    name = alias.this.name if alias.this is not None else ""
    return name, [column.name for column in alias.args.get("columns") or []]
