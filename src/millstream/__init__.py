"""Millstream: continuous SQL queries whose answers are exactly right at every instant."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from millstream.errors import (
    BindError,
    CatalogError,
    DataError,
    MillstreamError,
    MillstreamWarning,
    OverloadWarning,
    ParseError,
    QueryError,
    RowErrorWarning,
)
from millstream.masking import secret

if TYPE_CHECKING:
    from millstream.local.running import Running
    from millstream.local.sinks import named_sink as sink
    from millstream.local.sources import Feed, Heartbeat
    from millstream.query import Query
    from millstream.session import Session
    from millstream.tables import TableHandle
    from millstream.views import View

__version__ = "0.1.0"

__all__ = [
    "BindError",
    "CatalogError",
    "DataError",
    "Feed",
    "Heartbeat",
    "MillstreamError",
    "MillstreamWarning",
    "OverloadWarning",
    "ParseError",
    "Query",
    "QueryError",
    "RowErrorWarning",
    "Running",
    "Session",
    "TableHandle",
    "View",
    "secret",
    "sink",
]

_LAZY = {
    "Feed": ("millstream.local.sources", "Feed"),
    "Heartbeat": ("millstream.local.sources", "Heartbeat"),
    "Query": ("millstream.query", "Query"),
    "Running": ("millstream.local.running", "Running"),
    "Session": ("millstream.session", "Session"),
    "TableHandle": ("millstream.tables", "TableHandle"),
    "View": ("millstream.views", "View"),
    "sink": ("millstream.local.sinks", "named_sink"),
}


def __getattr__(name: str) -> object:
    """Sessions need Arrow, which takes a while to load; the command line's help does not."""
    if name in _LAZY:
        module, attribute = _LAZY[name]
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
