"""Queries over bounded inputs on Spark: one job of Millstream's tasks, or plain Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millstream.connectors.intake.rows import nothing
from millstream.fragments.outcome import Outcome
from millstream.fragments.progress import Advance, BatchStep
from millstream.fragments.reading import RemoteRows
from millstream.fragments.remote_query import RemoteQuery
from millstream.fragments.tasks import LeafInput
from millstream.model.errors import DataError, brief_row
from millstream.model.records import Records
from millstream.model.time import INFINITY
from millstream.model.types import LAST_TIMESTAMP
from millstream.model.values import to_type
from millstream.physical.batch import Batch, Ints
from millstream.spark.job import leaves_of, run_batch
from millstream.spark.native_query import NativeQuery
from millstream.spark.schemas import moved, typed
from millstream.spark.starting import for_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def answer(
    spark: SparkSession,
    work: RemoteQuery,
    inputs: Mapping[str, Records],
    frames: Sequence[RemoteRows] = (),
    frontier: int = INFINITY,
) -> Outcome:
    """The whole answer of the plan over the inputs, after every source has reached `frontier`."""
    streams = [*inputs, *(frame.reading.stream.name for frame in frames)]
    step = BatchStep(dict.fromkeys(streams, Advance(frontier)), beginning=INFINITY)
    rows = [LeafInput(stream, records, 0) for stream, records in inputs.items()]
    rows += [LeafInput(f.reading.stream.name, nothing(f.reading.stream), 0) for f in frames]
    outcome = run_batch(work, step, leaves_of(for_batches(spark), work, rows, frames, 0))
    for intake in outcome.intakes:
        if intake.refused:
            row, message = intake.refused[0]
            raise DataError(f'stream "{intake.stream}", row {row}: {message}')
    return outcome


def native_answer(
    spark: SparkSession, query: NativeQuery, frames: Mapping[str, DataFrame]
) -> Batch:
    """The same for a query that Spark can run by itself."""
    own = for_batches(spark)
    given = {name: typed(moved(frame, own)) for name, frame in frames.items()}
    for name in given:
        for row in query.refused(given, name).take(1):
            *values, fault = row
            raise DataError(f'stream "{name}", row {brief_row(values)}: {fault}')
    *columns, start, end = query.frame(given).toArrow().combine_chunks().itercolumns()
    arrays = [
        to_type(pa.concat_arrays(column.chunks or [pa.array([], column.type)]), field.type)
        for column, field in zip(columns, query.plan.schema, strict=True)
    ]
    ends = _chronons(end)
    if pa.types.is_timestamp(end.type):
        ends = np.where(ends == LAST_TIMESTAMP, INFINITY, ends)
    return Batch.of(arrays, _chronons(start), ends)


def _chronons(times: pa.ChunkedArray) -> Ints:
    return times.cast(pa.int64()).to_numpy()  # type: ignore[no-any-return]
