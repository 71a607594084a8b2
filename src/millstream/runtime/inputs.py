"""The inputs of a running query: what comes next from each stream, and how far it has come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from millstream.checkpoint.files import Files
from millstream.logical.catalog import Stream
from millstream.model.records import Records
from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, State
from millstream.physical.operators.source import Source
from millstream.runtime.bounded import BATCH_ROWS
from millstream.runtime.held import HeldRows
from millstream.runtime.inbox import Arrival, End, Inbox, Inlet
from millstream.runtime.outputs import ErrorOutput, LateOutput


@dataclass(frozen=True)
class InputPlace:
    """Where an input belongs: its stream, the sources of the plan that want its rows, the inbox of
    the query, and where the query keeps what must outlast a crash."""

    stream: Stream
    sources: Sequence[Source]
    inbox: Inbox
    checkpoint: Files | None = None
    folder: Path | None = None


class Origin(Protocol):
    """Where a query gets the rows of a stream from, as they come."""

    def open(self, place: InputPlace) -> Input: ...


class Pusher(Protocol):
    """Who fills the queue of an input."""

    def attach(self, inlet: Inlet, received: int) -> int:
        """From now on. How many rows come first that are known: of those that the query has
        received before a restart."""

    def detach(self, inlet: Inlet) -> None: ...


def is_held(stream: Stream, sources: Iterable[Source]) -> bool:
    """Whether rows of a stream that is pushed wait for the frontier: those that come out of order,
    where one of the sources of a plan asks for their place in it."""
    return stream.delay > 0 and any(source.arrival for source in sources)


# What a checkpoint has of every input, by these names.
_SAVED = ("frontier", "received", "admitted", "late", "behind", "bad", "ended")


class Input(ABC):
    """One stream as one query sees it."""

    def __init__(self, stream: Stream, sources: Sequence[Source]) -> None:
        self.stream = stream
        self.sources = sources
        self.frontier = NEVER
        self.received = 0  # rows, with those that are late or cannot be read
        self.admitted = 0  # rows that went into the query
        self.late = 0
        self.behind = (
            0  # by how much rows came behind the latest, at most, as far as they were late
        )
        self.bad = 0
        self.ended = False
        self.heard = 0  # when something came last, by the stopwatch
        self.moved = 0  # since when the frontier is what it is, by the stopwatch
        self.idle = False
        self.in_step = False  # whether its batches come one by one and with those of the others

    def begin(self, now: int) -> None:
        """From now on the query wants rows."""
        self.heard = self.moved = now

    @property
    def bounded(self) -> bool:
        """Whether all its rows are there, however long they take to come."""
        return False

    @property
    def over(self) -> bool:
        """Whether nobody need wait for it any more."""
        return self.ended

    @property
    @abstractmethod
    def ready(self) -> bool:
        """Whether something can be taken; asked under the lock of the inbox."""

    @property
    @abstractmethod
    def queued(self) -> int | None:
        """How many rows wait; None where that is not known."""

    @abstractmethod
    def take(self, limit: int = BATCH_ROWS) -> Arrival: ...

    @abstractmethod
    def close(self) -> None:
        """Take nothing more that has not been accepted; under the lock of the inbox."""

    def detach(self) -> None:  # noqa: B027
        """Tell those who push, if any, that nobody reads any more."""

    def let_go(self) -> None:  # noqa: B027
        """What follows from all that was received is where it belongs, and will stay there."""

    def report(self, late: LateOutput, errors: ErrorOutput) -> None:  # noqa: B027
        """Tell of rows that were found late or bad elsewhere than here."""

    @property
    def trouble(self) -> str | None:
        """Why it cannot be read at present, if that is so."""
        return None

    @property
    def patience(self) -> int | None:
        """For how many microseconds the source may be silent before nobody waits for it."""
        if self.bounded or self.stream.idle is None or self.stream.domain.microseconds is None:
            return None
        return self.stream.idle * self.stream.domain.microseconds

    def save(self) -> State:
        """How far the stream has been read."""
        return {name: getattr(self, name) for name in _SAVED}

    def restore(self, state: State) -> None:
        """Go on from there; the stream is given from its beginning again."""
        for name in _SAVED:
            setattr(self, name, state[name])

    def timed(self, records: Records, now: int) -> Records:
        """The rows in order of time; those of a stream without one get the time of arrival."""
        if self.stream.time:
            return records.in_order()
        instant = max(self.frontier, now)
        start = np.full(len(records), instant, np.int64)
        return Records(records.columns, start, start + 1)

    def split_late(self, records: Records) -> tuple[Records, Records | None]:
        """The rows that are in time, and those that start before what is final already."""
        if not len(records) or records.start[0] >= self.frontier:
            return records, None
        first = int(np.searchsorted(records.start, self.frontier))
        self.note_late(records.slice(0, first))
        return records.slice(first, len(records)), records.slice(0, first)

    def note_late(self, records: Records) -> None:
        """Count rows that start before what is final already."""
        if len(records):
            self.late += len(records)
            distance = self.frontier - int(records.start.min()) + self.stream.delay
            self.behind = max(self.behind, distance)

    def released(self, records: Records) -> Records:
        """The rows that go on now, of those that came and those that are held."""
        return records

    @property
    def held(self) -> int:
        """How many rows wait for the frontier, because their place in the stream is asked for."""
        return 0

    def advance(self, records: Records, promised: int | None) -> bool:
        """Move the frontier past what came; whether it moved."""
        before = self.frontier
        if len(records):
            latest = int(records.start[-1])
            delay = self.stream.delay if self.stream.time else -1
            self.frontier = max(before, latest - delay)
        if promised is not None:
            self.frontier = max(self.frontier, promised)
        if self.ended:
            self.frontier = INFINITY
        return self.frontier > before


class QueuedInput(Input):
    """A stream that is pushed."""

    def __init__(self, sources: Sequence[Source], origin: Pusher, inlet: Inlet) -> None:
        super().__init__(inlet.stream, sources)
        self._held = HeldRows() if is_held(inlet.stream, sources) else None
        self.origin = origin
        self._inlet = inlet
        self._known = 0  # rows that come again after a restart, and were read before it
        self._run_dry = False  # nothing follows that is there now

    def begin(self, now: int) -> None:
        super().begin(now)
        if not self.ended:
            self._known = self.origin.attach(self._inlet, self.received)

    @property
    def bounded(self) -> bool:
        return bool(getattr(self.origin, "bounded", False))

    @property
    def ready(self) -> bool:
        return len(self._inlet) > 0

    @property
    def over(self) -> bool:
        return super().over or self._run_dry

    @property
    def queued(self) -> int:
        return self._inlet.queued

    def take(self, limit: int = BATCH_ROWS) -> Arrival:
        arrival = self._inlet.take(limit)
        self._run_dry = arrival.end is not None and arrival.end.for_now
        known = min(self._known, len(arrival.records) + len(arrival.bad))
        self._known -= known
        return arrival.without(known) if known else arrival

    def save(self) -> State:
        return super().save() | {"held": None if self._held is None else self._held.save()}

    def restore(self, state: State) -> None:
        super().restore(state)
        if self._held is not None:
            self._held.restore(state["held"])

    def released(self, records: Records) -> Records:
        return records if self._held is None else self._held.released(records, self.frontier)

    @property
    def held(self) -> int:
        return 0 if self._held is None else len(self._held)

    def close(self) -> None:
        self._inlet.close()

    def detach(self) -> None:
        self.origin.detach(self._inlet)
        self._inlet.part()

    def let_go(self) -> None:
        self._inlet.forget(self.received)


class BoundedInput(Input):
    """Data in memory, in order of time, read from its beginning."""

    def __init__(self, stream: Stream, sources: Sequence[Source], records: Records) -> None:
        super().__init__(stream, sources)
        self._records = records
        self._read = 0
        self._closed = False

    @property
    def ready(self) -> bool:
        return not self.ended and not self._closed

    @property
    def queued(self) -> int:
        return 0 if self._closed else len(self._records) - self._read

    def take(self, limit: int = BATCH_ROWS) -> Arrival:
        stop = min(self._read + limit, len(self._records))
        part = self._records.part(self._read, stop)
        self._read += len(part)
        return Arrival(part, end=End() if self._read == len(self._records) else None)

    def timed(self, records: Records, now: int) -> Records:
        return records

    def restore(self, state: State) -> None:
        super().restore(state)
        self._read = self.received

    @property
    def bounded(self) -> bool:
        return True

    def advance(self, records: Records, promised: int | None) -> bool:
        """The order is certain, whatever the delay."""
        before = self.frontier
        if len(records):
            self.frontier = max(before, int(records.start[-1]))
        if self.ended:
            self.frontier = INFINITY
        return self.frontier > before

    def close(self) -> None:
        self._closed = True
