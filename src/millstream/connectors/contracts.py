"""The contracts between connectors and the rest of the system.

A source is a `RowSource`: a possibly endless sequence of rows. An external table is a `TableSource`
(`tables/table_source.py`). A sink is a `Sink`: it is opened with a `SinkContext` when its query
starts and then receives one table per batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa

from millstream.model.errors import QueryError, brief
from millstream.model.instants import Instant
from millstream.model.masking import note_options
from millstream.model.modes import Emit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# --- sources --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Heartbeat:
    """Sent by a source between rows: no row before this instant will follow."""

    instant: object


class Notes(Protocol):
    """Notes that a source keeps in the checkpoint of the query that reads it."""

    def notes(self) -> list[tuple[int, Any]]:
        """All notes so far, each with the number of the row it precedes."""

    def add(self, row: int, note: Any) -> None:
        """Add a note, which is durable when this returns. It consists of plain values: numbers,
        strings, bytes, and lists, tuples and dicts of these."""


class RowSource:
    """The rows of a stream.

    The reading thread calls `open`, which returns an iterable of rows, tables, `Checked` rows and
    `Heartbeat`s, or a single table; `decode` turns each item into a row. `replays`: when opened
    again, it returns the same rows in the same order. `for_now`: after its end, a later run may
    find more rows. `bounded`: all its rows exist already, however long reading them takes.
    """

    def __init__(
        self,
        open: Callable[[], object],
        decode: Callable[[Any], Any] | None = None,
        *,
        replays: bool = True,
        for_now: bool = False,
        bounded: bool = False,
    ) -> None:
        self.open = open
        self.decode = decode
        self.replays = replays
        self.for_now = for_now
        self.bounded = bounded

    def resume(self, notes: Notes | None, received: int) -> int:
        """Called before `open` for a query that has received `received` rows. Returns the number of
        the first row that `open` will return. `notes` is set if the query has a checkpoint."""
        return 0

    def release(self) -> None:
        """The query has ended and takes no more notes."""


# --- sinks ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GivenBatch:
    """Describes the batch that a sink receives: its number, from 0, and the frontier below which
    the answer is complete; None while nothing is complete."""

    id: int
    frontier: Instant | None


class Sink(Protocol):
    """Called in order from one thread; `close` is called when the query ends, also after a
    failure."""

    def give(self, table: pa.Table, batch: GivenBatch) -> None: ...

    def close(self) -> None: ...


Refuse: TypeAlias = Callable[[tuple[object, ...], str], None]


def _fail(row: tuple[object, ...], message: str) -> None:
    raise QueryError(f"{message} in {brief(row)}")


@dataclass(frozen=True)
class SinkContext:
    """What a sink knows when its query starts.

    `schema` is the schema of all its tables. `token` identifies the run: it stays the same when a
    query resumes from its checkpoint, and no other run has it. `next_batch` is the number of the
    first batch; only that batch may have been delivered before. `spark` is set on the Spark engine.
    `refuse` takes a row that the sink cannot store and the reason; the row is added to the query's
    errors."""

    query: str
    schema: pa.Schema
    emit: Emit
    token: str
    next_batch: int = 0
    spark: SparkSession | None = None
    refuse: Refuse = _fail


OpenSink: TypeAlias = Callable[..., Sink]  # called with the context, then the values and options


class Noop:
    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        pass

    def close(self) -> None:
        pass


class FunctionSink(Noop):
    """A user function. After a crash it may receive the last batch again."""

    def __init__(self, function: Callable[[pa.Table, GivenBatch], object]) -> None:
        self._function = function

    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        self._function(table, batch)

    def close(self) -> None:
        """Call `close` of a callable object that has one."""
        close = getattr(self._function, "close", None)
        if callable(close):
            close()


class UnopenedSink(ABC):
    """A sink that is opened when its query starts."""

    @abstractmethod
    def open(self, context: SinkContext) -> Sink: ...


@dataclass(frozen=True)
class NamedSink:
    """A sink given by name and options; `Connectors` opens it."""

    name: str
    values: tuple[object, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict, repr=False)  # may hold passwords

    def __post_init__(self) -> None:
        note_options([*(("", value) for value in self.values), *self.options.items()])
