"""Which queries go on until somebody stops them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.logical.catalog import Connector, Stream
from millstream.logical.plan import Source
from millstream.model.names import Name

if TYPE_CHECKING:
    from millstream.api.continuous import ContinuousQuery
    from millstream.api.pulls import PullQuery
    from millstream.api.session import Session

# What gives all that is there and ends, unless one of these options is set; all else goes on.
_ENDING = ("avro", "csv", "json", "nexmark", "orc", "parquet")
_LIVE_OPTIONS = ("follow", "speed")


def is_live(session: Session, query: ContinuousQuery | PullQuery) -> bool:
    """Whether one of its streams goes on, or comes by the clock."""
    connectors = [stream.connector for stream in _streams(session, query)]
    return any(connector is not None and _goes_on(connector) for connector in connectors)


def ends(session: Session, query: ContinuousQuery | PullQuery) -> bool:
    """Whether all its streams come from somewhere that ends."""
    connectors = [stream.connector for stream in _streams(session, query)]
    return all(connector is not None and not _goes_on(connector) for connector in connectors)


def _streams(session: Session, query: ContinuousQuery | PullQuery) -> list[Stream]:
    names = {node.stream for node in query.plan.walk() if isinstance(node, Source)}
    streams = [session.catalog.stream(Name(name, quoted=True)) for name in names]
    return [stream for stream in streams if isinstance(stream, Stream)]


def _goes_on(connector: Connector) -> bool:
    options = {name.lower(): value for name, value in connector.options}
    ends = connector.name.text.lower() in _ENDING
    return not ends or any(options.get(name) for name in _LIVE_OPTIONS)
