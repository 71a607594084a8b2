"""FROM: references, aliases, windows and joins become a plan and the names it offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.catalog import Stream
from millstream.errors import BindError, CatalogError, did_you_mean
from millstream.logical.expressions import Expression, conjunction
from millstream.logical.plan import Join, JoinKind, Plan, rename
from millstream.sql.parser import STREAM_FUNCTIONS
from millstream.sql.scalar import ScalarBinder
from millstream.sql.scope import (
    Merged,
    Relation,
    Scope,
    name_of,
    part,
    refuse_others,
    span_of,
    visible,
)
from millstream.sql.statements import clauses_of
from millstream.sql.tokens import Name
from millstream.sql.windows import apply_clauses, apply_stream_function, without_arrival

if TYPE_CHECKING:
    from millstream.sql.binder import StatementBinder

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
    """Binds one FROM clause; `scope` collects the names as the references are read."""

    def __init__(
        self,
        statement: StatementBinder,
        outer: Scope | None,
        tables: Mapping[str, Plan],
    ) -> None:
        self.statement = statement
        self.outer = outer
        self.tables = tables  # the queries that WITH named
        self.scope = Scope(parent=outer)

    def bind(self, first: exp.Expression, joins: list[exp.Expression]) -> Plan:
        plan = self._item(first)
        for join in joins:
            plan = self._join(plan, join)
        return plan

    # --- references ------------------------------------------------------------------------------

    def _item(self, node: exp.Expression) -> Plan:
        """A reference, which may be a bracket of several that are joined."""
        nested = list(node.args.get("joins") or [])
        if isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Query):
            return self._bracket(node)
        plan, relation = self._reference(node)
        self.scope.add(relation, span_of(node))
        for join in nested:
            plan = self._join(plan, join)
        return plan

    def _bracket(self, node: exp.Subquery) -> Plan:
        """`(a JOIN b ON …)`; with an alias its columns go by that."""
        refuse_others(node, ("this", "alias", "joins"), "FROM")
        if node.args.get("alias") is None:
            plan = self._item(node.this)
            for join in node.args.get("joins") or []:
                plan = self._join(plan, join)
            return apply_clauses(plan, clauses_of(node), "the join")
        inner = FromBinder(self.statement, self.outer, self.tables)
        plan = inner._item(node.this)
        plan, relation = self._named(plan, node, "", "the join")
        self.scope.add(relation, span_of(node))
        return plan

    def _reference(self, node: exp.Expression) -> tuple[Plan, Relation]:
        match node:
            case exp.Table(this=exp.Identifier()):
                refuse_others(node, ("this", "alias", "joins"), "FROM")
                return self._stream(node, name_of(node.this))
            case exp.Table(this=exp.Anonymous() as call) if call.name.upper() in STREAM_FUNCTIONS:
                refuse_others(node, ("this", "alias", "joins"), "FROM")
                return self._stream_function(node, call)
            case exp.Table(this=exp.Func() as call):
                raise BindError(
                    f'"{call.name or call.sql_name()}" is not a function of FROM',
                    span_of(call),
                    "ISTREAM, DSTREAM and RSTREAM are",
                )
            case exp.Subquery():
                refuse_others(node, ("this", "alias", "joins"), "FROM")
                return self._named(self._subquery(node), node, "", "subquery")
        if isinstance(node, exp.Lateral):
            raise BindError("LATERAL is not supported in FROM", span_of(node))
        if isinstance(node, exp.Values):
            raise BindError("VALUES is not supported in FROM", span_of(node))
        raise BindError("expected a stream or a subquery in FROM", span_of(node))

    def _subquery(self, node: exp.Subquery) -> Plan:
        try:
            return self.statement.query(node.this, self.outer, self.tables)
        except BindError as error:
            for relation in self.scope.relations:
                if error.diagnostic.message.startswith(f'"{relation.name}" is not a stream'):
                    raise BindError(
                        error.diagnostic.message,
                        error.diagnostic.span,
                        "a subquery in FROM cannot see the streams beside it",
                    ) from None
            raise

    def _stream(self, node: exp.Expression, name: Name) -> tuple[Plan, Relation]:
        for table, plan in self.tables.items():
            if name.matches(table):
                return self._named(plan, node, table, "subquery")
        try:
            stream = self.statement.catalog.stream(name)
        except CatalogError as error:
            help = error.diagnostic.help or did_you_mean(name.text, self.tables)
            raise BindError(error.diagnostic.message, name.span, help) from None
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
            return self._named(plan, node, stream.name, "stream")
        described = f'stream "{stream.name}"'
        windowed = apply_clauses(plan, clauses_of(node), described)
        return windowed, Relation(visible_name, "stream", windowed.schema, stream.name)

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
        self, plan: Plan, node: exp.Expression, name: str, kind: str
    ) -> tuple[Plan, Relation]:
        """`plan` under its alias (or `name`), with its window, and the names it offers."""
        alias, columns = _alias_of(node)
        plan = without_arrival(plan)
        names = [field.name for field in plan.schema]
        if columns:
            if len(columns) != len(names):
                raise BindError(
                    f"the alias names {len(columns)} columns, but there are {len(names)}",
                    span_of(node.args["alias"]),
                )
            names = columns
        qualifier = self.statement.fresh(alias or name or "subquery")
        plan = rename(plan, [(qualifier, column) for column in names])
        described = f'{kind} "{alias or name}"' if alias or name else f"the {kind}"
        plan = apply_clauses(plan, clauses_of(node), described)
        return plan, Relation(alias or name, kind, plan.schema, name)

    # --- joins -----------------------------------------------------------------------------------

    def _join(self, left: Plan, node: exp.Expression) -> Plan:
        understood = ("this", "side", "kind", "method", "on", "using")
        refuse_others(node, understood, "a join")
        side, kind = str(node.args.get("side") or ""), str(node.args.get("kind") or "")
        join_kind = _SIDES.get((side.upper(), kind.upper()))
        method = str(node.args.get("method") or "").upper()
        if join_kind is None or method not in ("", "NATURAL"):
            words = " ".join(word for word in (method, side, kind) if word)
            raise BindError(f"{words} JOIN is not supported", span_of(node))
        before = list(self.scope.relations)
        right = self._item(node.this)
        added = self.scope.relations[len(before) :]
        plan = Join(left, right, join_kind)
        if using := self._using(node, method == "NATURAL", before, added):
            plan = self._join_using(plan, using, before, added)
        elif (on := part(node, "on")) is not None:
            binder = ScalarBinder(
                self.statement.catalog, self.scope, self.statement.parameters, "ON"
            )
            plan = replace(plan, condition=binder.predicate(on))
        if join_kind in (JoinKind.SEMI, JoinKind.ANTI):
            self.scope.relations = before
        else:
            self._note_padding(plan)
        return plan

    def _using(
        self,
        node: exp.Expression,
        natural: bool,
        before: list[Relation],
        added: list[Relation],
    ) -> list[Name]:
        if natural:
            left = [c.name for relation in before for c in visible(relation.columns)]
            right = {c.name.lower() for relation in added for c in visible(relation.columns)}
            return [Name(name, span=span_of(node)) for name in left if name.lower() in right]
        return [name_of(item) for item in node.args.get("using") or []]

    def _join_using(
        self, plan: Join, names: list[Name], before: list[Relation], added: list[Relation]
    ) -> Join:
        binder = ScalarBinder(
            self.statement.catalog, self.scope, self.statement.parameters, "USING"
        )
        matches: list[Expression] = []
        merged: list[Merged] = []
        for name in names:
            left = Scope(before, self.scope.merged).resolve(name, None)
            right = Scope(added).resolve(name, None)
            matches.append(binder.call("=", left, right))
            if plan.kind is JoinKind.RIGHT:
                value = right
            elif plan.kind is JoinKind.FULL:
                value = binder.call("coalesce", left, right)
            else:
                value = left
            keys = frozenset(c.key for c in (left, right) if hasattr(c, "key"))
            merged.append(Merged(name.text, value, keys))
        if plan.kind not in (JoinKind.SEMI, JoinKind.ANTI):
            kept = [m for m in self.scope.merged if not any(n.matches(m.name) for n in names)]
            self.scope.merged = kept + merged
        return replace(plan, condition=conjunction(matches))

    def _note_padding(self, plan: Join) -> None:
        """Columns that an outer join may pad are nullable from here on."""
        fields = {field.key: field for field in plan.schema}
        self.scope.relations = [
            replace(relation, columns=tuple(fields.get(c.key, c) for c in relation.columns))
            for relation in self.scope.relations
        ]


def _alias_of(node: exp.Expression) -> tuple[str, list[str]]:
    """The alias and the column names that it gives."""
    alias = node.args.get("alias")
    if alias is None:
        return "", []
    name = alias.this.name if alias.this is not None else ""
    return name, [column.name for column in alias.args.get("columns") or []]
