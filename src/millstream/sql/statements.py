"""The statements of the language, as they were written.

A query is sqlglot's tree; the stream clauses are attached to their references in FROM
(`clauses_of`). `str(statement)` prints a statement that parses to an equal one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from millstream.logical.catalog import ChangeMode, Connector
from millstream.logical.text import literal_text
from millstream.model import types
from millstream.model.durations import Duration
from millstream.model.errors import Span
from millstream.model.modes import Emit
from millstream.model.names import Name
from millstream.sql.clauses import Clauses, EffectiveAt, Shed

_CLAUSES = "stream_clauses"
_COMMA = "comma"


def clauses_of(reference: exp.Expression) -> Clauses:
    """The window and granularity of a table reference."""
    found: Clauses = reference.meta.get(_CLAUSES, Clauses())
    return found


def attach_clauses(reference: exp.Expression, clauses: Clauses) -> None:
    reference.meta[_CLAUSES] = clauses


def is_comma(join: exp.Expression) -> bool:
    """Whether a join was written as a comma, which binds less tightly than JOIN."""
    return bool(join.meta.get(_COMMA))


def mark_comma(join: exp.Expression) -> None:
    join.meta[_COMMA] = True


def _marks_of(node: exp.Expression) -> tuple[Clauses, bool]:
    """Our own metadata of a node."""
    return clauses_of(node), is_comma(node)


@dataclass(frozen=True, eq=False)
class QueryStatement:
    """A SELECT or a set operation, and how its answer is emitted."""

    tree: exp.Expression
    emit: Emit | None = None  # None if the statement has no EMIT
    emit_span: Span | None = None
    span: Span | None = None
    every: Duration | None = None  # the period of EMIT EVERY
    shed: Shed | None = None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, QueryStatement)
            and (self.emit, self.every, self.shed) == (other.emit, other.every, other.shed)
            and bool(self.tree == other.tree)
            and list(map(_marks_of, self.tree.walk())) == list(map(_marks_of, other.tree.walk()))
        )

    def __hash__(self) -> int:
        return hash((self.tree, self.emit))

    def __str__(self) -> str:
        shed = f" {self.shed}" if self.shed else ""
        every = f" {self.every}" if self.every else ""
        return query_text(self.tree) + shed + (f" EMIT {self.emit}{every}" if self.emit else "")


@dataclass(frozen=True)
class ColumnDefinition:
    name: Name
    type: pa.DataType
    nullable: bool = True
    comment: str | None = None
    unscaled: bool = field(default=False, compare=False)  # DECIMAL without a scale

    def __str__(self) -> str:
        suffix = "" if self.nullable else " NOT NULL"
        if self.comment is not None:
            suffix += f" COMMENT {literal_text(self.comment, types.STRING)}"
        return f"{self.name} {types.sql_name(self.type)}{suffix}"


@dataclass(frozen=True)
class Ordering:
    """`ORDERED BY column [UNIT u] [DELAY d] [IDLE AFTER d]`"""

    column: Name
    unit: str | None = None
    delay: Duration | None = None
    idle: Duration | None = None

    def __str__(self) -> str:
        parts = [f"ORDERED BY {self.column}"]
        if self.unit is not None:
            parts.append(f"UNIT {self.unit}")
        if self.delay is not None:
            parts.append(f"DELAY {self.delay}")
        if self.idle is not None:
            parts.append(f"IDLE AFTER {self.idle}")
        return " ".join(parts)


@dataclass(frozen=True)
class Validity:
    """`VALID FROM a TO b`: rows with their own validity."""

    start: Name
    end: Name
    unit: str | None = None

    def __str__(self) -> str:
        unit = f" UNIT {self.unit}" if self.unit is not None else ""
        return f"VALID FROM {self.start} TO {self.end}{unit}"


@dataclass(frozen=True)
class Statistic:
    """`rate = 100` or `distinct(column) = 50`"""

    kind: str
    column: Name | None
    value: float

    def __str__(self) -> str:
        subject = self.kind if self.column is None else f"{self.kind}({self.column})"
        value = int(self.value) if self.value.is_integer() else self.value
        return f"{subject} = {value}"


@dataclass(frozen=True)
class CreateStream:
    name: Name
    columns: tuple[ColumnDefinition, ...]
    source: Connector
    ordering: Ordering | None = None
    validity: Validity | None = None
    statistics: tuple[Statistic, ...] = ()
    unique: tuple[tuple[Name, ...], ...] = ()
    retention: Retention | None = None

    def __str__(self) -> str:
        unique = (f"UNIQUE ({', '.join(map(str, columns))})" for columns in self.unique)
        parts = [
            f"CREATE STREAM {self.name} ({', '.join([*map(str, self.columns), *unique])})",
            f"SOURCE {self.source}",
        ]
        parts += [str(part) for part in (self.ordering, self.validity) if part is not None]
        if self.statistics:
            parts.append(f"WITH ({', '.join(map(str, self.statistics))})")
        if self.retention is not None:
            parts.append(str(self.retention))
        return " ".join(parts)


@dataclass(frozen=True)
class CreateTable:
    name: Name
    columns: tuple[ColumnDefinition, ...]
    key: tuple[Name, ...] = ()
    changes: ChangeMode = ChangeMode.RETROACTIVE
    source: Connector | None = None
    ordering: Ordering | None = None
    validity: Validity | None = None
    statistics: tuple[Statistic, ...] = ()

    def __str__(self) -> str:
        key = [f"PRIMARY KEY ({', '.join(map(str, self.key))})"] if self.key else []
        parts = [f"CREATE TABLE {self.name} ({', '.join([*map(str, self.columns), *key])})"]
        if self.changes is not ChangeMode.OWN:
            parts.append(self.changes.value)
        if self.source is not None:
            parts.append(f"SOURCE {self.source}")
        parts += [str(part) for part in (self.ordering, self.validity) if part is not None]
        if self.statistics:
            parts.append(f"WITH ({', '.join(map(str, self.statistics))})")
        return " ".join(parts)


@dataclass(frozen=True)
class CreateLatest:
    """A table of the last row of a stream for each key. A row for which the condition `deleted`
    (its SQL text) is true deletes its key."""

    name: Name
    key: tuple[Name, ...]
    stream: Name
    deleted: str | None = None

    def __str__(self) -> str:
        by = f"LATEST BY {', '.join(map(str, self.key))} FROM {self.stream}"
        where = f" DELETE WHERE {self.deleted}" if self.deleted is not None else ""
        return f"CREATE TABLE {self.name} AS {by}{where}"


@dataclass(frozen=True)
class Retention:
    """`[RETAIN d] [IN 'folder']`: how long past rows are kept, and the folder that stores them and
    the answer."""

    duration: Duration | None
    folder: str | None = None
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        parts = [] if self.duration is None else [f"RETAIN {self.duration}"]
        if self.folder is not None:
            parts.append(f"IN {literal_text(self.folder, types.STRING)}")
        return " ".join(parts)


@dataclass(frozen=True)
class CreateDerivedStream:
    name: Name
    query: QueryStatement
    retention: Retention | None = None

    def __str__(self) -> str:
        rest = f" {self.retention}" if self.retention is not None else ""
        return f"CREATE STREAM {self.name} AS {self.query}{rest}"


@dataclass(frozen=True)
class CreateView:
    """With `target`, the answer is also maintained there; with EMIT EVERY, the whole answer is
    written there periodically."""

    name: Name
    query: QueryStatement
    target: Connector | None = None
    retention: Retention | None = None

    def __str__(self) -> str:
        query = self.query
        parts = [f"CREATE MATERIALIZED VIEW {self.name} AS {query_text(query.tree)}"]
        parts += [] if self.target is None else [f"INTO {self.target}"]
        parts += [] if query.every is None else [f"EMIT EVERY {query.every}"]
        parts += [] if self.retention is None else [str(self.retention)]
        return " ".join(parts)


@dataclass(frozen=True)
class InsertInto:
    sink: Connector
    query: QueryStatement

    def __str__(self) -> str:
        return f"INSERT INTO {self.sink} {self.query}"


@dataclass(frozen=True)
class ChangeTable:
    """INSERT, UPDATE, DELETE or MERGE on a table: sqlglot's tree, and when it takes effect."""

    body: QueryStatement
    at: EffectiveAt | None = None

    def __str__(self) -> str:
        return f"{self.body} {self.at}" if self.at is not None else str(self.body)


@dataclass(frozen=True)
class Select:
    query: QueryStatement

    def __str__(self) -> str:
        return str(self.query)


@dataclass(frozen=True)
class Drop:
    kind: str  # STREAM, TABLE, VIEW or QUERY
    name: Name

    def __str__(self) -> str:
        return f"DROP {self.kind} {self.name}"


@dataclass(frozen=True)
class Stop:
    name: Name

    def __str__(self) -> str:
        return f"STOP QUERY {self.name}"


@dataclass(frozen=True)
class Show:
    what: str  # STREAMS, TABLES, VIEWS or QUERIES
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"SHOW {self.what}"


Statement: TypeAlias = (
    CreateStream
    | CreateTable
    | CreateLatest
    | CreateDerivedStream
    | CreateView
    | InsertInto
    | ChangeTable
    | Select
    | Drop
    | Stop
    | Show
)


def query_text(tree: exp.Expression) -> str:
    """The query in the language, stream clauses included.

    sqlglot prints most of it. References with stream clauses, and inner queries with a WITH (which
    its dialect would move to the top), are printed here; unique names replace them in its tree.
    """
    tree = tree.copy()
    printed: dict[str, str] = {}
    stem = "__part"
    while stem in str(tree.sql(dialect="spark")):
        stem += "_"
    for part in list(_printed_apart(tree, root=True)):
        mark = f"{stem}_{len(printed)}__"
        if clauses_of(part) != Clauses():
            printed[mark] = _reference_text(part)
            in_stream_function = isinstance(part.parent, exp.Anonymous)
            name = exp.to_identifier(mark)
            part.replace(exp.column(name) if in_stream_function else exp.Table(this=name))
        else:
            printed[f"SELECT {mark}"] = query_text(part)
            part.replace(exp.Select(expressions=[exp.to_identifier(mark)]))
    for join in tree.find_all(exp.Join):
        if is_comma(join):
            join.set("kind", None)  # the dialect would print CROSS JOIN
    text = str(tree.sql(dialect="spark"))
    for mark, replacement in printed.items():
        text = text.replace(mark, replacement)
    return text


def _printed_apart(tree: exp.Expression, root: bool = False) -> Iterator[exp.Expression]:
    """The outermost parts that sqlglot cannot print."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        is_query = isinstance(part, exp.Query)
        has_with = is_query and (part.args.get("with") or part.args.get("with_"))
        if clauses_of(part) != Clauses() or (has_with and not (root and part is tree)):
            yield part
        else:
            waiting += reversed(list(part.iter_expressions()))


def _reference_text(reference: exp.Expression) -> str:
    bare = reference.copy()
    clauses = clauses_of(bare)
    bare.meta.pop(_CLAUSES, None)
    alias = bare.args.get("alias")
    joins = bare.args.get("joins") or []
    bare.set("alias", None)
    bare.set("joins", None)
    parts = [query_text(bare), str(clauses)]
    if alias is not None:
        parts.append(f"AS {alias.sql(dialect='spark')}")
    return " ".join([*parts, *(query_text(join).strip() for join in joins)])
