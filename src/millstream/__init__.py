"""Millstream: continuous SQL queries whose answers are exactly right at every instant."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from millstream.model.errors import (
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
from millstream.model.masking import secret
from millstream.model.release import RELEASE

if TYPE_CHECKING:
    from millstream.api.pulls import PullQuery
    from millstream.api.query import Query
    from millstream.api.session import Session
    from millstream.api.tables import TableHandle
    from millstream.api.views import View
    from millstream.connectors.contracts import Heartbeat
    from millstream.connectors.registry import named_sink as sink
    from millstream.runtime.running import Running
    from millstream.runtime.sources import Feed

__version__ = RELEASE

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
    "PullQuery",
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
    "Feed": ("millstream.runtime.sources", "Feed"),
    "Heartbeat": ("millstream.connectors.contracts", "Heartbeat"),
    "PullQuery": ("millstream.api.pulls", "PullQuery"),
    "Query": ("millstream.api.query", "Query"),
    "Running": ("millstream.runtime.running", "Running"),
    "Session": ("millstream.api.session", "Session"),
    "TableHandle": ("millstream.api.tables", "TableHandle"),
    "View": ("millstream.api.views", "View"),
    "sink": ("millstream.connectors.registry", "named_sink"),
}


def __getattr__(name: str) -> object:
    """Sessions need Arrow, which takes a while to load; the command line's help does not."""
    if name in _LAZY:
        module, attribute = _LAZY[name]
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
