"""Generates rows at a fixed rate: `SOURCE rate(rows_per_second => 1000)`.

    CREATE STREAM Tick (timestamp TIMESTAMP, value BIGINT)
      SOURCE rate(rows_per_second => 10) ORDERED BY timestamp;

As Spark's `rate` source: `value` counts from 0, `timestamp` is when the row is due. It has no end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from millstream.connectors.arguments import Arguments
from millstream.connectors.contracts import RowSource
from millstream.connectors.interruptible import InterruptibleItems
from millstream.logical.catalog import Stream
from millstream.model.errors import DataError
from millstream.model.types import BIGINT, TIMESTAMP, sql_name

COLUMNS = {"timestamp": TIMESTAMP, "value": BIGINT}

_TICK = 0.01  # minimum seconds between two batches


def rows_per_second(stream: Stream) -> float:
    """The declared rate of a stream; also checks its columns."""
    for column in stream.columns:
        if COLUMNS.get(column.name.lower()) != column.type:
            raise DataError(
                f'stream "{stream.name}": connector "rate" has no column '
                f'"{column.name}" {sql_name(column.type)}',
                help="its columns are timestamp TIMESTAMP and value BIGINT",
            )
    return Arguments(stream, ["rows_per_second"]).positive("rows_per_second", 1)


def connect(stream: Stream, available_now: bool) -> RowSource:
    rate = Rate(stream, rows_per_second(stream))
    if available_now:
        raise DataError(
            f'stream "{stream.name}": connector "rate" has no end',
            help="start the query without a trigger: query.start(sink)",
        )
    return RowSource(lambda: InterruptibleItems(rate.rows), replays=False)


class Rate:
    def __init__(self, stream: Stream, rate: float) -> None:
        self._stream = stream
        self._rate = rate

    def rows(self, closed: threading.Event) -> Iterator[pa.Table]:
        begun = time.time_ns() // 1000
        stopwatch = time.monotonic()
        given = 0
        while not closed.wait(max(_TICK, (given + 1) / self._rate - time.monotonic() + stopwatch)):
            due = int((time.monotonic() - stopwatch) * self._rate)
            if due > given:
                yield self._table(begun, given, due)
                given = due

    def _table(self, begun: int, first: int, stop: int) -> pa.Table:
        values = np.arange(first, stop)
        times = begun + ((values + 1) * (1e6 / self._rate)).astype(np.int64)
        found = {"timestamp": pa.array(times).cast(TIMESTAMP), "value": pa.array(values)}
        names = [column.name for column in self._stream.columns]
        return pa.table({name: found[name.lower()] for name in names})
