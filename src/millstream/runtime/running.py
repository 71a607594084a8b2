"""The handle of a running query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from types import TracebackType
from typing import TypeAlias

import pyarrow as pa

from millstream.connectors.contracts import Refuse, Sink
from millstream.logical.catalog import Stream
from millstream.logical.evaluate import UserAggregate, UserFunction
from millstream.logical.instants import chronon
from millstream.model.display import table_html
from millstream.model.errors import QueryError
from millstream.model.frames import HasRows
from millstream.model.instants import Instant, shown
from millstream.model.metrics import Metrics, OperatorMetrics, Progress, SourceMetrics
from millstream.model.modes import QueryState
from millstream.model.records import Records
from millstream.model.time import ANY_TIME, TimeDomain
from millstream.physical.batch import NEVER, Batch, merged
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.cut import Cut
from millstream.physical.operators.granularity import Granularity
from millstream.physical.operators.split import Split
from millstream.runtime import answers
from millstream.runtime.clock import Clock
from millstream.runtime.delivery import AnswerForm, Delivery
from millstream.runtime.executor import Executor, InlineExecutor, OpenExecutor
from millstream.runtime.inbox import Inbox
from millstream.runtime.inputs import BoundedInput, Input, InputPlace, Origin, QueuedInput
from millstream.runtime.kept_answer import KeptAnswer
from millstream.runtime.outputs import ErrorOutput, ErrorRow, LateOutput, RunningContext, receiver
from millstream.runtime.position import Position
from millstream.runtime.rounds import Policy, Rounds
from millstream.runtime.sources import Reader
from millstream.runtime.worker import Worker

_LOOK = 0.1  # seconds between two checks for new results
_PARTING = 0.1  # seconds for sources to end in order when a query stops


# Takes the schema, the next batch, and the receiver of rows that the sink cannot store.
OpenSink: TypeAlias = Callable[[pa.Schema, int, Refuse], Sink]


@dataclass(frozen=True)
class Destinations:
    """The outputs of a query. `keeps_all`: all answers are kept for `results()`. `snapshots`: the
    answers that `snapshot` needs are kept. `late` and `errors` are functions or lists, or None."""

    open_sink: OpenSink
    keeps_all: bool = False
    snapshots: bool = False
    late: object = None
    errors: object = None


@dataclass(frozen=True)
class Launch:
    """Everything a query needs to run: its operators and their executor, its streams and their
    origins, and its outputs."""

    name: str
    plan: PhysicalPlan
    form: AnswerForm
    origins: Mapping[str, tuple[Stream, Records | Origin]]
    functions: Mapping[str, UserFunction]
    aggregates: Mapping[str, UserAggregate]
    outputs: Destinations
    policy: Policy
    clock: Clock
    note_state: Callable[[QueryState], None]
    open_executor: OpenExecutor = InlineExecutor


class Running(HasRows):
    """Returned by `query.start(…)`. As a context manager it stops the query at the end of the
    block, and raises the error if it failed."""

    def __init__(self, launch: Launch) -> None:
        name, plan, outputs, clock = launch.name, launch.plan, launch.outputs, launch.clock
        self.name = name
        self._clock = clock
        self._began = clock.ticks()
        self._note_state = launch.note_state
        self._form = launch.form
        kept = None
        if outputs.keeps_all or outputs.snapshots:
            kept = KeptAnswer(plan, all=outputs.keeps_all, changes=self._form.changes)
        late = LateOutput(receiver(outputs.late, "late rows", name))
        errors = ErrorOutput(name, receiver(outputs.errors, "errors", name))
        context = RunningContext(launch.functions, launch.aggregates, output=errors)
        delivery = Delivery(name, self._form, context, kept)
        executor = launch.open_executor(plan, context, delivery.gather)
        inbox = Inbox()
        inputs = [
            _input(*launch.origins[stream], self._form.domain, executor, inbox)
            for stream in sorted(executor.sources)
        ]
        nothing = Batch.empty(plan.types, executor.frontier)
        self._rounds = Rounds(
            name, executor, inputs, inbox, delivery, late, errors, launch.policy, clock, nothing
        )
        self._worker = Worker(self._rounds, inbox, clock)
        try:
            executor.follow(Position(inputs, delivery))
            refuse = self._rounds.refuse
            delivery.sink = outputs.open_sink(self._form.arrow_schema, delivery.batches, refuse)
            self._rounds.begin()
        except BaseException:
            self._worker.part()
            delivery.close()
            raise
        launch.note_state(QueryState.RUNNING)
        self._worker.start(self._ended)

    def _ended(self) -> None:
        self._note_state(self._end_state)

    # --- its life --------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Running {self.name}: {self.state}>"

    @property
    def state(self) -> QueryState:
        return self._end_state if self._worker.done.is_set() else QueryState.RUNNING

    @property
    def _end_state(self) -> QueryState:
        return QueryState.STOPPED if self._rounds.failure is None else QueryState.FAILED

    @property
    def exception(self) -> Exception | None:
        """The error that made the query fail."""
        return self._rounds.failure if self._worker.done.is_set() else None

    def stop(self, timeout: float | None = None) -> bool:
        """Accept no more rows, answer the accepted ones, and close the sink. Returns whether the
        query has ended; if the sink itself calls this, the query ends after that batch."""
        _check_timeout(timeout)
        self._rounds.accept_no_more()
        if self._worker.is_own_thread:
            return False
        ended = self._worker.done.wait(timeout)
        for input in self._rounds.inputs:
            if isinstance(input, QueuedInput) and isinstance(input.origin, Reader):
                input.origin.join(_PARTING)
        return ended

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the query ends, because its inputs end or it is stopped. Returns whether it
        has ended. Raises the error if it failed."""
        _check_timeout(timeout)
        ended = self._worker.done.wait(timeout)
        if self.exception is not None:
            raise self.exception
        return ended

    def _repr_html_(self) -> str:
        told = self.progress
        progress = (
            f"{told.rows_in:,} rows in, {told.rows_out:,} rows out, {told.batches:,} batches, "
            f"frontier {told.frontier}"
        )
        kept = table_html(self.results()) if self.keeps_results else ""
        return f"<p><b>{escape(self.name)}</b> ({self.state}): {escape(progress)}</p>{kept}"

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if error is None and self.exception is not None:
            raise self.exception

    # --- its answers -----------------------------------------------------------------------------

    @property
    def frontier(self) -> Instant | None:
        """Every instant before it is final; None while not known."""
        return self._instant(self._rounds.executor.frontier)

    def results(self) -> pa.Table:
        """All results so far, if the query was started without a sink."""
        with self._rounds.working:
            return self._form.table(self._results().batch())

    def to_arrow(self) -> pa.Table:
        """All results so far, as from `results`."""
        return self.results()

    def __iter__(self) -> Iterator[pa.Table]:
        """The results piece by piece as they arrive, until the query ends; raises the error if it
        failed."""
        count = 0
        while True:
            ended = self._worker.done.is_set()
            with self._rounds.working:
                batch = self._results().since(count)
            count += len(batch)
            if len(batch):
                yield self._form.table(batch)
            elif ended:
                self.wait()
                return
            else:
                with self._worker.moved:
                    self._worker.moved.wait(_LOOK)

    @property
    def keeps_results(self) -> bool:
        kept = self._rounds.delivery.kept
        return kept is not None and kept.all

    def _results(self) -> KeptAnswer:
        kept = self._rounds.delivery.kept
        if kept is None or not kept.all:
            raise QueryError(
                f'query "{self.name}" has a sink and keeps no results',
                help="start it without a sink to keep them",
            )
        return kept

    @property
    def answers_snapshots(self) -> bool:
        """Whether `query.snapshot` uses the running query: while it runs, and afterwards if its
        streams cannot be read again."""
        live = any(isinstance(input, QueuedInput) for input in self._rounds.inputs)
        return self.state is QueryState.RUNNING or live

    def snapshot(self, at: object, timeout: float | None = None) -> pa.Table:
        """The answer at one instant, as soon as it is final."""
        _check_timeout(timeout)
        instant = chronon(at, self._form.domain)
        rounds, kept = self._rounds, self._rounds.delivery.kept
        if kept is None:
            raise QueryError(
                f'query "{self.name}" keeps no answers for snapshots',
                help="start it without a sink, or with snapshots=True",
            )
        rounds.awaited.append(instant)
        try:
            if not self._worker.await_frontier(instant, timeout):
                raise self._not_final(instant)
            with rounds.working:
                return self._snapshot(instant, kept)
        finally:
            rounds.awaited.remove(instant)

    def _snapshot(self, instant: int, kept: KeptAnswer) -> pa.Table:
        if self._rounds.delivery.resumed:
            raise QueryError(
                f'query "{self.name}" was resumed from its checkpoint, and does not have what it '
                "answered before",
                help="create a materialized view instead: it keeps all current rows",
            )
        if instant < kept.horizon:
            raise QueryError(
                f'query "{self.name}" has forgotten the answer at {self._shown(instant)}',
                help="request instants before they become final, or start it without a sink",
            )
        held = kept.holding(instant)
        if not self._form.changes:
            held = merged([held, _still_open(self._rounds.executor, instant)])
        return answers.snapshot_table(self._form.schema, held)

    def _not_final(self, instant: int) -> QueryError:
        why = "" if self.state is QueryState.RUNNING else f" and the query has {self.state}"
        return QueryError(
            f'the answer of query "{self.name}" at {self._shown(instant)} is not final: its '
            f"frontier is {self.frontier}{why}",
            help="the frontier moves with the rows and heartbeats of all its streams",
        )

    def _shown(self, instant: int) -> str:
        return str(shown(instant, self._form.domain))

    # --- what it tells of itself -----------------------------------------------------------------

    @property
    def late(self) -> dict[str, pa.Table]:
        """The last late rows of each stream."""
        with self._rounds.working:
            return self._rounds.late.kept

    @property
    def errors(self) -> list[ErrorRow]:
        """The last rows that could not be read or evaluated."""
        with self._rounds.working:
            return list(self._rounds.errors.kept)

    @property
    def progress(self) -> Progress:
        inputs, delivery = self._rounds.inputs, self._rounds.delivery
        return Progress(
            self.state,
            delivery.batches,
            sum(input.received for input in inputs),
            delivery.rows,
            sum(input.late for input in inputs),
            self._rounds.errors.count,
            self.frontier,
            self._rounds.seconds,
        )

    @property
    def state_bytes(self) -> int:
        """The size of the query's state in bytes; during a batch, the size before it."""
        return sum(tally.state_bytes for tally in self._rounds.tallies())

    @property
    def metrics(self) -> Metrics:
        """Does not block. During a batch, the figures of operators are those from before it."""
        elapsed = (self._clock.ticks() - self._began) / 1e6
        tallies, inputs = self._rounds.tallies(), self._rounds.inputs
        return Metrics(
            [OperatorMetrics.of(tally, self._instant, elapsed) for tally in tallies],
            {
                each.stream.name: SourceMetrics.of(each.stream.name, each, self._instant)
                for each in inputs
            },
        )

    def _instant(self, frontier: int) -> Instant | None:
        """A frontier for display; None if nothing is known yet."""
        return None if frontier == NEVER else shown(frontier, self._form.domain)


def has_state(plan: PhysicalPlan) -> bool:
    """Whether a late row could change a final answer."""
    return plan.state is not None or any(map(has_state, plan.inputs))


def has_granules(plan: PhysicalPlan) -> bool:
    """Whether the answer may change at instants of a grid at which no row starts or ends."""
    own = isinstance(plan, Granularity | Cut | Split)
    return own or any(map(has_granules, plan.inputs))


def _input(
    stream: Stream,
    origin: Records | Origin,
    domain: TimeDomain,
    executor: Executor,
    inbox: Inbox,
) -> Input:
    sources = executor.sources[stream.name]
    if isinstance(origin, Records):
        return BoundedInput(stream, sources, origin)
    if stream.domain == ANY_TIME:
        stream = replace(stream, domain=domain)
    return origin.open(InputPlace(stream, sources, inbox, executor.checkpoint, executor.folder))


def _still_open(executor: Executor, at: int) -> Batch:
    """The elements of EMIT FINAL that are valid at an instant but not emitted yet, because their
    end is not known."""
    batch = answers.cropped(executor.foreseen(), executor.context.beginning)
    return batch.where((batch.start <= at) & (at < batch.end))


def _check_timeout(timeout: object) -> None:
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if timeout is not None and not (number and timeout == timeout):
        raise QueryError(f"the timeout must be a number of seconds or None, not {timeout!r}")
