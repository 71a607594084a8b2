"""Millstream's local engine: the query over the streams in batches, each answer as it comes.

The peers' tables are loaded in advance, and so are the batches: timing starts with the arrays of a
batch, as a source would provide them, and ends with the tables of a sink.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import millstream as ms
from benchmarks.workloads import INFINITY, Workload
from millstream.model.arrays import single
from millstream.model.records import Records
from millstream.physical.batch import Batch
from millstream.physical.operator import Context
from millstream.runtime import answers, bounded
from millstream.runtime.graph import Graph


@dataclass
class Prepared:
    query: ms.Query
    batches: list[tuple[str, Records, int, int]]  # of a stream, from which row on, the frontier


def prepare(workload: Workload) -> Prepared:
    session = ms.Session(engine="local")
    session.sql(workload.declarations())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        query: ms.Query = session.sql(workload.sql)
    batches, rows = [], Counter[str]()
    for name, table in workload.batches():
        records, frontier = _records(table)
        batches.append((name, records, rows[name], frontier))
        rows[name] += len(records)
    return Prepared(query, batches)


def _records(table: pa.Table) -> tuple[Records, int]:
    columns = [single(column) for column in table.columns]
    start = np.asarray(columns[table.column_names.index("t")])
    return Records(columns, start, start + 1), int(start[-1])


def run(prepared: Prepared) -> list[pa.Table]:
    """Every batch of the answer as a table, as a sink would get it."""
    query, context = prepared.query, Context()
    schema, domain = query.plan.schema, query.plan.domain
    tables: list[pa.Table] = []

    def sink(batch: Batch) -> None:
        if len(batch):
            cropped = answers.cropped(batch, context.beginning, context.in_order)
            tables.append(answers.final_table(schema, domain, cropped))

    graph = Graph(query.physical_plan, context, sink)
    for stream, records, first, frontier in prepared.batches:
        for vertex in graph.sources[stream]:
            graph.push(vertex, bounded.source_batch(vertex.node, records, first, frontier))
    graph.bring_to(INFINITY)
    return tables


def answer(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables)
