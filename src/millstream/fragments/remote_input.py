"""A stream whose rows are outside the driver, which only forwards its batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from millstream.connectors.intake.rows import nothing
from millstream.fragments.reading import Intake, Reading, RemoteRows
from millstream.logical.catalog import Stream
from millstream.model.records import Records
from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, State
from millstream.physical.operators.source import Source
from millstream.runtime.bounded import BATCH_ROWS
from millstream.runtime.inbox import Arrival, End, Inbox
from millstream.runtime.inputs import Input
from millstream.runtime.outputs import ErrorOutput, LateOutput


class Supplier(Protocol):
    """Hands over the batches of a stream, one after the other, from its own thread."""

    def begin(self, input: RemoteInput) -> None:
        """Start after the batch with the input's `mark`; None: from the beginning."""

    def stop(self) -> None: ...


@dataclass
class Handed:
    """A batch that waits for its answers; `mark`, made of plain values, identifies it, also after a
    restart."""

    rows: Any
    mark: Any
    answered: bool = False


class RemoteInput(Input):
    def __init__(
        self,
        stream: Stream,
        sources: Sequence[Source],
        supplier: Supplier,
        inbox: Inbox,
        bounded: bool = False,
    ) -> None:
        super().__init__(stream, sources)
        self._bounded = bounded
        self.mark: Any = None  # of the last batch taken
        self._supplier = supplier
        self._inbox = inbox
        self._waiting: Handed | None = None
        self._taken: Handed | None = None
        self._end: End | None = None
        self._closed = self._gone = self._run_dry = False
        self._intakes: list[Intake] = []
        self._now = 0

    # --- for the supplier ------------------------------------------------------------------------

    def hand(self, rows: Any, mark: Any) -> bool:
        """Hand over a batch, and wait until it is answered; False if it never will be."""
        handed = Handed(rows, mark)

        def is_over() -> bool:
            dropped = self._closed and self._taken is not handed
            return handed.answered or dropped or self._gone

        with self._inbox.lock:
            if not self._closed:
                self._waiting = handed
                self.in_step = True
                self._inbox.work.notify_all()
                self._inbox.room.wait_for(is_over)
            return handed.answered

    def end(self, failure: Exception | None = None) -> None:
        """The stream has ended."""
        with self._inbox.lock:
            self._end = End(failure)
            self.in_step = False
            self._inbox.work.notify_all()

    def run_dry(self) -> None:
        """All rows available now have been handed over."""
        with self._inbox.lock:
            self._run_dry, self.in_step = True, False
            self._inbox.work.notify_all()

    # --- for the worker --------------------------------------------------------------------------

    def begin(self, now: int) -> None:
        super().begin(now)
        if not self.ended:
            self._supplier.begin(self)

    @property
    def bounded(self) -> bool:
        return self._bounded

    @property
    def ready(self) -> bool:
        if self._closed or self.ended:
            return False
        return self._waiting is not None or self._end is not None

    @property
    def over(self) -> bool:
        return super().over or (self._run_dry and self._waiting is None)

    @property
    def queued(self) -> None:
        return None

    def take(self, limit: int = BATCH_ROWS) -> Arrival:
        with self._inbox.lock:
            self._taken, self._waiting = self._waiting, None
            if self._taken is not None:
                self.mark = self._taken.mark
                return Arrival(nothing(self.stream))
            return Arrival(nothing(self.stream), end=self._end)

    def timed(self, records: Records, now: int) -> Records:
        self._now = now
        return records

    def close(self) -> None:
        self._closed = True
        self._inbox.room.notify_all()

    def detach(self) -> None:
        with self._inbox.lock:
            self._closed = self._gone = True
            self._inbox.room.notify_all()
        self._supplier.stop()

    def save(self) -> State:
        return super().save() | {"mark": self.mark}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.mark = state["mark"]

    def report(self, late: LateOutput, errors: ErrorOutput) -> None:
        intakes, self._intakes = self._intakes, []
        for intake in intakes:
            for row, message in intake.refused:
                errors.add(message, stream=intake.stream, row=row)
            for records in intake.late:
                late.add(self.stream, records)

    # --- for the graph ---------------------------------------------------------------------------

    def frame(self, has_late: bool) -> RemoteRows | None:
        """The rows taken in this round; rows can be late only if the query has state."""
        if self._taken is None:
            return None
        late_before = self.frontier if has_late else NEVER
        reading = Reading(self.stream, late_before, INFINITY, max(self.frontier, self._now))
        return RemoteRows(reading, self._taken.rows)

    def learn(self, frontier: int, intakes: Iterable[Intake]) -> None:
        """Process the reports of the batch, before they are committed."""
        for intake in intakes:
            self._intakes.append(intake)
            late = intake.late
            for records in late:
                self.note_late(records)
            self.received += intake.received
            self.bad += len(intake.refused)
            self.admitted += intake.received - len(intake.refused) - sum(map(len, late))
        self.frontier = frontier

    def let_go(self) -> None:
        """The answers have been delivered."""
        with self._inbox.lock:
            if self._taken is not None:
                self._taken.answered, self._taken = True, None
                self._inbox.room.notify_all()
