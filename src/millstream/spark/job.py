"""Runs a batch as one Spark job: the leaves, then level by level; the driver collects messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.fragments.messages import SCHEMA, Kind, Message, as_record, messages_in
from millstream.fragments.outcome import Outcome
from millstream.fragments.payload import decoded, encoded
from millstream.fragments.progress import BatchStep
from millstream.fragments.reading import RemoteRows
from millstream.fragments.remote_query import RemoteQuery
from millstream.fragments.tasks import LeafInput, Runner, Transient, leaf_messages, level_messages
from millstream.model.arrays import int64, of_int64
from millstream.model.errors import QueryError
from millstream.model.records import Records
from millstream.physical.batch import Batch
from millstream.spark.leaves import Task, frame_leaves
from millstream.spark.starting import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEAF_SCHEMA = pa.schema(
    {"stream": pa.string(), "first": pa.int64(), "numbered": pa.bool_(), "payload": pa.binary()}
)


def run_batch(work: RemoteQuery, step: BatchStep, leaves: DataFrame) -> Outcome:
    """Run the fragments over the output of the leaves; no state is kept."""
    frame = leaves
    for level in range(1, work.last_level + 1):
        placed = frame.repartitionById(work.places, frame["place"])
        frame = placed.mapInArrow(level_task(work, level, step, Transient(work)), SCHEMA)
    return Outcome(work, step, collected(frame))


def level_task(work: RemoteQuery, level: int, step: BatchStep, runner: Runner) -> Task:
    def task(records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        messages = (message for record in records for message in messages_in(record))
        for message in level_messages(work, level, step, messages, runner):
            yield as_record([message])

    return task


def collected(frame: DataFrame) -> Iterator[Message]:
    """The one action of a batch."""
    from pyspark.errors import PySparkException

    try:
        rows = frame.collect()
    except PySparkException as error:
        raise QueryError(f"Spark could not run the batch: {reason(error)}") from error
    return (_message(row) for row in rows)


def reason(error: Exception) -> str:
    """The reason without the Java stack trace: a worker's last line, or Spark's own message."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    python = [line for line in lines if line[:1].isalpha() and ": " in line]
    return (python or lines or [type(error).__name__])[-1].strip()


def _message(row: Any) -> Message:
    return Message(row.place, row.level, Kind(row.kind), row.number, row.shard, bytes(row.payload))


def leaves_of(
    spark: SparkSession,
    work: RemoteQuery,
    inputs: Sequence[LeafInput],
    frames: Sequence[RemoteRows],
    batch: int,
) -> DataFrame:
    """The leaves of a batch. The session of the first tasks determines the settings of all."""
    leaves = _own_leaves(spark, work, inputs)
    for frame in frames:
        leaves = leaves.union(frame_leaves(spark, work, frame, batch))
    return leaves


def _own_leaves(spark: SparkSession, work: RemoteQuery, inputs: Sequence[LeafInput]) -> DataFrame:
    """The leaves over rows that the driver holds, in one task per piece; a stream without rows gets
    a task too."""
    tasks: dict[int, list[dict[str, object]]] = defaultdict(list)
    for input in inputs:
        for task, (first, records) in enumerate(_pieces(input.records, work.places)):
            numbered = records.number is not None
            row = {"stream": input.stream, "first": input.first + first, "numbered": numbered}
            tasks[task].append({**row, "payload": _packed(records)})
    parts = [pa.RecordBatch.from_pylist(rows, LEAF_SCHEMA) for rows in tasks.values()]
    frame = frame_of(spark, pa.Table.from_batches(parts))  # one partition each
    return frame.mapInArrow(_leaf_task(work), SCHEMA)


def _pieces(records: Records, count: int) -> Iterator[tuple[int, Records]]:
    """Pieces of similar size; at least one, so that a task runs even without rows."""
    parts = max(1, min(count, len(records)))
    bounds = [len(records) * part // parts for part in range(parts + 1)]
    for first, stop in pairwise(bounds):
        yield first, records.slice(first, stop)


def _packed(records: Records) -> bytes:
    """Arrival numbers, if any, are the last column."""
    numbers = [] if records.number is None else [of_int64(records.number)]
    columns = [*records.columns, *numbers]
    return encoded(Batch.of(columns, records.start, records.end, records.weight))


def _leaf_task(work: RemoteQuery) -> Task:
    def task(records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for message in leaf_messages(work, _unpacked(records)):
            yield as_record([message])

    return task


def _unpacked(records: Iterable[pa.RecordBatch]) -> Iterator[LeafInput]:
    for record in records:
        *told, payloads = record.columns
        leaves = zip(*(column.to_pylist() for column in told), strict=True)
        for index, (stream, first, numbered) in enumerate(leaves):
            batch = decoded(payloads[index].as_buffer())
            columns = list(batch.columns)
            number = int64(columns.pop()) if numbered else None
            rows = Records(columns, batch.start, batch.end, batch.weight, number)
            yield LeafInput(stream, rows, first)
