"""Which queries go on until somebody stops them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.catalog import Connector, Stream
from millstream.logical.plan import Source
from millstream.names import Name

if TYPE_CHECKING:
    from millstream.query import Query
    from millstream.session import Session

# What gives all that is there and ends, unless one of these options is set; all else goes on.
_ENDING = ("avro", "csv", "json", "nexmark", "orc", "parquet")
_LIVE_OPTIONS = ("follow", "speed")


def is_live(session: Session, query: Query) -> bool:
    """Whether one of its streams goes on, or comes by the clock."""
    names = {node.stream for node in query.plan.walk() if isinstance(node, Source)}
    streams = [session.catalog.stream(Name(name, quoted=True)) for name in names]
    return any(isinstance(stream, Stream) and _is_live_stream(stream) for stream in streams)


def _is_live_stream(stream: Stream) -> bool:
    return stream.connector is not None and _goes_on(stream.connector)


def _goes_on(connector: Connector) -> bool:
    options = {name.lower(): value for name, value in connector.options}
    ends = connector.name.text.lower() in _ENDING
    return not ends or any(options.get(name) for name in _LIVE_OPTIONS)
