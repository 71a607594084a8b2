"""Runs a plan over bounded inputs from beginning to end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from millstream.model.arrays import of_int64
from millstream.model.records import Records
from millstream.model.time import INFINITY
from millstream.physical.batch import (
    NEVER,
    Batch,
    Columns,
    Ints,
    LazyColumn,
    merged,
    numbers,
    ones,
)
from millstream.physical.operator import Context, PhysicalPlan
from millstream.physical.operators.source import Source
from millstream.runtime.graph import Graph, Vertex

BATCH_ROWS = 16_384


@dataclass
class BoundedFeed:
    """A bounded input in order of time, and the position in it."""

    records: Records
    vertices: list[Vertex]
    read: int = 0

    @property
    def next_start(self) -> int:
        at_end = self.read >= len(self.records)
        return INFINITY if at_end else int(self.records.start[self.read])

    @property
    def is_table(self) -> bool:
        return all(isinstance(v.node, Source) and v.node.is_table for v in self.vertices)

    def batch(self, rows: int) -> tuple[Records, int, int]:
        """The next rows, the number of the first of them, and the frontier after them."""
        first = self.read
        part = self.records.part(first, min(first + rows, len(self.records)))
        self.read = first + len(part)
        return part, first, int(part.start[-1])


def feed_batches(
    graph: Graph, inputs: Mapping[str, Records], rows: int, frontier: int = INFINITY
) -> Iterator[None]:
    """Push the inputs through the graph, the one furthest behind first; yields after each batch. A
    table reaches the frontier once all its changes are read."""
    feeds = [BoundedFeed(inputs[stream], vertices) for stream, vertices in graph.sources.items()]
    while behind := min((f for f in feeds if f.next_start < INFINITY), key=_behind, default=None):
        records, first, reached = behind.batch(rows)
        if behind.next_start == INFINITY and behind.is_table:
            reached = frontier
        for vertex in behind.vertices:
            graph.push(vertex, source_batch(vertex.node, records, first, reached))
        yield


def _behind(feed: BoundedFeed) -> int:
    return feed.next_start


def source_batch(node: PhysicalPlan, records: Records, first: int, frontier: int) -> Batch:
    """Rows as a source emits them; `first` is the number of the first row in its stream, if rows
    have no numbers of their own."""
    assert isinstance(node, Source)
    columns = [LazyColumn(column) for column in records.columns]
    if node.arrival and records.number is not None:
        columns.append(LazyColumn(of_int64(records.number)))
    elif node.arrival:
        columns.append(LazyColumn(_Arrivals(first), numbers(len(records))))
    weight = ones(len(records)) if records.weight is None else records.weight
    return Batch(Columns(columns), records.start, records.end, weight, frontier)


@dataclass(slots=True)
class _Arrivals:
    """The numbers of rows in their stream, computed lazily: few are ever read."""

    first: int

    def take(self, index: Ints) -> pa.Array:
        return of_int64(self.first + index)


def answers(
    plan: PhysicalPlan,
    context: Context,
    inputs: Mapping[str, Records],
    frontier: int = INFINITY,
    rows: int = BATCH_ROWS,
) -> list[Batch]:
    """The output of the plan over the inputs, with every source advanced to the frontier
    afterwards; at least one batch."""
    given: list[Batch] = [Batch.empty(plan.types, NEVER)]
    graph = Graph(plan, context, lambda batch: given.append(batch.gathered()))
    for _ in feed_batches(graph, inputs, rows, frontier):
        pass
    graph.bring_to(frontier)
    return given


def answer(
    plan: PhysicalPlan,
    context: Context,
    inputs: Mapping[str, Records],
    frontier: int = INFINITY,
    rows: int = BATCH_ROWS,
) -> Batch:
    """The same as one batch."""
    return merged(answers(plan, context, inputs, frontier, rows))
