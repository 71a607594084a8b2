"""Millstream: continuous SQL queries whose answers are exactly right at every instant."""

from millstream.errors import (
    BindError,
    CatalogError,
    DataError,
    MillstreamError,
    NotYetError,
    ParseError,
    QueryError,
)
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
