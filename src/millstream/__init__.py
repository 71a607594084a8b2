"""Millstream: continuous SQL queries whose answers are exactly right at every instant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors import (
    BindError,
    CatalogError,
    DataError,
    MillstreamError,
    NotYetError,
    ParseError,
    QueryError,
)

if TYPE_CHECKING:
    from millstream.query import Query
    from millstream.session import MillstreamWarning, Session

__version__ = "0.1.0"

__all__ = [
    "BindError",
    "CatalogError",
    "DataError",
    "MillstreamError",
    "MillstreamWarning",
    "NotYetError",
    "ParseError",
    "Query",
    "QueryError",
    "Session",
]


def __getattr__(name: str) -> object:
    """Sessions need Arrow, which takes a while to load; the command line's help does not."""
    if name in ("MillstreamWarning", "Query", "Session"):
        from millstream import session

        return getattr(session, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
