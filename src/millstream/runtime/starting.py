"""From `query.start(…)` to a running query: its options are checked, its sources found."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.connectors.contracts import Refuse, Sink, SinkContext
from millstream.connectors.registry import is_kept
from millstream.logical.catalog import Stream
from millstream.logical.plan import PartitionedWindow, Plan, Source
from millstream.model.durations import length
from millstream.model.errors import MillstreamError, QueryError
from millstream.model.records import Records
from millstream.model.time import TIMESTAMP_TIME
from millstream.relations.tables import HeldTable
from millstream.runtime.graph import Graph
from millstream.runtime.inputs import Origin
from millstream.runtime.running import OpenGraph, OpenSink, Running
from millstream.runtime.sources import Feed

if TYPE_CHECKING:
    from millstream.api.query import Query
    from millstream.api.session import Session

AVAILABLE_NOW = "available_now"


def start(
    session: Session,
    query: Query,
    plan: Plan,
    sink: object,
    name: str | None,
    checkpoint: str | None,
    trigger: str | None,
    late: object,
    errors: object,
    snapshots: bool,
    opener: OpenGraph | None = None,
) -> Running:
    """The query, running, by this plan; its operators where `opener` puts them, else in its
    thread."""
    if query.sink is not None and sink is not None:
        raise QueryError(
            f'query "{query.name}" has a sink already: INSERT INTO {query.sink.name}',
            help="start it without a sink, or start the SELECT alone",
        )
    if query.sink is not None:
        sink = query.sink
    if session.engine == "reference":
        raise QueryError(
            "the reference engine does not run queries continuously",
            help='use Session(engine="local")',
        )
    if query.running is not None and query.running.state == "running":
        raise QueryError(f'query "{query.name}" is running already')
    if session.approach == "intervals":
        _check_partitions(query)
    interval = _interval(trigger)
    origins = _origins(session, query, plan, trigger == AVAILABLE_NOW)
    _check_sources(origins, trigger)
    if name is not None:
        query.named(name)
    return Running(
        query.name,
        plan,
        query.emit,
        origins,
        functions=session.catalog.functions,
        aggregates=session.catalog.aggregates,
        open_sink=_sink_opener(session, query, sink, checkpoint),
        keeps_all=is_kept(sink),
        late=late,
        errors=errors,
        interval=interval if opener is None else interval or 1,  # it takes all that is there
        bounded=trigger == AVAILABLE_NOW,
        sheds=query.shed > 0,
        stop_on_error=session.on_error == "stop",
        snapshots=snapshots,
        clock=session.clock,
        note_state=query.note_state,
        approach=session.approach,
        open_graph=Graph if opener is None else opener,
    )


def _check_partitions(query: Query) -> None:
    """Refuse a partitioned window over a stream that goes on. In interval plans a row waits for its
    end, and the end of a row in a silent partition never comes."""
    for node in query.plan.walk():
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


def _sink_opener(session: Session, query: Query, sink: object, checkpoint: str | None) -> OpenSink:
    """Opens the sink once it is known where the query goes on."""

    def open_sink(schema: pa.Schema, next_batch: int, refuse: Refuse) -> Sink:
        context = sink_context(session, query, schema, checkpoint, next_batch)
        return session.connectors.open_sink(sink, replace(context, refuse=refuse))

    return open_sink


def sink_context(
    session: Session,
    query: Query,
    schema: pa.Schema,
    checkpoint: str | None = None,
    next_batch: int = 0,
) -> SinkContext:
    token = secrets.token_hex(8)
    if checkpoint is not None:
        from millstream.checkpoint.files import LocalFiles
        from millstream.checkpoint.identity import token as token_of

        token = token_of(LocalFiles(checkpoint))
    spark = session.spark if session.engine == "spark" else None
    return SinkContext(query.name, schema, query.emit, token, next_batch, spark)


def _interval(trigger: object) -> int | None:
    """The least time between two rounds, in microseconds."""
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
    session: Session, query: Query, plan: Plan, available_now: bool
) -> dict[str, tuple[Stream, Records | Origin]]:
    names = {node.stream for node in query.plan.walk() if isinstance(node, Source)}
    known = session._origins
    return {
        name: (known.stream(name), known.origin(name, plan, available_now))
        for name in sorted(names)
    }


def _check_sources(
    origins: dict[str, tuple[Stream, Records | Origin]], trigger: str | None
) -> None:
    tables = all(isinstance(origin, HeldTable) for _, origin in origins.values())
    if tables and trigger == AVAILABLE_NOW:
        raise QueryError("the query reads tables alone, which have no end", help="call query.run()")
    for name, (stream, origin) in origins.items():
        if isinstance(origin, Records):
            continue
        if isinstance(origin, Feed) and trigger == AVAILABLE_NOW:
            raise QueryError(
                f'stream "{name}" is pushed by a program: nothing of it is available now',
                help="start the query without a trigger",
            )
        if stream.idle is not None and stream.domain.microseconds is None:
            raise QueryError(
                f'stream "{name}" has {stream.domain.describe()}: nobody can tell how long it has '
                "been idle",
                help="declare the UNIT of its time, or leave IDLE AFTER out",
            )
