"""Sources of live rows: a program that sends them, or an iterable that a thread reads."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from types import GeneratorType
from typing import Any

from millstream.checkpoint.journal import Journal
from millstream.checkpoint.spool import Spool
from millstream.connectors.contracts import Heartbeat, RowSource
from millstream.connectors.intake.moments import is_number, microseconds, remedy
from millstream.connectors.intake.rows import Unreadable, is_table, typed
from millstream.logical.catalog import Stream
from millstream.logical.instants import chronon
from millstream.model.errors import DataError, QueryError, brief
from millstream.model.records import Checked
from millstream.model.time import TIMESTAMP_TIME
from millstream.model.types import TIMESTAMP
from millstream.runtime.inbox import CAPACITY, Beat, End, Inlet, SpooledInlet
from millstream.runtime.inputs import Input, InputPlace, QueuedInput

_END = object()

# Larger batches are split, so that queues stay short.
SLICE_ROWS = 65_536
SLICE_BYTES = 1 << 26


class Audience:
    """The queues of the queries that currently read a stream."""

    def __init__(self, stream: Stream, capacity: int = CAPACITY) -> None:
        self.stream = stream
        self.capacity = capacity
        self._inlets: list[Inlet] = []  # replaced, never modified: other threads iterate over it
        self._changing = threading.Lock()

    def join(self, inlet: Inlet) -> None:
        with self._changing:
            self._inlets = [*self._inlets, inlet]

    def leave(self, inlet: Inlet) -> None:
        with self._changing:
            self._inlets = [other for other in self._inlets if other is not inlet]

    def __len__(self) -> int:
        return sum(not inlet.closed for inlet in self._inlets)

    def tell(self, entry: Checked | Beat | End) -> bool:
        """Returns whether any query accepted it."""
        taken = [inlet.offer(entry) for inlet in self._inlets]
        return any(taken)

    def tell_rows(self, data: object) -> tuple[int, bool]:
        """Pass on many rows; returns how many are good, and whether any query accepted them."""
        records, bad = typed(self.stream, data)
        if len(records) <= SLICE_ROWS and records.nbytes <= SLICE_BYTES:
            return len(records), self.tell(Checked(records, bad)) or not len(records) + len(bad)
        taken = True
        ordered = records.in_order()  # no part makes another late
        for part in ordered.parts(SLICE_ROWS, SLICE_BYTES):
            taken = self.tell(Checked(part, bad)) and taken
            bad = []
        return len(records), taken

    def tell_row(self, row: object) -> bool:
        taken = [inlet.offer_row(row) for inlet in self._inlets]
        return any(taken)

    def tell_beat(self, instant: object) -> bool:
        return self.tell(Beat(promised(instant, self.stream)))


def promised(instant: object, stream: Stream) -> int:
    """The chronon of a heartbeat. With TIMESTAMP time a number has the unit of the stream's
    rows."""
    if is_number(instant) and stream.domain == TIMESTAMP_TIME:
        if stream.unit is None:
            raise QueryError(
                f"{instant!r} is not an instant of TIMESTAMP time",
                help=remedy(TIMESTAMP, is_time=bool(stream.time)),
            )
        return microseconds(instant, stream.unit)
    return chronon(instant, stream.domain)


class Feed:
    """A stream that a program pushes. Every running query that reads it receives the rows sent
    after its start; rows sent while no query runs are lost. When `send` returns, the rows are in
    the checkpoint of each query that has one."""

    def __init__(self, stream: Stream, capacity: int = CAPACITY) -> None:
        if not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 1:
            raise DataError(f"the capacity must be a number of rows, at least 1, not {capacity!r}")
        self._audience = Audience(stream, capacity)
        self._lock = threading.Lock()
        self._closed = False

    @property
    def name(self) -> str:
        return self._audience.stream.name

    @property
    def closed(self) -> bool:
        return self._closed

    def __repr__(self) -> str:
        return f"<Feed {self.name}{' (closed)' if self._closed else ''}>"

    def send(self, data: object) -> int:
        """Push rows: a mapping or an iterable of rows, an Arrow table, a pandas or Polars frame.

        Blocks while the queue of a query is full. Returns how many rows were good; the others go to
        the error outputs of the queries.
        """
        self._check_open()
        count, _ = self._audience.tell_rows(data)
        return count

    def heartbeat(self, instant: object) -> None:
        """Promise that no row before this instant will follow."""
        self._check_open()
        self._audience.tell_beat(instant)

    def close(self) -> None:
        """End the stream, and so the queries that read it."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._audience.tell(End())

    def __enter__(self) -> Feed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise QueryError(f'the feed of stream "{self.name}" is closed')

    # --- for queries -----------------------------------------------------------------------------

    def open(self, place: InputPlace) -> Input:
        return QueuedInput(place.sources, self, _spooled(place, self._audience.capacity))

    def attach(self, inlet: Inlet, received: int) -> int:
        known = inlet.recover(received)
        with self._lock:
            if self._closed:
                inlet.offer(End())
            else:
                self._audience.join(inlet)
        return known

    def detach(self, inlet: Inlet) -> None:
        self._audience.leave(inlet)


class Reader:
    """A source read by a thread for the queries that use it.

    The thread opens the source, which may block; the thread ends at the next item if no query reads
    it any more. `shared`: a later query continues where the last one stopped; otherwise the source
    is closed when its query ends.
    """

    def __init__(self, stream: Stream, source: RowSource, *, shared: bool = False) -> None:
        self._audience = Audience(stream)
        self._source = source
        self.shared = shared
        self.replays = source.replays and not shared
        self._journal: Journal | None = None  # of a query with a checkpoint
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._items: Iterator[Any] | None = None
        self._pending: list[Any] = []  # an item that no query accepted
        self._end: End | None = None

    @property
    def bounded(self) -> bool:
        return self._source.bounded

    @property
    def begun(self) -> bool:
        return self._items is not None or self._thread is not None

    def all_items(self) -> Any:
        """All items, read now; data that is not iterable is returned unchanged."""
        if self.begun:
            name = self._audience.stream.name
            raise QueryError(f'stream "{name}" is an iterator that a running query has read from')
        data = self._source.open()
        if self._source.decode is not None:
            data = [self._source.decode(item) for item in items_of(data)]
        if is_table(data) or not isinstance(data, Iterable):
            return data
        return [item for item in data if not isinstance(item, Heartbeat)]

    def open(self, place: InputPlace) -> Input:
        if place.checkpoint is not None:
            self._journal = Journal(place.checkpoint, place.stream.name)
        inlet = Inlet(place.stream, place.inbox) if self.replays else _spooled(place)
        return QueuedInput(place.sources, self, inlet)

    def attach(self, inlet: Inlet, received: int) -> int:
        known = inlet.recover(received) - self._source.resume(self._journal, received)
        with self._lock:
            if self._end is not None:
                inlet.offer(self._end)
                return known
            self._audience.join(inlet)
            if self._thread is None:
                name = f"millstream source {self._audience.stream.name}"
                self._thread = threading.Thread(target=self._read, name=name, daemon=True)
                self._thread.start()
        return known

    def detach(self, inlet: Inlet) -> None:
        """Closes the source, which wakes it if it blocks and can be closed from another thread."""
        self._audience.leave(inlet)
        if not self.shared and not isinstance(self._items, GeneratorType):
            self._close()
        self._source.release()
        self._journal = None

    def join(self, timeout: float) -> None:
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def _close(self) -> None:
        close = getattr(self._items, "close", None)
        if close is not None:
            with contextlib.suppress(Exception):  # its errors no longer matter
                close()

    def _read(self) -> None:
        end = End(for_now=self._source.for_now)
        try:
            if self._items is None:
                self._items = items_of(self._source.open())
            while (item := self._next_item()) is not _END:
                while not self._pass_on(item):
                    if not self._is_wanted(item):
                        return
        except Exception as error:  # any error of a source ends the queries that read it
            end = End(error)
        with self._lock:
            self._end, self._thread = end, None
            self._audience.tell(end)

    def _next_item(self) -> Any:
        assert self._items is not None
        return self._pending.pop() if self._pending else next(self._items, _END)

    def _is_wanted(self, item: Any) -> bool:
        """Whether a new query accepts an item that none has accepted; if not, the thread ends and
        keeps the item for the next query."""
        with self._lock:
            if len(self._audience):
                return True
            self._pending.append(item)
            self._thread = None
        if not self.shared:
            self._close()
        return False

    def _pass_on(self, item: Any) -> bool:
        if isinstance(item, Heartbeat):
            return self._audience.tell_beat(item.instant)
        if isinstance(item, Checked):
            return self._audience.tell(item)
        if self._source.decode is not None:
            try:
                item = self._source.decode(item)
            except Exception as error:
                item = Unreadable(f"{brief(item)} cannot be decoded: {error}")
        if is_table(item):
            _, taken = self._audience.tell_rows(item)
            return taken
        return self._audience.tell_row(item)


def _spooled(place: InputPlace, capacity: int = CAPACITY) -> Inlet:
    """A queue for rows that cannot be replayed: with a checkpoint they are stored there."""
    if place.checkpoint is None:
        return Inlet(place.stream, place.inbox, capacity)
    spool = Spool(place.checkpoint, place.stream.name)
    return SpooledInlet(place.stream, place.inbox, capacity, spool)


def items_of(data: object) -> Iterator[Any]:
    """The items of a connector; a table is one item."""
    if is_table(data):
        return iter([data])
    if isinstance(data, str | bytes | dict) or not isinstance(data, Iterable):
        raise TypeError(
            f"it returns {type(data).__name__}, which is not an iterable of rows or batches"
        )
    return iter(data)
