"""A running query, as the one who started it sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from millstream.connectors.contracts import Refuse
from millstream.connectors.contracts import Sink as OpenedSink
from millstream.logical.analysis import given_anew
from millstream.logical.catalog import Stream
from millstream.logical.instants import chronon
from millstream.logical.plan import Plan, Source
from millstream.model.errors import QueryError
from millstream.model.instants import Instant, shown
from millstream.model.metrics import Metrics, Progress
from millstream.model.records import Records
from millstream.model.time import ANY_TIME, TimeDomain
from millstream.optimizer.choice import Approach, Choices, choose
from millstream.physical.batch import merged
from millstream.physical.operator import Context, PhysicalPlan
from millstream.physical.operators.cut import Cut
from millstream.physical.operators.granularity import Granularity
from millstream.physical.operators.split import Split
from millstream.relations.tables import HeldTable
from millstream.runtime import answers, metrics
from millstream.runtime.clock import Clock
from millstream.runtime.delivery import AnswerForm, Delivery
from millstream.runtime.graph import Graph, Sink
from millstream.runtime.inbox import Inbox
from millstream.runtime.inputs import BoundedInput, Input, Origin, QueuedInput, is_held
from millstream.runtime.kept import Kept, still_open
from millstream.runtime.outputs import ErrorOutput, ErrorRow, LateOutput, RunningContext, receiver
from millstream.runtime.position import Position
from millstream.runtime.sources import Reader
from millstream.runtime.worker import Policy, Worker

if TYPE_CHECKING:
    from millstream.logical.evaluate import UserAggregate, UserFunction

_LOOK = 0.1  # seconds between two looks for new results
_PARTING = 0.1  # seconds in which sources may end in good order when a query stops


OpenGraph: TypeAlias = Callable[[PhysicalPlan, Context, Sink], Graph]
# The schema, the next batch, and where rows go that it cannot hold.
OpenSink: TypeAlias = Callable[[pa.Schema, int, Refuse], OpenedSink]


class Running:
    """What `query.start(…)` gives. As a context manager it stops the query at the end of the
    block, and raises what made it fail."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        emit: str,
        origins: Mapping[str, tuple[Stream, Records | Origin]],
        *,
        functions: Mapping[str, UserFunction],
        aggregates: Mapping[str, UserAggregate],
        open_sink: OpenSink,
        keeps_all: bool,
        late: object,
        errors: object,
        interval: int | None,
        bounded: bool,
        sheds: bool,
        stop_on_error: bool,
        snapshots: bool,
        clock: Clock,
        note_state: Callable[[str], None],
        approach: str,
        open_graph: OpenGraph = Graph,
    ) -> None:
        self.name = name
        self._clock = clock
        self._began = clock.ticks()
        self._note_state = note_state
        self._plan = chosen_plan(plan, emit, origins, Approach(approach))
        self._form = AnswerForm(plan.schema, plan.domain, emit, given_anew(plan))
        kept = None
        if keeps_all or snapshots:
            kept = Kept(self._plan, all=keeps_all, changes=self._form.changes)
        late_output = LateOutput(receiver(late, "late rows", name))
        error_output = ErrorOutput(name, receiver(errors, "errors", name))
        context = RunningContext(functions, aggregates, output=error_output)
        delivery = Delivery(name, self._form, context, kept)
        graph = open_graph(self._plan, context, delivery.gather)
        inbox = Inbox()
        by_clock = pa.types.is_timestamp(plan.domain.type)
        by_granule = has_granules(self._plan)
        policy = Policy(
            interval, stop_on_error, has_state(self._plan), by_clock, by_granule, bounded, sheds
        )
        inputs = [
            _input(*origins[stream], plan.domain, graph, inbox) for stream in sorted(graph.sources)
        ]
        self._worker = Worker(
            name, graph, inputs, inbox, delivery, late_output, error_output, policy, clock
        )  # fmt: skip
        try:
            graph.follow(Position(inputs, delivery))
            refuse = self._worker.refuse
            delivery.sink = open_sink(self._form.arrow_schema, delivery.batches, refuse)
            self._worker.begin()
        except BaseException:
            self._worker.part()
            delivery.close()
            raise
        note_state("running")
        self._worker.start(self._ended)

    def _ended(self) -> None:
        self._note_state("stopped" if self._worker.failure is None else "failed")

    # --- its life --------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Running {self.name}: {self.state}>"

    @property
    def state(self) -> str:
        if not self._worker.done.is_set():
            return "running"
        return "stopped" if self._worker.failure is None else "failed"

    @property
    def exception(self) -> Exception | None:
        """What made the query fail."""
        return self._worker.failure if self._worker.done.is_set() else None

    def stop(self, timeout: float | None = None) -> bool:
        """Accept no more rows, answer those that were accepted, and end the sink. Whether the query
        has ended; called by the sink itself, it ends after that batch."""
        _check_timeout(timeout)
        self._worker.stop()
        if self._worker.is_own_thread:
            return False
        ended = self._worker.done.wait(timeout)
        for input in self._worker.inputs:
            if isinstance(input, QueuedInput) and isinstance(input.origin, Reader):
                input.origin.join(_PARTING)
        return ended

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the query ends, because its inputs do or because it is stopped: whether it
        has. Raises what made it fail."""
        _check_timeout(timeout)
        ended = self._worker.done.wait(timeout)
        if self.exception is not None:
            raise self.exception
        return ended

    def _repr_html_(self) -> str:
        from millstream.model.display import running_html

        return running_html(self)

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
        """Every instant before it is final; None while nothing is known."""
        return metrics.instant(self._worker.graph.root.frontier, self._form.domain)

    def results(self) -> pa.Table:
        """All that was given so far, where the query was started without a sink."""
        with self._worker.working:
            return self._form.table(self._results().batch())

    def __iter__(self) -> Iterator[pa.Table]:
        """What `results` has, piece by piece as it comes, until the query ends; raises what made it
        fail."""
        count = 0
        while True:
            ended = self._worker.done.is_set()
            with self._worker.working:
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
        kept = self._worker.delivery.kept
        return kept is not None and kept.all

    def _results(self) -> Kept:
        kept = self._worker.delivery.kept
        if kept is None or not kept.all:
            raise QueryError(
                f'query "{self.name}" has a sink and keeps no results',
                help="start it without a sink to keep them",
            )
        return kept

    @property
    def answers_snapshots(self) -> bool:
        """Whether `query.snapshot` asks the running query: while it runs, and afterwards where its
        rows came from streams that cannot be read again."""
        live = any(isinstance(input, QueuedInput) for input in self._worker.inputs)
        return self.state == "running" or live

    def snapshot(self, at: object, timeout: float | None = None) -> pa.Table:
        """The answer at one instant, as soon as it is final."""
        _check_timeout(timeout)
        instant = chronon(at, self._form.domain)
        worker, kept = self._worker, self._worker.delivery.kept
        if kept is None:
            raise QueryError(
                f'query "{self.name}" keeps nothing to answer snapshots from',
                help="start it without a sink, or with snapshots=True",
            )
        worker.awaited.append(instant)
        try:
            if not worker.await_frontier(instant, timeout):
                raise self._not_final(instant)
            with worker.working:
                return self._snapshot(instant, kept)
        finally:
            worker.awaited.remove(instant)

    def _snapshot(self, instant: int, kept: Kept) -> pa.Table:
        if self._worker.delivery.resumed:
            raise QueryError(
                f'query "{self.name}" goes on from its checkpoint, and does not have what it '
                "answered before",
                help="make a materialized view of it: that has all that holds",
            )
        if instant < kept.horizon:
            raise QueryError(
                f'query "{self.name}" has forgotten the answer at {self._shown(instant)}',
                help="ask for instants before they become final, or start it without a sink",
            )
        held = kept.holding(instant)
        if not self._form.changes:
            held = merged([held, still_open(self._worker.graph, instant)])
        return answers.snapshot_table(self._form.schema, held)

    def _not_final(self, instant: int) -> QueryError:
        why = "" if self.state == "running" else f" and the query has {self.state}"
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
        """The last rows of each stream that came too late."""
        with self._worker.working:
            return self._worker.late.kept

    @property
    def errors(self) -> list[ErrorRow]:
        """The last rows that could not be read or evaluated."""
        with self._worker.working:
            return list(self._worker.errors.kept)

    @property
    def progress(self) -> Progress:
        inputs, delivery = self._worker.inputs, self._worker.delivery
        return Progress(
            self.state,
            delivery.batches,
            sum(input.received for input in inputs),
            delivery.rows,
            sum(input.late for input in inputs),
            self._worker.errors.count,
            self.frontier,
            self._worker.seconds,
        )

    @property
    def state_bytes(self) -> int:
        """The size of what the query keeps; while a batch is worked on, what it kept before."""
        return sum(tally.state_bytes for tally in self._worker.tallies())

    @property
    def metrics(self) -> Metrics:
        """Answers at once. While a batch is worked on, operators are as they were before it."""
        domain = self._form.domain
        elapsed = (self._clock.ticks() - self._began) / 1e6
        tallies, inputs = self._worker.tallies(), self._worker.inputs
        return Metrics(
            [metrics.operator_metrics(tally, domain, elapsed) for tally in tallies],
            {input.stream.name: metrics.source_metrics(input, domain) for input in inputs},
        )


def chosen_plan(
    plan: Plan,
    emit: str,
    origins: Mapping[str, tuple[Stream, Records | Origin]],
    approach: Approach,
) -> PhysicalPlan:
    """The operators for these sources: those with a delay come out of order, unless they are
    held."""
    sources = [node for node in plan.walk() if isinstance(node, Source)]
    ordered = frozenset(
        name
        for name, (stream, origin) in origins.items()
        if isinstance(origin, Records)
        or not stream.delay
        or is_held(stream, (source for source in sources if source.stream == name))
    )
    held = (origin for _, origin in origins.values() if isinstance(origin, HeldTable))
    small = frozenset(table.table.name for table in held if table.is_small)
    return choose(plan, emit, Choices(ordered, approach, small=small))


def has_state(plan: PhysicalPlan) -> bool:
    """Whether a late row could change what was final."""
    return plan.state is not None or any(map(has_state, plan.inputs))


def has_granules(plan: PhysicalPlan) -> bool:
    """Whether something may change at instants of a grid, at which no row comes or ends."""
    own = isinstance(plan, Granularity | Cut | Split)
    return own or any(map(has_granules, plan.inputs))


def _input(
    stream: Stream, origin: Records | Origin, domain: TimeDomain, graph: Graph, inbox: Inbox
) -> Input:
    vertices = graph.sources[stream.name]
    if isinstance(origin, Records):
        return BoundedInput(stream, vertices, origin)
    if stream.domain == ANY_TIME:
        stream = replace(stream, domain=domain)
    return origin.open(stream, graph, inbox)


def _check_timeout(timeout: object) -> None:
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if timeout is not None and not (number and timeout == timeout):
        raise QueryError(f"the timeout is a number of seconds or None, not {timeout!r}")
