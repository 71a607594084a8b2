"""The inputs of a running query: the next rows of each stream, and its frontier."""

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
    """The context of an input: its stream, the source nodes of the plan, the inbox of the query,
    and the checkpoint."""

    stream: Stream
    sources: Sequence[Source]
    inbox: Inbox
    checkpoint: Files | None = None
    folder: Path | None = None


class Origin(Protocol):
    """Provides the rows of a stream to a query as they arrive."""

    def open(self, place: InputPlace) -> Input: ...


class Pusher(Protocol):
    """Fills the queue of an input."""

    def attach(self, inlet: Inlet, received: int) -> int:
        """Start pushing. Returns how many rows come first that the query received before a
        restart."""

    def detach(self, inlet: Inlet) -> None: ...


def is_held(stream: Stream, sources: Iterable[Source]) -> bool:
    """Whether rows of a pushed stream wait for the frontier: if they may be out of order, and a
    source of the plan needs their position."""
    return stream.delay > 0 and any(source.arrival for source in sources)


# The fields of every input in a checkpoint.
_SAVED = ("frontier", "received", "admitted", "late", "behind", "bad", "ended")


class Input(ABC):
    """One stream as one query sees it."""

    def __init__(self, stream: Stream, sources: Sequence[Source]) -> None:
        self.stream = stream
        self.sources = sources
        self.frontier = NEVER
        self.received = 0  # rows, including late and bad ones
        self.admitted = 0  # rows that entered the query
        self.late = 0
        self.behind = 0  # how far late rows were behind the latest, at most
        self.bad = 0
        self.ended = False
        self.heard = 0  # the last arrival, by the stopwatch
        self.moved = 0  # the last move of the frontier, by the stopwatch
        self.idle = False
        self.in_step = False  # whether its batches arrive together with those of the others

    def begin(self, now: int) -> None:
        """Start delivering rows."""
        self.heard = self.moved = now

    @property
    def bounded(self) -> bool:
        """Whether all its rows exist already, however long reading them takes."""
        return False

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.ended

    @property
    @abstractmethod
    def ready(self) -> bool:
        """Whether something can be taken; called under the lock of the inbox."""

    @property
    @abstractmethod
    def queued(self) -> int | None:
        """How many rows wait; None if not known."""

    @abstractmethod
    def take(self, limit: int = BATCH_ROWS) -> Arrival: ...

    @abstractmethod
    def close(self) -> None:
        """Accept nothing more; called under the lock of the inbox."""

    def detach(self) -> None:  # noqa: B027
        """Detach from the producer, if any."""

    def let_go(self) -> None:  # noqa: B027
        """The answers to all received rows have been delivered durably."""

    def report(self, late: LateOutput, errors: ErrorOutput) -> None:  # noqa: B027
        """Report late and bad rows that were found remotely."""

    @property
    def trouble(self) -> str | None:
        """Why it cannot be read at present, if it cannot."""
        return None

    @property
    def patience(self) -> int | None:
        """How many microseconds the source may be silent before it counts as idle."""
        if self.bounded or self.stream.idle is None or self.stream.domain.microseconds is None:
            return None
        return self.stream.idle * self.stream.domain.microseconds

    def save(self) -> State:
        """The position in the stream."""
        return {name: getattr(self, name) for name in _SAVED}

    def restore(self, state: State) -> None:
        """Resume from there; the stream is replayed from its beginning."""
        for name in _SAVED:
            setattr(self, name, state[name])

    def timed(self, records: Records, now: int) -> Records:
        """The rows in order of time; rows of a stream without a time column get the arrival
        time."""
        if self.stream.time:
            return records.in_order()
        instant = max(self.frontier, now)
        start = np.full(len(records), instant, np.int64)
        return Records(records.columns, start, start + 1)

    def split_late(self, records: Records) -> tuple[Records, Records | None]:
        """The rows in time, and the late ones, which start before the frontier."""
        if not len(records) or records.start[0] >= self.frontier:
            return records, None
        first = int(np.searchsorted(records.start, self.frontier))
        self.note_late(records.slice(0, first))
        return records.slice(first, len(records)), records.slice(0, first)

    def note_late(self, records: Records) -> None:
        """Count late rows."""
        if len(records):
            self.late += len(records)
            distance = self.frontier - int(records.start.min()) + self.stream.delay
            self.behind = max(self.behind, distance)

    def released(self, records: Records) -> Records:
        """The rows to process now, of the new ones and those held."""
        return records

    @property
    def held(self) -> int:
        """How many rows wait for the frontier because their position is needed."""
        return 0

    def advance(self, records: Records, promised: int | None) -> bool:
        """Advance the frontier for the new rows; returns whether it moved."""
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
    """A pushed stream."""

    def __init__(self, sources: Sequence[Source], origin: Pusher, inlet: Inlet) -> None:
        super().__init__(inlet.stream, sources)
        self._held = HeldRows() if is_held(inlet.stream, sources) else None
        self.origin = origin
        self._inlet = inlet
        self._known = 0  # replayed rows that were read before a restart
        self._run_dry = False  # all rows available now have been read

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
        """Rows are sorted, whatever the delay."""
        before = self.frontier
        if len(records):
            self.frontier = max(before, int(records.start[-1]))
        if self.ended:
            self.frontier = INFINITY
        return self.frontier > before

    def close(self) -> None:
        self._closed = True
