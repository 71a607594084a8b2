"""Millstream's local engine: the query over the streams in batches, each answer as it comes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

import millstream as ms
from benchmarks.workloads import Workload
from millstream.local import answers, bounded
from millstream.local.graph import Graph
from millstream.physical.batch import NEVER, Batch
from millstream.physical.operator import Context
from millstream.records import Records


def run(workload: Workload) -> pa.Table:
    """The whole answer; every batch of it becomes a table, as a sink would get it."""
    query = _query(workload)
    tables: list[pa.Table] = []
    context = Context()

    def sink(batch: Batch) -> None:
        if len(batch):
            tables.append(answers.final_table(query.plan.schema, query.plan.domain, batch))

    graph = Graph(query.physical_plan, context, sink)
    for stream, batch in _batches(graph, workload):
        for vertex in graph.sources[stream]:
            graph.push(vertex, batch)
    bounded.finish(graph)
    return pa.concat_tables(tables)


def _query(workload: Workload) -> ms.Query:
    session = ms.Session(engine="local")
    session.sql(workload.declarations())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        query: ms.Query = session.sql(workload.sql)
    return query


def _batches(graph: Graph, workload: Workload) -> Iterator[tuple[str, Batch]]:
    frontiers = dict.fromkeys(workload.streams, NEVER)
    for stream, table in workload.batches():
        columns = [column.combine_chunks() for column in table.columns]
        columns = [c.chunk(0) if isinstance(c, pa.ChunkedArray) else c for c in columns]
        start = np.asarray(table.column("t"))
        frontiers[stream] = max(frontiers[stream], int(start[-1]))
        records = Records(columns, start, start + 1)
        (vertex, *_) = graph.sources[stream]
        yield stream, bounded.source_batch(vertex.node, records, 0, frontiers[stream])
