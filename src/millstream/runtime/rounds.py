"""The rounds of a running query: new rows go through the operators to the sink.

If several streams have rows, the one furthest behind comes first. Tables advance with the streams;
the clock advances silent streams.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from millstream.connectors.intake.rows import nothing
from millstream.model.elements import Row
from millstream.model.errors import MillstreamError, QueryError
from millstream.model.metrics import Tally
from millstream.model.records import Records
from millstream.physical.batch import NEVER, Batch
from millstream.runtime.bounded import BATCH_ROWS, source_batch
from millstream.runtime.clock import Clock
from millstream.runtime.delivery import Delivery
from millstream.runtime.executor import Executor
from millstream.runtime.inbox import Arrival, Inbox
from millstream.runtime.inputs import Input
from millstream.runtime.lag import Lag
from millstream.runtime.lateness import LateWarnings
from millstream.runtime.outputs import ErrorOutput, ErrorRow, LateOutput
from millstream.runtime.silence import Silence
from millstream.runtime.table_input import TableInput

ROUND_ROWS = 1_000_000  # the most that a round of a triggered query takes from a stream
TALLY = 100_000  # microseconds between two updates of the operators' metrics


@dataclass(frozen=True)
class Policy:
    """`interval` is the minimum time between two rounds, in microseconds; None: as soon as rows
    arrive. `has_late`: the query has state, so rows can be late. `by_clock`: time is that of the
    clock. `by_granule`: the answer changes at instants of a grid. `bounded`: the query reads the
    available rows and ends. `sheds`: rows may be dropped under overload."""

    interval: int | None = None
    stop_on_error: bool = False
    has_late: bool = True
    by_clock: bool = True
    by_granule: bool = False
    bounded: bool = False
    sheds: bool = False


class Rounds:
    """`working` is held while the operators change. `failure` is the error that ended the query, if
    any; `over`: no more rounds follow."""

    def __init__(
        self,
        query: str,
        executor: Executor,
        inputs: Sequence[Input],
        inbox: Inbox,
        delivery: Delivery,
        late: LateOutput,
        errors: ErrorOutput,
        policy: Policy,
        clock: Clock,
        nothing: Batch,
    ) -> None:
        self.query = query
        self.executor = executor
        self.inputs = inputs
        self.delivery = delivery
        self.late = late
        self.errors = errors
        self.failure: Exception | None = None
        self.over = False
        self.working = threading.RLock()
        self.awaited: list[int] = []  # instants that snapshots wait for
        self.seconds = 0.0
        self.due = 0  # when the next round may begin
        self._tables = [input for input in inputs if isinstance(input, TableInput)]
        self._streams = [input for input in inputs if not isinstance(input, TableInput)]
        #: Whether a round is due though nothing has arrived: tables alone have an answer from the
        #: start.
        self.is_due = not self._streams and policy.by_clock
        self._heard: dict[Input, None] = {}  # those with input in this round
        self._silence = Silence(
            inputs, clock,
            by_clock=policy.by_clock, by_granule=policy.by_granule, bounded=policy.bounded,
        )  # fmt: skip
        self._lag = Lag(query, [] if policy.bounded else inputs, clock, policy.sheds)
        self._late_warnings = LateWarnings(query)
        self._tallies: list[Tally] = []  # as of the end of a round
        self._tallied = 0
        self._inbox = inbox
        self._policy = policy
        self._clock = clock
        self._nothing = nothing
        executor.context.admits_late = not policy.has_late

    def begin(self) -> None:
        """Start the inputs, before the thread runs. With tables only, no row begins time: it begins
        now."""
        began = self._clock.ticks()
        if self.is_due:
            for table in self._tables:
                table.by_clock = True
            self.executor.context.begin(self._clock.now())
        self._note_tallies()
        self._silence.begin(began)
        self._lag.begin(began)
        for input in self.inputs:
            input.begin(began)

    def accept_no_more(self) -> None:
        """Accept nothing more; end when the accepted rows are processed."""
        with self._inbox.lock:
            self._inbox.stopping = True
            for input in self.inputs:
                input.close()
            self._inbox.work.notify_all()
            self._inbox.room.notify_all()

    def end(self) -> None:
        """All rounds are done."""
        self._late_warnings.check(self.inputs, least=1)

    def fail(self, error: BaseException) -> None:
        """Record the first failure."""
        if self.failure is None:
            self.failure = _named(error, self.query)

    def is_over(self) -> bool:
        """Whether all streams have ended; tables alone never end, unless none changes."""
        if self._streams:
            return all(input.over for input in self._streams)
        return all(table.over and not table.ready for table in self._tables)

    def next_look(self) -> int | None:
        """When the clock moves the query, if nothing arrives before."""
        look = self._silence.next_look(list(self.awaited), self.executor.frontier)
        return None if look is None else max(look, self.due)

    def run(self, ready: list[Input]) -> None:
        began = self._clock.ticks()
        self._heard.clear()
        with self.working:
            self._absorb_tables()
            streams = [input for input in ready if not isinstance(input, TableInput)]
            if self._policy.interval is None:
                for input in sorted(streams, key=_frontier)[:1]:
                    self._absorb(input)
            else:
                self.due = began + self._policy.interval
                self._absorb_all(streams)
            self._pass_over_silence()
            self._bring_tables()
            self._end_round()
            frontier = self.executor.frontier
            self.delivery.keep(min([frontier - 1, *self.awaited]))
            self.seconds += (self._clock.ticks() - began) / 1e6
            self._note_tallies()
        self.delivery.give(self._nothing.up_to(frontier))
        self.executor.delivered()
        self._silence.heard(self._heard)
        if not ready:
            self._silence.looked(began)
        self._lag.look(began)

    def resume(self) -> None:
        """Deliver answers from before the last end of the query that may not have been
        delivered."""
        with self.working:
            again = self.executor.resume()
            self.delivery.keep(NEVER)
        if again:
            self.delivery.give(self._nothing.up_to(self.executor.frontier))
            self.executor.delivered()

    def _end_round(self) -> None:
        before = self.errors.count
        self.executor.end_round()
        for input in self.inputs:
            input.report(self.late, self.errors)
        self._late_warnings.check(self.inputs)
        self._check_errors(before)
        self.errors.warn()

    def _check_errors(self, before: int) -> None:
        if self._policy.stop_on_error and self.errors.count > before:
            raise _error(self.errors.kept[before - self.errors.count])

    def _absorb_all(self, ready: list[Input]) -> None:
        """Process everything that has arrived, the stream furthest behind first."""
        backlog = {input: min(input.queued or 0, ROUND_ROWS) for input in ready}
        while backlog and not self.over:
            input = min(backlog, key=_frontier)
            backlog[input] -= self._absorb(input)
            if backlog[input] <= 0:
                del backlog[input]

    def _absorb_tables(self) -> None:
        """Process all changes of tables so far."""
        for table in self._tables:
            while table.queued:
                self._absorb(table)

    def _absorb(self, input: Input, moment: int | None = None) -> int:
        """Pass a batch of an input through the operators; returns its number of rows. A table
        change accepted before a row precedes it."""
        arrival = input.take(BATCH_ROWS)
        if self._tables and not isinstance(input, TableInput):
            self._absorb_tables()
        size = len(arrival.records) + len(arrival.bad)
        input.heard, input.idle = self._clock.ticks(), False
        self._heard[input] = None
        now = self._clock.now() if moment is None else moment
        records = input.timed(self._readable(input, arrival), now)
        input.received += size
        if self._policy.has_late:
            records, late = input.split_late(records)
            if late is not None:
                self.late.add(input.stream, late)
        if arrival.end is not None and arrival.end.failure is not None:
            self._source_failed(input, arrival.end.failure)
        elif arrival.end is not None and not arrival.end.for_now:
            input.ended = True
        moved = input.advance(records, arrival.frontier)
        records = input.released(records)
        if moved or len(records):
            self._push(input, records)
        return size + arrival.known

    def _readable(self, input: Input, arrival: Arrival) -> Records:
        """The good rows. If an error stops the query, only those before the first bad row; these
        are still answered."""
        records = arrival.records
        for row in sorted(arrival.bad, key=lambda row: row.number):
            number = input.received + row.number
            self.errors.add(row.message, stream=input.stream.name, number=number, help=row.help)
            input.bad += 1
            if self._policy.stop_on_error:
                self.over = True
                self.fail(_error(self.errors.kept[-1]))
                return records.slice(0, min(row.number - 1, len(records)))
        return records

    def refuse(self, row: Row, message: str) -> None:
        """Record a row of the answer that the sink cannot store."""
        before = self.errors.count
        self.errors.add(message, row=row)
        self._check_errors(before)

    def _source_failed(self, input: Input, failure: Exception) -> None:
        """Answer all rows accepted before, then end the query."""
        name = input.stream.name
        reason = _reason(failure).removeprefix(f'stream "{name}": ')
        help = failure.diagnostic.help if isinstance(failure, MillstreamError) else None
        message = f'query "{self.query}": stream "{name}" cannot be read: {reason}'
        error = QueryError(message, help=help)
        error.__cause__ = failure
        self.fail(error)
        self.accept_no_more()

    def _push(self, input: Input, records: Records) -> None:
        before = self.errors.count
        first = input.admitted
        input.admitted += len(records)
        for source in input.sources:
            if len(records):
                batch = source_batch(source, records, first, input.frontier)
            else:
                batch = Batch.empty(source.types, input.frontier)
            self.executor.push(source, batch)
        self._check_errors(before)

    # --- silence ---------------------------------------------------------------------------------

    def _pass_over_silence(self) -> None:
        """Advance silent streams to the clock or the other streams."""
        if self._inbox.stopping:
            return
        self._silence.note_idle()
        for input, frontier in self._silence.frontiers():
            if input not in self._heard:
                self._bring(input, frontier)

    def _bring_tables(self) -> None:
        """Advance tables to the streams; tables alone follow the clock, or their last change if
        time is a bare number."""
        if not self._tables:
            return
        moment = self._clock.now()
        if self._streams:
            reached = min(stream.frontier for stream in self._streams)
        elif self._policy.by_clock:
            reached = moment + 1  # makes changes at this moment final
        else:
            reached = max(table.latest for table in self._tables)
        for table in self._tables:
            with table.gate:  # changes accepted in time are processed first
                while table.queued:
                    self._absorb(table, moment)
                moved = table.reach(reached)
            if moved:
                self._push(table, nothing(table.stream))

    def _bring(self, input: Input, frontier: int) -> None:
        if frontier > input.frontier:
            self._silence.brought(input, frontier)
            self._push(input, input.released(nothing(input.stream)))

    # --- for others ------------------------------------------------------------------------------

    def tallies(self) -> list[Tally]:
        """The work and state of each operator, without blocking: during a round, as of the end of a
        recent one."""
        if self.working.acquire(blocking=False):
            try:
                return self.executor.tallies()
            finally:
                self.working.release()
        return self._tallies

    def _note_tallies(self) -> None:
        """Update the metrics occasionally, for readers during a round."""
        ticks = self._clock.ticks()
        if not self._tallies or ticks - self._tallied >= TALLY:
            self._tallies, self._tallied = self.executor.tallies(), ticks


def _frontier(input: Input) -> int:
    return input.frontier


def _error(row: ErrorRow) -> QueryError:
    return QueryError(str(row), help=row.help)


def _reason(error: BaseException) -> str:
    if isinstance(error, MillstreamError):
        return error.diagnostic.message
    return str(error) or type(error).__name__


def _named(error: BaseException, query: str) -> Exception:
    """The failure with the name of the query in it."""
    reason = _reason(error)
    if isinstance(error, MillstreamError) and f'query "{query}"' in reason:
        return error
    help = error.diagnostic.help if isinstance(error, MillstreamError) else None
    named = QueryError(f'query "{query}" failed: {reason}', help=help)
    named.__cause__ = error
    return named
