"""Instants for display: numbers, or datetimes for TIMESTAMP time."""

from __future__ import annotations

import datetime
from typing import TypeAlias

import pyarrow as pa

from millstream.model.time import TimeDomain

Instant: TypeAlias = int | datetime.datetime

_EPOCH = datetime.datetime(1970, 1, 1)


def shown(instant: int, domain: TimeDomain) -> Instant:
    """A naive UTC datetime for TIMESTAMP time, clamped to the range of datetime; else the number
    itself."""
    if not pa.types.is_timestamp(domain.type):
        return instant
    try:
        return _EPOCH + datetime.timedelta(microseconds=instant)
    except OverflowError:
        return datetime.datetime.min if instant < 0 else datetime.datetime.max
