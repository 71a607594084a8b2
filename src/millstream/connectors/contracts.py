"""What connectors and the rest of the system promise each other.

A source is a `RowSource`: rows as they come, perhaps for ever. A table of another system is a
`TableSource` (`tables/table_source.py`). A sink is a `Sink`: it is opened with a `SinkContext` when
its query starts and then gets one table after the other.
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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# --- sources --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Heartbeat:
    """What a source gives among its rows to say: none before this instant will follow."""

    instant: object


class Notes(Protocol):
    """What a source has noted in the checkpoint of the query that reads it."""

    def notes(self) -> list[tuple[int, Any]]:
        """All notes so far, each with the number of the row before which it was made."""

    def add(self, row: int, note: Any) -> None:
        """The note is durable when this returns. It is made of plain values: numbers, texts, bytes,
        and lists, tuples and dicts of these."""


class RowSource:
    """The rows of a stream.

    `open` gives them, called by the thread that reads: an iterable of rows, tables, `Checked` rows
    and `Heartbeat`s, or a single table; `decode` makes a row of each item. `replays`: opened again,
    it gives the same rows in the same order. `for_now`: more may follow another time when it has
    ended. `bounded`: all its rows exist already, however long they take to come.
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
        """Called before `open` for a query that has received so many rows: the number of the row
        that `open` gives first. `notes` is there if the query has a checkpoint."""
        return 0

    def release(self) -> None:
        """The query has ended and takes no more notes."""


# --- sinks ----------------------------------------------------------------------------------------


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


OpenSink: TypeAlias = Callable[..., Sink]  # with the context, then the values and options


class Noop:
    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        pass

    def close(self) -> None:
        pass


class FunctionSink(Noop):
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


class UnopenedSink(ABC):
    """A sink that is opened when its query starts."""

    @abstractmethod
    def open(self, context: SinkContext) -> Sink: ...


@dataclass(frozen=True)
class NamedSink:
    """A sink as it is asked for: `Connectors` opens it."""

    name: str
    values: tuple[object, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict, repr=False)  # or a password shows

    def __post_init__(self) -> None:
        note_options([*(("", value) for value in self.values), *self.options.items()])
