"""Instants as users write them: numbers, or datetimes for TIMESTAMP time."""

from __future__ import annotations

import datetime

import pyarrow as pa

from millstream.logical.functions import EvaluationError, cast
from millstream.model import types
from millstream.model.errors import QueryError
from millstream.model.time import FARTHEST, INFINITY, TimeDomain, microseconds_of


def chronon(at: object, domain: TimeDomain) -> int:
    """The chronon of a number, a datetime, a date or a string."""
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


def instant_of_change(at: object, domain: TimeDomain) -> int:
    """The chronon at which a table changes, in the range of the times of rows. In TIMESTAMP time a
    number is refused: it could count seconds or microseconds."""
    if pa.types.is_timestamp(domain.type) and isinstance(at, int):
        raise QueryError(
            f"{at!r} is not an instant of {domain.describe()}",
            help="write TIMESTAMP '…', or pass a datetime or ISO text",
        )
    instant = chronon(at, domain)
    if abs(instant) > FARTHEST:
        raise QueryError(f"the time {at} is too {'large' if instant > 0 else 'small'}")
    return instant
