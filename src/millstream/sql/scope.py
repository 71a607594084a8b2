"""The names that are visible in a query, and their columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sqlglot import exp

from millstream.logical.expressions import Column, Expression
from millstream.logical.plan import ARRIVAL, Field, Schema
from millstream.model.errors import BindError, Span, UnknownNameError, one_of
from millstream.model.names import Name


@dataclass(frozen=True)
class Relation:
    """A reference in FROM: its name ("" for an unnamed subquery), its kind and its columns."""

    name: str
    kind: str
    columns: Schema
    stream: str = ""  # what the name is an alias of

    @property
    def described(self) -> str:
        if not self.name:
            return "the subquery"
        if self.stream and self.stream != self.name:
            return f'{self.kind} "{self.stream}" ({self.name})'
        return f'{self.kind} "{self.name}"'


Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Merged:
    """A column that USING or NATURAL merged from one column of each side."""

    name: str
    expression: Expression
    parts: frozenset[Key]


@dataclass
class Scope:
    """The references of one FROM, inside the scope of the enclosing query."""

    relations: list[Relation] = field(default_factory=list)
    merged: list[Merged] = field(default_factory=list)
    parent: Scope | None = None
    # The columns of `*`, in order: by their keys, or by the parts that were merged.
    order: list[Key | frozenset[Key]] = field(default_factory=list)

    def add(self, relation: Relation, span: Span | None) -> None:
        taken = any(r.name.lower() == relation.name.lower() for r in self.relations)
        if relation.name and taken:
            raise BindError(
                f'"{relation.name}" names two streams in FROM',
                span,
                "give one of them another alias with AS",
            )
        self.relations.append(relation)
        self.order += [column.key for column in visible(relation.columns)]

    def absorb(self, scope: Scope, span: Span | None) -> None:
        """Add the references of another scope, such as that of a join in brackets."""
        before = list(self.order)
        for relation in scope.relations:
            self.add(relation, span)
        self.merged += scope.merged
        self.order = before + scope.order

    def merge(self, merged: list[Merged], replaced: list[Merged]) -> None:
        """Put the columns that a join merged before all others; they replace columns that were
        merged earlier. `*` has the columns of USING first, then those of the left side, then those
        of the right."""
        parts = [m.parts for m in merged]
        gone = {key for m in merged for key in m.parts}
        kept = [
            place
            for place in self.order
            if (place not in gone if isinstance(place, tuple) else not place & gone)
        ]
        self.merged = [m for m in self.merged if m not in replaced] + merged
        self.order = [*parts, *kept]

    def resolve(self, name: Name, table: Name | None) -> Expression:
        """The column of a name; a column of an enclosing query is an OuterColumn."""
        found = self._own(name, table)
        if found is not None:
            return found
        scope = self.parent
        while scope is not None:
            found = scope._own(name, table)
            if isinstance(found, Column):
                return found.outward
            if found is not None:
                raise BindError(
                    f'column "{name.text}" is merged by USING and cannot be used in a subquery',
                    name.span,
                    "qualify it with the name of one side",
                )
            scope = scope.parent
        raise self._unknown(name, table)

    def _own(self, name: Name, table: Name | None) -> Expression | None:
        merged = [m for m in self.merged if table is None and name.matches(m.name)]
        hidden = {key for m in merged for key in m.parts}
        relations = [r for r in self.relations if table is None or table.matches(r.name)]
        candidates = [
            (relation, column)
            for relation in relations
            for column in relation.columns
            if name.matches(column.name)
            and not column.name.startswith("$")
            and column.key not in hidden
        ]
        if len(merged) == 1 and not candidates:
            return merged[0].expression
        if merged:
            raise BindError(
                f'column "{name.text}" is ambiguous: USING or NATURAL merged two of them, and '
                "there are others",
                name.span,
                "qualify it with the name of a stream",
            )
        if len(candidates) > 1:
            owners = _owners([relation for relation, _ in candidates])
            first = candidates[0][0].name
            raise BindError(
                f'column "{name.text}" is ambiguous: it is in {owners}',
                name.span,
                f"write {first}.{name.text}" if first else "give the subqueries names with AS",
            )
        return candidates[0][1].column if candidates else None

    def _unknown(self, name: Name, table: Name | None) -> BindError:
        scopes = list(self._enclosing())
        if table is not None:
            for scope in scopes:
                for relation in scope.relations:
                    if table.matches(relation.name):
                        return _no_column(name, [relation])
            relations = [r for scope in scopes for r in scope.relations if r.name]
            hidden = next((r for r in relations if table.matches(r.stream)), None)
            help = one_of(table.text, [r.name for r in relations], "stream")
            if hidden is not None:
                alias = hidden.name
                help = f'"{hidden.stream}" has the alias "{alias}": write {alias}.{name.text}'
            return UnknownNameError(table.text, table.span, help)
        return _no_column(name, [r for scope in scopes for r in scope.relations])

    def _enclosing(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def star(self, table: Name | None) -> list[tuple[str, Expression]]:
        """The columns of `*` or `table.*`, with their names."""
        if table is None:
            merged = {m.parts: m for m in self.merged}
            plain = {column.key: column for r in self.relations for column in r.columns}
            return [
                (plain[place].name, plain[place].column)
                if isinstance(place, tuple)
                else (merged[place].name, merged[place].expression)
                for place in self.order
            ]
        for relation in self.relations:
            if table.matches(relation.name):
                return [(column.name, column.column) for column in visible(relation.columns)]
        raise self._unknown(Name("*"), table)


def _owners(relations: list[Relation]) -> str:
    if not any(relation.name for relation in relations):
        return "several subqueries"
    return " and ".join(relation.described for relation in relations)


def visible(columns: Schema) -> list[Field]:
    return [column for column in columns if column.name != ARRIVAL]


def _no_column(name: Name, relations: list[Relation]) -> BindError:
    columns = [c.name for r in relations for c in r.columns if not c.name.startswith("$")]
    if len(relations) == 1:
        message = f'column "{name.text}" does not exist in {relations[0].described}'
    else:
        message = f'column "{name.text}" does not exist'
    return BindError(message, name.span, one_of(name.text, dict.fromkeys(columns), "column"))


# --- places and parts of sqlglot's trees ----------------------------------------------------------


def span_of(node: exp.Expression) -> Span | None:
    """The text from which a node was parsed, as far as the positions of its parts are known. A node
    without any has the position of the nearest node around it."""
    current: exp.Expression | None = node
    while current is not None:
        spans = [
            Span(part.meta["start"], part.meta.get("closed", part.meta["end"] + 1))
            for part in current.walk()
            if "start" in part.meta
        ]
        if spans:
            return Span(min(s.start for s in spans), max(s.end for s in spans))
        current = current.parent
    return None


def name_span_of(call: exp.Expression) -> Span | None:
    """The name of a call, without its arguments."""
    if "start" not in call.meta:
        return span_of(call)
    return Span(call.meta["start"], call.meta["end"] + 1)


def name_of(identifier: exp.Expression) -> Name:
    return Name(identifier.name, bool(identifier.args.get("quoted")), span_of(identifier))


def part(node: exp.Expression, key: str) -> Any:
    """An argument of a node; some have a trailing underscore in newer versions of sqlglot."""
    value = node.args.get(key)
    return value if value is not None else node.args.get(f"{key}_")


def refuse_others(node: exp.Expression, understood: tuple[str, ...], what: str) -> None:
    """Raise an error for arguments that are not understood, rather than ignore them."""
    for key, value in node.args.items():
        if value and key.rstrip("_") not in understood:
            inside = value[0] if isinstance(value, list) else value
            place = span_of(inside) if isinstance(inside, exp.Expression) else span_of(node)
            word = key.rstrip("_").replace("_", " ").upper()
            name = _CLAUSE_NAMES.get(word, word)
            where = "" if what in name else f" in {what}"
            raise BindError(f"{name} is not supported{where}", place, _REMEDIES.get(name))


_REMEDIES = {
    "OFFSET": "LIMIT n returns the first n rows",
    "QUALIFY": "write ORDER BY … LIMIT n for the first n rows, or WINDOW(PARTITION BY c ROWS n)",
    "DISTINCT ON": "write FROM stream WINDOW(PARTITION BY c ROWS 1) for the last row of each c",
    "LATERAL VIEW": "arrays cannot become rows here: unnest them where the rows are produced",
    "TABLESAMPLE": "write SHED at the end of the query to drop rows under load",
    "INTO": "write INSERT INTO sink(…) query",
    "a hint": "leave it out: plans are chosen by cost",
}

_CLAUSE_NAMES = {
    "LATERALS": "LATERAL VIEW",
    "WINDOWS": "a named WINDOW",
    "SAMPLE": "TABLESAMPLE",
    "PIVOTS": "PIVOT",
    "SORT": "SORT BY",
    "CLUSTER": "CLUSTER BY",
    "DISTRIBUTE": "DISTRIBUTE BY",
    "DB": "a name qualified with a database",
    "CATALOG": "a name qualified with a catalog",
    "EXCEPT": "* EXCEPT",
    "REPLACE": "* REPLACE",
    "RENAME": "* RENAME",
    "ON": "DISTINCT ON",
    "KIND": "SELECT AS",
    "HINT": "a hint",
    "LOCKS": "FOR UPDATE",
    "GROUPING SETS": "GROUPING SETS",
    "ALL": "GROUP BY ALL",
}
