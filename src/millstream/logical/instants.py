"""Instants as people write them and as they are shown: numbers, or moments of TIMESTAMP time."""

from __future__ import annotations

import datetime
from typing import TypeAlias

import pyarrow as pa

from millstream.logical.functions import EvaluationError, cast
from millstream.model import types
from millstream.model.errors import QueryError
from millstream.model.time import INFINITY, TimeDomain
from millstream.sql.literals import microseconds_of

Instant: TypeAlias = int | datetime.datetime

_EPOCH = datetime.datetime(1970, 1, 1)


def chronon(at: object, domain: TimeDomain) -> int:
    """The chronon that a number, a datetime, a date or a text stands for."""
    if isinstance(at, int) and not isinstance(at, bool) and abs(at) <= INFINITY:
        return at
    if pa.types.is_timestamp(domain.type):
        if isinstance(at, datetime.datetime):
            return microseconds_of(at)
        if isinstance(at, datetime.date):
            at = at.isoformat()
        if isinstance(at, str):
            try:
                return int(cast(at, types.STRING, types.TIMESTAMP))
            except EvaluationError:
                pass
    raise QueryError(
        f"{at!r} is not an instant of {domain.describe()}",
        help="pass a number of chronons, or a datetime or text for TIMESTAMP time",
    )


def shown(instant: int, domain: TimeDomain) -> Instant:
    """A datetime (UTC, unzoned) on TIMESTAMP time, the first or last one beyond its range; else
    the number itself."""
    if not pa.types.is_timestamp(domain.type):
        return instant
    try:
        return _EPOCH + datetime.timedelta(microseconds=instant)
    except OverflowError:
        return datetime.datetime.min if instant < 0 else datetime.datetime.max
