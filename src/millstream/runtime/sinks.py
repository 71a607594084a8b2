"""Where answers go: what a sink is told, and how one is found by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa

from millstream.logical.catalog import Connector
from millstream.logical.instants import Instant
from millstream.model.errors import QueryError, brief, did_you_mean, listed
from millstream.model.masking import note_options
from millstream.model.names import Name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class GivenBatch:
    """What a sink is told beside the rows: the number of the batch, from 0, and the frontier below
    which the answer is complete; None where nothing is complete yet."""

    id: int
    frontier: Instant | None


class Sink(Protocol):
    """Called in order from one thread; `close` when the query ends, however it does."""

    def give(self, table: pa.Table, batch: GivenBatch) -> None: ...

    def close(self) -> None: ...


Refuse: TypeAlias = Callable[[tuple[object, ...], str], None]


def _fail(row: tuple[object, ...], message: str) -> None:
    raise QueryError(f"{message} in {brief(row)}")


@dataclass(frozen=True)
class SinkContext:
    """What a sink is told when its query starts.

    `schema` is that of all its tables. `token` tells whose batches they are: it is the same
    whenever a query goes on from its checkpoint, and never that of another run. `next_batch` is the
    number that comes first: that batch alone may have been given before. `spark` is there on the
    Spark engine. `refuse` takes a row that the sink cannot hold, and why: it goes to the errors of
    the query."""

    query: str
    schema: pa.Schema
    emit: str
    token: str
    next_batch: int = 0
    spark: SparkSession | None = None
    refuse: Refuse = _fail


class Noop:
    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        pass

    def close(self) -> None:
        pass


class Function(Noop):
    """A function of the user's. After a crash it may get the last batch once more."""

    def __init__(self, function: Callable[[pa.Table, GivenBatch], object]) -> None:
        self._function = function

    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        self._function(table, batch)

    def close(self) -> None:
        """An object that can be called may want to know of the end."""
        close = getattr(self._function, "close", None)
        if callable(close):
            close()


# What opens each sink, as module and function of `connectors.sinks`; it is called with the context
# and the options.
_SINKS = {
    "console": ("console", "Console"),
    "csv": ("folder", "csv"),
    "duckdb": ("duckdb_file", "duckdb"),
    "json": ("folder", "json"),
    "memory": ("memory", "memory"),
    "noop": ("console", "noop"),
    "parquet": ("folder", "parquet"),
    "postgres": ("postgres", "postgres"),
    "postgresql": ("postgres", "postgres"),
    "table": ("spark_table", "table"),
}


_BY_NAME = inspect.Parameter.KEYWORD_ONLY


class UnopenedSink:
    """A sink that is opened when its query starts."""

    def open(self, context: SinkContext) -> Sink:
        raise NotImplementedError


@dataclass(frozen=True)
class NamedSink(UnopenedSink):
    """A sink as it is asked for."""

    name: str
    values: tuple[object, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict, repr=False)  # or a password shows

    def __post_init__(self) -> None:
        note_options([*(("", value) for value in self.values), *self.options.items()])
        opener = _opener(self.name)
        if opener is not None:
            _check_options(self, opener)

    def open(self, context: SinkContext) -> Sink:
        opener = _opener(self.name)
        if opener is None and context.spark is not None:
            from millstream.connectors.sinks.spark_format import SparkFormat

            return SparkFormat(context, self.name, *self.values, **self.options)
        if opener is None:
            raise QueryError(
                f'sink "{self.name}" does not exist',
                help=did_you_mean(self.name, _SINKS)
                or f"the sinks are {listed(_SINKS)}, and on the Spark engine Spark's formats",
            )
        return opener(context, *self.values, **self.options)


def _opener(name: str) -> Callable[..., Sink] | None:
    found = _SINKS.get(name.lower())
    if found is None:
        return None
    opener: Callable[..., Sink] = getattr(
        import_module(f"millstream.connectors.sinks.{found[0]}"), found[1]
    )
    return opener


def _check_options(sink: NamedSink, opener: Callable[..., Sink]) -> None:
    """So that a mistake is told in our words, before anything is opened."""
    _, *known = inspect.signature(opener).parameters.values()  # the first is the context
    names = [parameter.name for parameter in known]
    for name in sink.options:
        if name not in names:
            has = f"the options are {listed(names)}" if names else "it has no options"
            raise QueryError(
                f'sink "{sink.name}" has no option "{name}"', help=did_you_mean(name, names) or has
            )
    places = [parameter.name for parameter in known if parameter.kind is not _BY_NAME]
    by_place = places[: len(sink.values)]
    if len(sink.values) > len(places) or set(by_place) & {*sink.options}:
        raise QueryError(f'sink "{sink.name}" has too many values')
    given = {*by_place, *sink.options}
    for parameter in known:
        if parameter.default is parameter.empty and parameter.name not in given:
            raise QueryError(
                f'sink "{sink.name}" needs the option "{parameter.name}"',
                help=f'ms.sink("{sink.name}", {parameter.name}=…)',
            )


def check_sink(name: Name) -> None:
    """Refuse a name that none of our sinks has."""
    if _opener(name.text) is None:
        raise QueryError(
            f'sink "{name.text}" does not exist',
            name.span,
            did_you_mean(name.text, _SINKS) or f"the sinks are {listed(_SINKS)}",
        )


def check_connector(sink: Connector, spark: bool) -> None:
    """Refuse a sink of INSERT INTO that does not exist, and options that it does not have; on the
    Spark engine other names are those of Spark's formats, which know their options."""
    if not spark:
        check_sink(sink.name)
    try:
        _named(sink)
    except QueryError as error:
        given = error.diagnostic
        raise QueryError(given.message, sink.name.span, given.help) from None


def takes_option(name: str, option: str) -> bool:
    """Whether a sink of that name has the option."""
    opener = _opener(name)
    return opener is not None and option in inspect.signature(opener).parameters


def named_sink(name: str, /, *values: Any, **options: Any) -> NamedSink:
    """`ms.sink("parquet", path=…)`."""
    return NamedSink(name, values, options)


def is_kept(sink: object) -> bool:
    """Whether all answers are kept, for `results()`."""
    named = _named(sink)
    return sink is None or (named is not None and named.name.lower() == "memory")


def opened(sink: object, context: SinkContext) -> Sink:
    """The sink that `query.start` or INSERT INTO names; none means that results are kept."""
    if sink is None:
        return Noop()
    unopened = sink if isinstance(sink, UnopenedSink) else _named(sink)
    if unopened is not None:
        return unopened.open(context)
    if callable(sink):
        return Function(sink)
    raise QueryError(
        f"a sink is a name, ms.sink(…) or a function f(table, batch), not {type(sink).__name__}"
    )


def _named(sink: object) -> NamedSink | None:
    if isinstance(sink, str):
        return NamedSink(sink)
    if isinstance(sink, Connector):
        return NamedSink(sink.name.text, sink.values, dict(sink.options))
    return sink if isinstance(sink, NamedSink) else None
