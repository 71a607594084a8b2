"""Statistics from data: from rows in memory, or from a running query.

This is cheap: the rate follows from the first and the last time, values from a sample of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.logical.catalog import Stream
from millstream.logical.instants import chronon
from millstream.logical.plan import Lifetime
from millstream.model.arrays import single
from millstream.model.instants import Instant
from millstream.model.records import Records
from millstream.model.time import INFINITY, TimeDomain
from millstream.optimizer.statistics import ColumnStatistics, Statistics, StreamStatistics

if TYPE_CHECKING:
    from millstream.model.metrics import Metrics

SAMPLE = 1 << 16  # the size of the sample
WEIGHT = 0.3  # the weight of a new measurement (K §22.2.3: exponential smoothing)


# --- rows in memory -------------------------------------------------------------------------------


def sampled(stream: Stream, records: Records, batch: float | None = None) -> StreamStatistics:
    """The statistics of a stream whose rows are all in memory and in time order."""
    count = len(records)
    if not count:
        return StreamStatistics(batch=batch)
    span = float(records.start[-1]) - float(records.start[0])
    rate = (count - 1) / span * _second(stream.domain) if span > 0 else None
    step = max(1, count // SAMPLE)
    sample = [column[::step] if step > 1 else column for column in records.columns]
    columns = {
        field.name: _column(values) for field, values in zip(stream.columns, sample, strict=True)
    }
    for name in stream.time:
        columns[name] = replace(columns[name], distinct=float("inf"))
    length = None
    if stream.lifetime is Lifetime.INTERVAL:
        finite = records.end < INFINITY
        lengths = records.end[finite] - records.start[finite]
        length = float(lengths.mean()) if len(lengths) else span
    return StreamStatistics(rate, columns, None, _is_regular(records), length, batch)


def sampled_table(rows: pa.Table) -> StreamStatistics:
    """The statistics of the current rows of a table; a column has at most that many values."""
    step = max(1, len(rows) // SAMPLE)
    columns = {}
    for name in rows.column_names if len(rows) else ():
        own = _column(single(rows[name])[::step])
        distinct = None if own.distinct is None else min(own.distinct, float(len(rows)))
        columns[name] = replace(own, distinct=distinct)
    return StreamStatistics(0.0, columns, rows=float(len(rows)))


def span_of(records: Mapping[str, Records]) -> float | None:
    """The time from the first to the last row of several inputs."""
    filled = [each for each in records.values() if len(each)]
    if not filled:
        return None
    last = max(int(each.start[-1]) for each in filled)
    return float(max(1, last - min(int(each.start[0]) for each in filled)))


def _is_regular(records: Records) -> bool:
    """Whether rows arrive at equal intervals (K remark 22.1)."""
    gaps = np.diff(records.start[:SAMPLE])
    return len(gaps) > 1 and bool(gaps[0] > 0) and bool((gaps == gaps[0]).all())


def _column(values: pa.Array) -> ColumnStatistics:
    """NULLs are not counted as values."""
    low = high = None
    if _is_ordered(values.type):
        found = pc.min_max(_as_numbers(values)).as_py()
        if found["min"] is not None:
            low, high = float(found["min"]), float(found["max"])
    try:
        distinct = in_the_long_run(len(values), pc.count_distinct(values).as_py())
    except pa.ArrowNotImplementedError:
        distinct = None
    width = values.nbytes / len(values)
    return ColumnStatistics(distinct, low, high, width)


def _is_ordered(type: pa.DataType) -> bool:
    numbers = pa.types.is_integer(type) or pa.types.is_floating(type)
    return bool(numbers or pa.types.is_decimal(type) or pa.types.is_timestamp(type))


def _as_numbers(values: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.int64())
    if pa.types.is_floating(values.type):
        return pc.if_else(pc.is_finite(values), values, None)
    return values


def in_the_long_run(rows: int, distinct: int) -> float:
    """The number n of equally frequent values, given that so many rows have so many different
    values: Cardenas's formula d = n·(1 - e^(-rows/n)), solved for n.

    >>> round(in_the_long_run(1000, 50)), in_the_long_run(9, 9), round(in_the_long_run(1000, 632))
    (50, inf, 1000)
    """
    if distinct == 0:  # nothing but NULL
        return 1.0
    if distinct >= rows:
        return float("inf")
    low, high = float(distinct), float(rows) * rows
    for _ in range(100):
        middle = (low * high) ** 0.5
        if -middle * np.expm1(-rows / middle) < distinct:
            low = middle
        else:
            high = middle
    return low


# --- a running query ------------------------------------------------------------------------------


def measured(
    known: Statistics, before: Metrics, after: Metrics, weight: float = WEIGHT
) -> Statistics:
    """The rates of the sources between two measurements of a running query, smoothed with the
    previous rates: r = w·r_new + (1 - w)·r_old. If the time of a stream did not advance, its rate
    is unchanged."""
    for name, now in after.sources.items():
        then = before.sources.get(name)
        moved = None if then is None else _moved(then.frontier, now.frontier, known.domain)
        if then is None or moved is None:
            continue
        rate = (now.rows - then.rows) / moved * known.second
        old = known.stream(name).rate
        if old is not None:
            rate = weight * rate + (1 - weight) * old
        if rate > 0:
            known = known.with_stream(name, replace(known.stream(name), rate=rate))
    return known


def _moved(then: Instant | None, now: Instant | None, domain: TimeDomain) -> int | None:
    """Chronons between two frontiers, if the later one is later."""
    if then is None or now is None:
        return None
    moved = chronon(now, domain) - chronon(then, domain)
    return moved if moved > 0 else None


def _second(domain: TimeDomain) -> float:
    return 1_000_000 / domain.microseconds if domain.microseconds else 1.0
