"""Implements `query.start(…)`: checks its options and finds its sources."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from millstream.api.admission import Admission
from millstream.api.workspace import Workspace
from millstream.connectors.contracts import Refuse, Sink, SinkContext
from millstream.connectors.registry import is_kept
from millstream.logical.analysis import given_anew
from millstream.logical.catalog import Stream
from millstream.logical.plan import PartitionedWindow, Plan, Source, sources_of
from millstream.model.durations import length
from millstream.model.errors import MillstreamError, QueryError
from millstream.model.modes import Emit, EngineName, QueryState
from millstream.model.records import Records
from millstream.model.time import TIMESTAMP_TIME
from millstream.relations.tables import HeldTable
from millstream.runtime.delivery import AnswerForm
from millstream.runtime.inputs import Origin
from millstream.runtime.rounds import Policy
from millstream.runtime.running import (
    Destinations,
    Launch,
    OpenSink,
    has_granules,
    has_state,
)
from millstream.runtime.sources import Feed

if TYPE_CHECKING:
    from millstream.optimizer.planned import PlannedQuery
    from millstream.runtime.whole_answers import RandomDraws

AVAILABLE_NOW = "available_now"


@dataclass(frozen=True)
class Start:
    """The arguments of `start`."""

    sink: object = None
    checkpoint: str | None = None
    trigger: str | None = None
    late: object = None
    errors: object = None
    snapshots: bool = False


class Startable(Protocol):
    """A query that can be started."""

    shed: float

    @property
    def name(self) -> str: ...

    @property
    def _chance(self) -> RandomDraws: ...

    @property
    def planned(self) -> PlannedQuery: ...

    def _note_state(self, state: QueryState) -> None: ...


def launch(query: Startable, workspace: Workspace, asked: Start) -> Launch:
    """Everything the query needs to run, checked."""
    if asked.checkpoint == "":
        raise QueryError(
            "the name of the checkpoint is empty",
            help="name a folder; it is created if it does not exist",
        )
    planned = query.planned
    engine, settings = workspace.engine, workspace.settings
    checkpoint = None if asked.checkpoint is None else os.path.abspath(asked.checkpoint)
    if engine.name is not EngineName.REFERENCE:
        admission = Admission(query.name, planned, query.shed, workspace)
        planned = planned.dropping(admission.shares())
    discards = asked.sink == "noop" and not asked.snapshots
    opener = engine.opener(planned, query._chance, checkpoint, discards)
    if settings.approach == "intervals":
        _check_partitions(planned.bound)
    available_now = asked.trigger == AVAILABLE_NOW
    interval = _interval(asked.trigger)
    if checkpoint is not None or engine.name is EngineName.SPARK:
        interval = interval or 1  # a round takes everything available
    origins = _origins(workspace, planned, available_now)
    _check_sources(origins, asked.trigger)
    plan, bound = planned.physical, planned.bound
    policy = Policy(
        interval,
        settings.on_error == "stop",
        has_state(plan),
        pa.types.is_timestamp(bound.domain.type),
        has_granules(plan),
        available_now,
        query.shed > 0,
    )
    keeps_all = is_kept(asked.sink)
    open_sink = _sink_opener(workspace, query, planned.emit, replace(asked, checkpoint=checkpoint))
    outputs = Destinations(open_sink, keeps_all, asked.snapshots, asked.late, asked.errors)
    form = AnswerForm(bound.schema, bound.domain, planned.emit, given_anew(bound))
    catalog = workspace.catalog
    return Launch(
        query.name, plan, form, origins, catalog.functions, catalog.aggregates,
        outputs, policy, workspace.clock, query._note_state, opener,
    )  # fmt: skip


def _sink_opener(workspace: Workspace, query: Startable, emit: Emit, asked: Start) -> OpenSink:
    """Opens the sink once it is known where the query resumes."""

    def open_sink(schema: pa.Schema, next_batch: int, refuse: Refuse) -> Sink:
        context = sink_context(workspace, query.name, emit, schema, asked.checkpoint, next_batch)
        return workspace.connectors.open_sink(asked.sink, replace(context, refuse=refuse))

    return open_sink


def sink_context(
    workspace: Workspace,
    query: str,
    emit: Emit,
    schema: pa.Schema,
    checkpoint: str | None = None,
    next_batch: int = 0,
) -> SinkContext:
    token = secrets.token_hex(8)
    if checkpoint is not None:
        from millstream.checkpoint.files import LocalFiles
        from millstream.checkpoint.identity import token as token_of

        token = token_of(LocalFiles(checkpoint))
    spark = workspace.spark if workspace.settings.engine is EngineName.SPARK else None
    return SinkContext(query, schema, emit, token, next_batch, spark)


def _check_partitions(plan: Plan) -> None:
    """Reject a partitioned window over an unbounded stream in interval plans: a row waits for its
    end, which never comes in a silent partition."""
    for node in plan.walk():
        if not isinstance(node, PartitionedWindow):
            continue
        live = (s.stream for s in node.walk() if isinstance(s, Source) and not s.bounded)
        stream = next(live, None)
        if stream is not None:
            raise QueryError(
                f'approach="intervals" cannot run a partitioned window over stream "{stream}": a '
                "partition that falls silent would hold back all results",
                help='use approach="hybrid", which passes rows on and retracts them later, or '
                "query.run() on data that ends",
            )


def _interval(trigger: object) -> int | None:
    """The minimum time between two rounds, in microseconds."""
    if trigger is None or trigger == AVAILABLE_NOW:
        return None
    try:
        interval = length(str(trigger), TIMESTAMP_TIME, "the trigger")
    except MillstreamError as error:
        raise QueryError(
            f"{trigger!r} is not a trigger: {error.diagnostic.message}",
            help='pass None, a duration such as "500 milliseconds", or "available_now"',
        ) from None
    return interval or None


def _origins(
    workspace: Workspace, query: PlannedQuery, available_now: bool
) -> Mapping[str, tuple[Stream, Records | Origin]]:
    known, plan = workspace.origins, query.optimized
    return {
        name: (known.stream(name), known.origin(name, plan, available_now))
        for name in sources_of(query.bound)
    }


def _check_sources(
    origins: Mapping[str, tuple[Stream, Records | Origin]], trigger: str | None
) -> None:
    tables = all(isinstance(origin, HeldTable) for _, origin in origins.values())
    if tables and trigger == AVAILABLE_NOW:
        raise QueryError("the query reads only tables, which have no end", help="call query.run()")
    for name, (stream, origin) in origins.items():
        if isinstance(origin, Records):
            continue
        if isinstance(origin, Feed) and trigger == AVAILABLE_NOW:
            raise QueryError(
                f'stream "{name}" is pushed by a program: it has no available rows',
                help="start the query without a trigger",
            )
        if stream.idle is not None and stream.domain.microseconds is None:
            raise QueryError(
                f'stream "{name}" has {stream.domain.describe()}: it is not known how long it has '
                "been idle",
                help="declare the UNIT of its time, or leave IDLE AFTER out",
            )
