"""From `query.start(…)` to a running query: its options are checked, its sources found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.catalog import Stream
from millstream.declarations import length
from millstream.errors import MillstreamError, NotYetError, QueryError
from millstream.local.inputs import Origin
from millstream.local.running import Running
from millstream.local.sources import Feed
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
) -> Running:
    """The query, running."""
    if query.sink is not None:
        raise NotYetError(
            f'sink "{query.sink.name.text}" is not built yet', help="start the SELECT alone"
        )
    if checkpoint is not None:
        raise NotYetError("checkpoints are not built yet", help="leave checkpoint=… out")
    if session.engine == "reference":
        raise QueryError(
            "the reference engine does not run queries continuously",
            help='use Session(engine="local")',
        )
    if query.running is not None and query.running.state == "running":
        raise QueryError(f'query "{query.name}" is running already')
    interval = _interval(trigger)
    origins = _origins(session, query)
    _check_sources(origins, trigger)
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
        interval=interval,
        stop_on_error=session.on_error == "stop",
        snapshots=snapshots,
        clock=session.clock,
        note_state=query.note_state,
        approach=session.approach,
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


def _origins(session: Session, query: Query) -> dict[str, tuple[Stream, Records | Origin]]:
    names = {node.stream for node in query.plan.walk() if isinstance(node, Source)}
    return {name: (session._source_stream(name), session._origin(name)) for name in sorted(names)}


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
