"""Statistics of streams: rates, numbers of distinct values, sizes.

A statistic is declared (`CREATE STREAM … WITH (rate = …, distinct(c) = …)`), sampled from rows in
memory, or measured while a query runs (`sampling.py`). Unknown statistics have defaults, and
printed estimates list the defaults that they use.

Rates are rows per second of stream time; on raw time, which has no seconds, rows per unit. The cost
model counts in chronons: `Statistics.second` is the number of chronons per second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from millstream.logical.catalog import Stream
from millstream.logical.plan import Schema
from millstream.model import types
from millstream.model.time import RAW_TIME, TimeDomain

RATE = 100.0  # rows per second; on raw time 1 row per unit
DISTINCT = 100.0  # values of a column
TEXT_BYTES = 24.0  # of a text, a list or a structure
BATCH_SECONDS = 0.01  # rows that arrive within it are one batch
RAW_BATCH = 1000.0  # rows per batch on raw time
TABLE_ROWS = 1000.0  # rows of a table
HORIZON_SECONDS = 3600.0  # how far ahead to look if a window is unbounded
RAW_HORIZON = 1_000_000.0  # the same, in units of raw time


@dataclass(frozen=True)
class ColumnStatistics:
    """`distinct` is the number of values of the column in the long run; `low` and `high` are its
    minimum and maximum if it is a number or a time. None means not known."""

    distinct: float | None = None
    low: float | None = None
    high: float | None = None
    width: float | None = None  # bytes of a value

    def filled(self, other: ColumnStatistics) -> ColumnStatistics:
        """What is not known here as the other one has it."""
        return ColumnStatistics(
            _first(self.distinct, other.distinct),
            _first(self.low, other.low),
            _first(self.high, other.high),
            _first(self.width, other.width),
        )


NOTHING_KNOWN = ColumnStatistics()


@dataclass(frozen=True)
class StreamStatistics:
    """Statistics of one stream. None means not known. `regular`: rows arrive at equal intervals (K
    remark 22.1); `length` is the mean validity of rows with their own interval, in chronons;
    `batch` is the number of rows per batch; `rows` is the size of a table, whose rate is that of
    its changes."""

    rate: float | None = None
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    size: float | None = None  # bytes of a row
    regular: bool = False
    length: float | None = None
    batch: float | None = None
    rows: float | None = None

    def column(self, name: str) -> ColumnStatistics:
        return self.columns.get(name, NOTHING_KNOWN)

    def filled(self, other: StreamStatistics) -> StreamStatistics:
        """What is not known here as the other one has it."""
        names = dict.fromkeys([*self.columns, *other.columns])
        return StreamStatistics(
            _first(self.rate, other.rate),
            {name: self.column(name).filled(other.column(name)) for name in names},
            _first(self.size, other.size),
            self.regular or (self.rate is None and other.regular),
            _first(self.length, other.length),
            _first(self.batch, other.batch),
            _first(self.rows, other.rows),
        )


@dataclass(frozen=True)
class Statistics:
    """Statistics of the streams of a plan, by name, in one time domain. `selectivities` are known
    selectivities of conditions, by their text in SQL; `horizon` is the number of chronons to look
    ahead if a window is unbounded."""

    streams: Mapping[str, StreamStatistics] = field(default_factory=dict)
    domain: TimeDomain = RAW_TIME
    selectivities: Mapping[str, float] = field(default_factory=dict)
    horizon: float | None = None

    @property
    def second(self) -> float:
        """Chronons per second; on raw time a second is one unit."""
        return 1_000_000 / self.domain.microseconds if self.domain.microseconds else 1.0

    @property
    def ahead(self) -> float:
        if self.horizon is not None:
            return self.horizon
        return HORIZON_SECONDS * self.second if self.domain.microseconds else RAW_HORIZON

    def stream(self, name: str) -> StreamStatistics:
        return self.streams.get(name, StreamStatistics())

    def rate(self, name: str) -> float:
        """Rows per second."""
        default = RATE if self.domain.microseconds else 1.0
        return _known(self.stream(name).rate, default)

    def distance(self, name: str) -> float:
        """K's d: chronons from the start of one row to that of the next."""
        return self.second / self.rate(name)

    def batch(self, name: str) -> float:
        """Rows per batch."""
        by_clock = max(1.0, self.rate(name) * BATCH_SECONDS)
        return _known(self.stream(name).batch, by_clock if self.domain.microseconds else RAW_BATCH)

    def with_stream(self, name: str, known: StreamStatistics) -> Statistics:
        return replace(self, streams={**self.streams, name: known})

    def assumed(self, name: str, columns: Schema) -> Iterator[str]:
        """The defaults used for unknown statistics of a stream, in the syntax of WITH."""
        if self.stream(name).rate is None:
            yield f"rate = {self.rate(name):g}"
        for column in columns:
            unknown = self.stream(name).column(column.name).distinct is None
            if unknown and column.type != types.BOOLEAN:
                yield f"distinct({column.name}) = {DISTINCT:g}"


def declared(stream: Stream) -> StreamStatistics:
    """The statistics that CREATE STREAM declares. Arrival time and the columns that order the
    stream have a new value in every row."""
    columns = {name: ColumnStatistics(distinct=value) for name, value in stream.distinct}
    for name, low, high in stream.ranges:
        columns[name] = columns.get(name, NOTHING_KNOWN).filled(
            ColumnStatistics(low=low, high=high)
        )
    for name in stream.time:
        columns[name] = columns.get(name, NOTHING_KNOWN).filled(
            ColumnStatistics(distinct=float("inf"))
        )
    return StreamStatistics(stream.rate, columns, stream.size)


def width_of(type: pa.DataType) -> float:
    """Bytes per value in the state of operators."""
    try:
        return max(1.0, float(type.bit_width) / 8)
    except ValueError:
        return TEXT_BYTES


def _first(one: float | None, other: float | None) -> float | None:
    return other if one is None else one


def _known(value: float | None, default: float) -> float:
    return default if value is None else value
