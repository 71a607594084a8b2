"""From `query.start(…)` to a running query: its options are checked, its sources found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.catalog import Stream
from millstream.declarations import length
from millstream.errors import MillstreamError, NotYetError, QueryError
from millstream.local.graph import Graph
from millstream.local.inputs import Origin
from millstream.local.running import OpenGraph, Running
from millstream.local.sources import Feed, Reader
from millstream.logical.plan import Source
from millstream.logical.time import TIMESTAMP_TIME
from millstream.records import Records

if TYPE_CHECKING:
    from millstream.query import Query
    from millstream.session import Session

AVAILABLE_NOW = "available_now"


def start(
    session: Session,
    query: Query,
    sink: object,
    name: str | None,
    checkpoint: str | None,
    trigger: str | None,
    late: object,
    errors: object,
    snapshots: bool,
    opener: OpenGraph | None = None,
) -> Running:
    """The query, running; its operators where `opener` puts them, else in its thread."""
    if query.sink is not None:
        raise NotYetError(
            f'sink "{query.sink.name.text}" is not built yet', help="start the SELECT alone"
        )
    if session.engine == "reference":
        raise QueryError(
            "the reference engine does not run queries continuously",
            help='use Session(engine="local")',
        )
    if query.running is not None and query.running.state == "running":
        raise QueryError(f'query "{query.name}" is running already')
    interval = _interval(trigger)
    origins = _origins(session, query, trigger == AVAILABLE_NOW)
    _check_sources(origins, trigger)
    if checkpoint is not None:
        _check_replay(origins)
    if name is not None:
        query.named(name)
    return Running(
        query.name,
        query.plan,
        query.emit,
        origins,
        functions=session.catalog.functions,
        aggregates=session.catalog.aggregates,
        sink=sink,
        late=late,
        errors=errors,
        interval=interval if opener is None else interval or 1,  # it takes all that is there
        stop_on_error=session.on_error == "stop",
        snapshots=snapshots,
        clock=session.clock,
        note_state=query.note_state,
        approach=session.approach,
        open_graph=Graph if opener is None else opener,
    )


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
    session: Session, query: Query, available_now: bool
) -> dict[str, tuple[Stream, Records | Origin]]:
    names = {node.stream for node in query.plan.walk() if isinstance(node, Source)}
    return {
        name: (session._source_stream(name), session._origin(name, available_now))
        for name in sorted(names)
    }


def _check_replay(origins: dict[str, tuple[Stream, Records | Origin]]) -> None:
    """After a crash rows that were read and not committed must come again."""
    for name, (_, origin) in origins.items():
        if isinstance(origin, Feed) or (isinstance(origin, Reader) and not origin.replays):
            raise QueryError(
                f'stream "{name}" cannot be read again after a crash, so a checkpoint of it would '
                "be worth nothing",
                help="use a source that can: data in memory, or CREATE STREAM … SOURCE",
            )


def _check_sources(
    origins: dict[str, tuple[Stream, Records | Origin]], trigger: str | None
) -> None:
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
