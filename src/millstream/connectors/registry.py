"""The connectors of a session: the built-in ones, each loaded on first use, and those that the user
registers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from millstream.connectors import sinks
from millstream.connectors.contracts import (
    FunctionSink,
    NamedSink,
    Noop,
    OpenSink,
    RowSource,
    Sink,
    SinkContext,
    UnopenedSink,
)
from millstream.connectors.tables.table_source import TableSource
from millstream.logical.catalog import Connector, Stream, Table
from millstream.model.errors import DataError, QueryError, did_you_mean, listed, one_of
from millstream.model.names import Name

Connect = Callable[..., Any]

# `CREATE STREAM … SOURCE name(…)`, by the name in lower case. These are called with their values
# and options, like a user's connector.
_FUNCTIONS = {"nexmark": "nexmark"}

# These are called with the stream's declaration and whether to read only the rows available now.
# Each module has a function `connect`.
_SOURCES = {
    "parquet": "file_source",
    "csv": "file_source",
    "json": "file_source",
    "rate": "rate",
    "socket": "socket_lines",
}

# `CREATE TABLE … SOURCE name(…)`: modules of `connectors.tables` with a function `connect`.
_TABLES = {
    "postgres": "postgres",
    "duckdb": "duckdb_file",
    "sqlite": "sqlite_file",
    "csv": "data_files",
    "parquet": "data_files",
    "json": "data_files",
}

# Sinks: module and function of `connectors.sinks`, called with the context, values and options. A
# sink that is a function in a module of the same name needs no entry.
_SINKS = {
    "console": ("console", "Console"),
    "csv": ("folder", "csv"),
    "duckdb": ("duckdb_file", "duckdb"),
    "json": ("folder", "json"),
    "noop": ("console", "noop"),
    "parquet": ("folder", "parquet"),
    "postgresql": ("postgres", "postgres"),
    "table": ("spark_table", "table"),
}

_BY_NAME = inspect.Parameter.KEYWORD_ONLY


def _loaded(module: str, function: str = "connect") -> Connect:
    found: Connect = getattr(import_module(f"millstream.connectors.{module}"), function)
    return found


class Connectors:
    """Resolves the names after SOURCE, INTO and `sink=`."""

    def __init__(self) -> None:
        self._sources: dict[str, tuple[Connect, Callable[[Any], Any] | None, bool]] = {}
        self._sinks: dict[str, OpenSink] = {}

    # --- sources ---------------------------------------------------------------------------------

    def add_source(
        self, name: str, connect: Connect, decode: Callable[[Any], Any] | None, replays: bool
    ) -> None:
        self._sources[name.lower()] = connect, decode, replays

    @property
    def sources(self) -> list[str]:
        return [*self._sources, *_FUNCTIONS, *_SOURCES]

    def is_registered(self, name: str) -> bool:
        """Whether the user registered the source, or it is a built-in function."""
        return name.lower() in {**self._sources, **_FUNCTIONS}

    def has_source(self, name: str) -> bool:
        return name.lower() in self.sources

    def row_source(self, stream: Stream, available_now: bool) -> RowSource:
        """The source of a stream's rows; does not open anything."""
        assert stream.connector is not None
        name = stream.connector.name.text.lower()
        if self.is_registered(name):
            own = self._sources.get(name)
            connect, decode, replays = own or (_loaded(_FUNCTIONS[name]), None, True)
            values, options = stream.connector.values, dict(stream.connector.options)
            return RowSource(partial(connect, *values, **options), decode, replays=replays)
        if name not in _SOURCES:
            raise self.unknown_source(stream)
        source: RowSource = _loaded(_SOURCES[name])(stream, available_now)
        return source

    def unknown_source(self, stream: Stream) -> QueryError:
        assert stream.connector is not None
        name = stream.connector.name.text
        return QueryError(
            f'stream "{stream.name}" cannot be read: connector "{name}" does not exist',
            help=did_you_mean(name, self.sources)
            or "register it with session.source(name, connect, decode)",
        )

    # --- sinks -----------------------------------------------------------------------------------

    def add_sink(self, name: str, open: OpenSink) -> None:
        if not callable(open):
            raise QueryError(
                f'sink "{name}" must be opened by a function, not by {type(open).__name__}',
                help="session.sink(name, open): open(context, …) returns an object with give("
                "table, batch) and close(), or a function f(table, batch)",
            )
        self._sinks[name.lower()] = open

    @property
    def sinks(self) -> list[str]:
        return sorted({*self._sinks, *built_in_sinks()})

    def _opener(self, name: str) -> OpenSink | None:
        return self._sinks.get(name.lower()) or built_in_sink(name)

    def check_sink(self, name: Name) -> None:
        """Reject a name that no sink has."""
        if self._opener(name.text) is None:
            raise QueryError(
                f'sink "{name.text}" does not exist',
                name.span,
                did_you_mean(name.text, self.sinks) or f"the sinks are {listed(self.sinks)}",
            )

    def check_target(self, sink: Connector, spark: bool) -> None:
        """Reject an unknown sink of INSERT INTO, or unknown options. On the Spark engine other
        names are Spark formats, which check their own options."""
        if not spark:
            self.check_sink(sink.name)
        opener = self._opener(sink.name.text)
        if opener is not None:
            try:
                check_options(asked_for(sink), opener)
            except QueryError as error:
                given = error.diagnostic
                raise QueryError(given.message, sink.name.span, given.help) from None

    def sink_takes(self, name: str, option: str) -> bool:
        """Whether a sink of that name has the option."""
        opener = self._opener(name)
        return opener is not None and option in inspect.signature(opener).parameters

    def open_sink(self, sink: object, context: SinkContext) -> Sink:
        """Open the sink of `query.start` or INSERT INTO; None keeps the results in memory."""
        if sink is None:
            return Noop()
        if isinstance(sink, UnopenedSink):
            return sink.open(context)
        named = asked_for(sink)
        if named is not None:
            return self._open_named(named, context)
        if callable(sink):
            return FunctionSink(sink)
        raise QueryError(
            f"a sink is a name, ms.sink(…) or a function f(table, batch), not {type(sink).__name__}"
        )

    def _open_named(self, sink: NamedSink, context: SinkContext) -> Sink:
        opener = self._opener(sink.name)
        if opener is None and context.spark is not None:
            opened: Sink = _loaded("sinks.spark_format", "SparkFormat")(
                context, sink.name, *sink.values, **sink.options
            )
            return opened
        if opener is None:
            raise QueryError(
                f'sink "{sink.name}" does not exist',
                help=did_you_mean(sink.name, self.sinks)
                or f"the sinks are {listed(self.sinks)}, and on the Spark engine Spark's formats",
            )
        check_options(sink, opener)
        opened = opener(context, *sink.values, **sink.options)
        is_sink = callable(getattr(opened, "give", None))
        return opened if is_sink or not callable(opened) else FunctionSink(opened)


def table_source(table: Table) -> TableSource:
    """The source of a table's rows. Checks the declaration; does not open anything."""
    assert table.connector is not None
    name = table.connector.name.text
    if name.lower() not in _TABLES:
        raise DataError(
            f'table "{table.name}" cannot be read by a connector "{name}"',
            table.connector.name.span,
            one_of(name, _TABLES, "connector"),
        )
    source: TableSource = _loaded(f"tables.{_TABLES[name.lower()]}")(table)
    return source


# --- sinks by name --------------------------------------------------------------------------------


def named_sink(name: str, /, *values: Any, **options: Any) -> NamedSink:
    """`ms.sink("parquet", path=…)`."""
    sink = NamedSink(name, values, options)
    opener = built_in_sink(name)
    if opener is not None:
        check_options(sink, opener)
    return sink


def asked_for(sink: object) -> NamedSink | None:
    """The sink if it is given by name, else None."""
    if isinstance(sink, str):
        return NamedSink(sink)
    if isinstance(sink, Connector):
        return NamedSink(sink.name.text, sink.values, dict(sink.options))
    return sink if isinstance(sink, NamedSink) else None


def is_kept(sink: object) -> bool:
    """Whether all results are kept for `results()`."""
    named = asked_for(sink)
    return sink is None or (named is not None and named.name.lower() == "memory")


def built_in_sink(name: str) -> OpenSink | None:
    module, function = _SINKS.get(name.lower(), (name.lower(), name.lower()))
    if module not in _sink_modules():
        return None
    return getattr(import_module(f"{sinks.__name__}.{module}"), function, None)


def built_in_sinks() -> list[str]:
    return [name for name in {*_SINKS, *_sink_modules()} if built_in_sink(name) is not None]


@cache
def _sink_modules() -> frozenset[str]:
    return frozenset(module.name for module in iter_modules(sinks.__path__))


def check_options(sink: NamedSink | None, opener: OpenSink) -> None:
    """Reject unknown, missing or too many options before anything is opened."""
    assert sink is not None
    _, *known = inspect.signature(opener).parameters.values()  # the first is the context
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known):
        return
    names = [parameter.name for parameter in known]
    for name in sink.options:
        if name not in names:
            has = f"the options are {listed(names)}" if names else "it has no options"
            raise QueryError(
                f'sink "{sink.name}" has no option "{name}"', help=did_you_mean(name, names) or has
            )
    _check_values(sink, known)
    given = {*_places(known)[: len(sink.values)], *sink.options}
    for parameter in known:
        if parameter.default is parameter.empty and parameter.name not in given:
            raise QueryError(
                f'sink "{sink.name}" needs the option "{parameter.name}"',
                help=f'ms.sink("{sink.name}", {parameter.name}=…)',
            )


def _check_values(sink: NamedSink, known: Iterable[inspect.Parameter]) -> None:
    places = _places(known)
    by_place = places[: len(sink.values)]
    if len(sink.values) > len(places) or set(by_place) & {*sink.options}:
        raise QueryError(f'sink "{sink.name}" has too many values')


def _places(known: Iterable[inspect.Parameter]) -> list[str]:
    return [parameter.name for parameter in known if parameter.kind is not _BY_NAME]
