"""Drives the operators of a query batch by batch, with access to their state."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

import millstream as ms
from millstream.model.arrays import single
from millstream.model.records import Records
from millstream.optimizer.choice import Choices, choose
from millstream.physical.batch import Batch
from millstream.physical.operator import Context, PhysicalPlan
from millstream.runtime import bounded
from millstream.runtime.graph import Graph

Rewrite = Callable[[PhysicalPlan], PhysicalPlan]


def physical(
    sql: str,
    streams: Mapping[str, pa.Table],
    time_column: str = "t",
    choices: Choices | None = None,
    rewrite: Rewrite | None = None,
    emit: str | None = None,
) -> PhysicalPlan:
    """The plan of the last query of a text over these streams; `emit` is the default if the query
    has no EMIT."""
    session = ms.Session(engine="local")
    for name, stream in streams.items():
        session.stream(name, stream.slice(0, 0), time=time_column)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        query: ms.Query = session.sql(sql)
    plan = choose(query.plan, emit or query.emit, choices)
    return plan if rewrite is None else rewrite(plan)


@dataclass
class Drive:
    """A running plan, and the position in its streams; all have the same number of rows per
    time."""

    plan: PhysicalPlan
    streams: Mapping[str, pa.Table]
    time_column: str = "t"
    sink: Callable[[Batch], None] | None = None
    read: dict[str, int] = field(default_factory=dict)
    rows_out: int = 0

    def __post_init__(self) -> None:
        self.graph = Graph(self.plan, Context(), self._take)
        self._records = {
            name: _records(stream, self.time_column) for name, stream in self.streams.items()
        }
        self.read = dict.fromkeys(self.graph.sources, 0)

    def _take(self, batch: Batch) -> None:
        list(batch.columns)  # as a sink would read them
        if self.sink is not None:
            self.sink(batch)
        self.rows_out += len(batch)

    def push(self, rows: int) -> int:
        """Push the next rows of every stream in turn; returns how many there were."""
        return sum(self._push(name, rows) for name in self.graph.sources)

    def _push(self, name: str, rows: int) -> int:
        records, first = self._records[name], self.read[name]
        stop = min(first + rows, len(records))
        if stop == first:
            return 0
        part = records.slice(first, stop)
        for vertex in self.graph.sources[name]:
            frontier = int(part.start[-1])
            self.graph.push(vertex, bounded.source_batch(vertex.node, part, first, frontier))
        self.read[name] = stop
        return stop - first

    def push_rows(self, rows: int, batch: int) -> int:
        """Push `rows` rows of every stream, in batches."""
        return sum(self.push(min(batch, rows - first)) for first in range(0, rows, batch))

    def timed(self, rows: int, batch: int) -> float:
        """Processor seconds per row."""
        began = time.process_time()
        pushed = self.push_rows(rows, batch)
        return (time.process_time() - began) / pushed

    def timed_until(self, share: float, batch: int) -> float:
        """Processor seconds until this share of every stream has been read; each batch has rows of
        every stream in proportion to its size."""
        rows = {name: len(self._records[name]) for name in self.graph.sources}
        total = sum(rows.values())
        began = time.process_time()
        while any(self.read[name] < int(share * rows[name]) for name in rows):
            for name in rows:
                self._push(name, max(1, -(-batch * rows[name] // total)))
        return time.process_time() - began

    @property
    def touched(self) -> int:
        """Elements and events that all operators have examined."""
        return sum(vertex.operator.touched for vertex in self.graph.vertices)

    @property
    def nbytes(self) -> int:
        return sum(vertex.operator.nbytes for vertex in self.graph.vertices)

    @property
    def state_rows(self) -> int:
        return sum(vertex.operator.rows for vertex in self.graph.vertices)


def _records(stream: pa.Table, time_column: str) -> Records:
    columns = [single(column) for column in stream.columns]
    start = np.asarray(single(stream[time_column]).cast(pa.int64()))
    return Records(columns, start, start + 1)
