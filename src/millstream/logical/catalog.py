"""The catalog: streams, derived streams, queries, functions and their dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar, TypeAlias

from millstream.logical.evaluate import UserAggregate, UserFunction
from millstream.logical.expressions import AggregateCall, Call
from millstream.logical.plan import Field, Lifetime, Plan, Schema, Source, expressions
from millstream.logical.text import literal_text, name_text
from millstream.model import types
from millstream.model.errors import CatalogError, Span, listed, one_of
from millstream.model.masking import MASK, Secret, is_secret_name, shown
from millstream.model.modes import QueryState
from millstream.model.names import Name
from millstream.model.time import TimeDomain

Option: TypeAlias = "str | int | float | bool | None"


@dataclass(frozen=True)
class Connector:
    """`kafka('host', topic => 'bids')`: a name, values by position and values by name."""

    name: Name
    values: tuple[Option, ...] = ()
    options: tuple[tuple[str, Option], ...] = ()

    def __str__(self) -> str:
        """The text for display, with secrets masked."""
        named = [f"{name_text(key)} => {_option_text(value, key)}" for key, value in self.options]
        return f"{self.name}({', '.join([*map(_option_text, self.values), *named])})"


@dataclass(frozen=True)
class Stream:
    """A source stream. `time` names the column that orders it, or the two columns of the validity;
    without any, time is arrival time. `delay` and `idle` are in chronons. `numbered`: rows of one
    instant are ordered, as in a source with one reader; parallel tasks of Spark have no order.
    `rate` (rows per second, or per unit of raw time), `distinct`, `ranges` and `size` (bytes per
    row) are statistics for the optimizer. `unique`: sets of columns that together identify a row
    among all rows. `unit`: the microseconds per unit of a number in a TIMESTAMP time column;
    without it such numbers are refused."""

    name: str
    columns: Schema
    domain: TimeDomain
    time: tuple[str, ...] = ()
    delay: int = 0
    idle: int | None = None
    connector: Connector | None = None
    rate: float | None = None
    distinct: tuple[tuple[str, float], ...] = ()
    ranges: tuple[tuple[str, float | None, float | None], ...] = ()
    size: float | None = None
    bounded: bool = False
    numbered: bool = True
    unique: tuple[tuple[str, ...], ...] = ()
    unit: int | None = None
    comments: tuple[tuple[str, str], ...] = ()  # of columns, for people
    unscaled: tuple[str, ...] = ()  # columns declared DECIMAL without a scale

    kind: ClassVar[str] = "stream"

    def __hash__(self) -> int:
        return hash(self.name)  # needed for every row that is sent

    @property
    def lifetime(self) -> Lifetime:
        return Lifetime.INTERVAL if len(self.time) == 2 else Lifetime.INSTANT

    @property
    def units(self) -> dict[str, int | None]:
        """The unit of numbers in each time column that is a TIMESTAMP."""
        if self.domain.type != types.TIMESTAMP:
            return {}
        return dict.fromkeys(self.time, self.unit)

    def source(self, alias: str) -> Source:
        source = Source(self.name, alias, self.columns, self.domain, self.lifetime, self.bounded)
        return replace(source, numbered=self.numbered, unique=self.unique)


class ChangeMode(Enum):
    """The effect of a change of a table on rows of streams."""

    NONE = "CONSTANT"  # there are none
    RETROACTIVE = "RETROACTIVE"  # from then on, also for earlier rows that are still valid
    NON_RETROACTIVE = "NON RETROACTIVE"  # for rows that arrive then or later
    OWN = "TEMPORAL"  # each row has its own validity


@dataclass(frozen=True)
class Table(Stream):
    """A relation: rows are valid until they are deleted. `time` names the column with the time at
    which a row takes effect, or the two columns of its validity; without any, a change takes effect
    when it is read. `key` is unique at every instant."""

    changes: ChangeMode = ChangeMode.RETROACTIVE
    key: tuple[str, ...] = ()

    kind: ClassVar[str] = "table"

    @property
    def lifetime(self) -> Lifetime:
        if self.changes is ChangeMode.OWN:
            return Lifetime.INTERVAL
        return Lifetime.ALWAYS if self.changes is ChangeMode.NONE else Lifetime.CHANGES

    def source(self, alias: str) -> Source:
        unique = (self.key,) if self.key else ()
        return replace(super().source(alias), unique=unique, relation=True)


@dataclass(frozen=True)
class DerivedStream:
    """A stream, a view or a table that is defined by a query."""

    name: str
    plan: Plan
    kind: str = "stream"

    @property
    def columns(self) -> Schema:
        return self.plan.schema


@dataclass
class RegisteredQuery:
    name: str
    plan: Plan
    text: str
    depends_on: frozenset[str]
    state: QueryState = QueryState.REGISTERED
    dropped: bool = False


@dataclass
class Catalog:
    """Names are unique ignoring case; a quoted reference must match exactly."""

    functions: dict[str, UserFunction] = field(default_factory=dict)
    aggregates: dict[str, UserAggregate] = field(default_factory=dict)
    _streams: dict[str, Stream | DerivedStream] = field(default_factory=dict)
    _queries: dict[str, RegisteredQuery] = field(default_factory=dict)
    _dependencies: dict[str, frozenset[str]] = field(default_factory=dict)

    # --- streams ---------------------------------------------------------------------------------

    @property
    def streams(self) -> list[Stream | DerivedStream]:
        return list(self._streams.values())

    def find_stream(self, name: Name) -> Stream | DerivedStream | None:
        return next((s for s in self._streams.values() if name.matches(s.name)), None)

    def stream(self, name: Name) -> Stream | DerivedStream:
        found = self.find_stream(name)
        if found is None:
            names = [stream.name for stream in self._streams.values()]
            nothing = None if names else "no stream is registered: write CREATE STREAM first"
            raise CatalogError(
                f'stream "{name.text}" does not exist',
                name.span,
                one_of(name.text, names, "stream") or nothing,
            )
        return found

    def add_stream(
        self,
        stream: Stream | DerivedStream,
        span: Span | None = None,
        depends_on: Iterable[str] = (),
    ) -> None:
        self.check_free(stream.name, span)
        self._streams[stream.name.lower()] = stream
        self._dependencies[stream.name] = frozenset(depends_on)

    def check_free(self, name: str, span: Span | None) -> None:
        """Refuse a name that a stream already has."""
        existing = self._streams.get(name.lower())
        if existing is not None:
            raise CatalogError(
                f'{existing.kind} "{existing.name}" exists already',
                span,
                f"drop it first: DROP {existing.kind.upper()} {existing.name}",
            )

    def drop_stream(self, name: Name, kind: str = "stream") -> None:
        stream = self.stream(name)
        if stream.kind != kind:
            raise CatalogError(
                f'"{stream.name}" is a {stream.kind}, not a {kind}',
                name.span,
                f"write DROP {stream.kind.upper()} {stream.name}",
            )
        dependants = self.dependants(stream.name)
        if dependants:
            raise CatalogError(
                f'{stream.kind} "{stream.name}" is in use by {listed(dependants)}',
                name.span,
                "drop what uses it first",
            )
        del self._streams[stream.name.lower()]
        del self._dependencies[stream.name]

    def dependants(self, stream: str) -> list[str]:
        """The derived streams and queries that read the stream directly, in order."""
        derived = [name for name, used in self._dependencies.items() if stream in used]
        queries = [query.name for query in self._queries.values() if stream in query.depends_on]
        return derived + queries

    def users_of_function(self, function: str) -> list[str]:
        """The derived streams and queries that call a user-defined function."""
        plans = {s.name: s.plan for s in self._streams.values() if isinstance(s, DerivedStream)}
        plans |= {query.name: query.plan for query in self._queries.values()}
        return [name for name, plan in plans.items() if _calls(plan, function)]

    # --- queries ---------------------------------------------------------------------------------

    @property
    def queries(self) -> list[RegisteredQuery]:
        return list(self._queries.values())

    def query(self, name: Name) -> RegisteredQuery:
        for query in self._queries.values():
            if name.matches(query.name):
                return query
        raise CatalogError(
            f'query "{name.text}" does not exist',
            name.span,
            one_of(name.text, [q.name for q in self._queries.values()], "query", "queries"),
        )

    def has_query(self, query: RegisteredQuery) -> bool:
        return self._queries.get(query.name.lower()) is query

    def add_query(self, query: RegisteredQuery) -> None:
        if query.name.lower() in self._queries:
            raise CatalogError(f'query "{query.name}" exists already')
        self._queries[query.name.lower()] = query

    def rename_query(self, old: str, new: str) -> None:
        query = self._queries[old.lower()]
        if new.lower() != old.lower() and new.lower() in self._queries:
            raise CatalogError(f'query "{new}" exists already')
        query.name = new
        self._queries = {entry.name.lower(): entry for entry in self._queries.values()}

    def drop_query(self, name: Name) -> RegisteredQuery:
        query = self.query(name)
        del self._queries[query.name.lower()]
        query.dropped = True
        return query

    def new_query_name(self) -> str:
        return next(name for name in _query_names() if name not in self._queries)


def _calls(plan: Plan, function: str) -> bool:
    return any(
        isinstance(part, Call | AggregateCall) and part.function == function
        for node in plan.walk()
        for part in expressions(node)
    )


def _query_names() -> Iterator[str]:
    number = 1
    while True:
        yield f"query_{number}"
        number += 1


def column_named(columns: Schema, name: Name, owner: str, kind: str = "stream") -> Field:
    """The column of a stream's or a table's declaration that a clause names."""
    for column in columns:
        if name.matches(column.name):
            return column
    raise CatalogError(
        f'column "{name.text}" does not exist in {kind} "{owner}"',
        name.span,
        one_of(name.text, [column.name for column in columns], "column"),
    )


def _option_text(value: Option, name: str = "") -> str:
    if isinstance(value, str) and is_secret_name(name):
        return f"'{MASK}'"
    if isinstance(value, Secret):
        return literal_text(value, types.STRING)
    if isinstance(value, str):
        return literal_text(shown(value), types.STRING)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return "NULL" if value is None else repr(value)
