"""A batch as one Spark job: the leaves, then level after level; the driver collects messages."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.logical.elements import Row
from millstream.physical.batch import NEVER, Batch, merged
from millstream.records import Records
from millstream.spark.fragments import Fragment
from millstream.spark.payload import decoded, encoded
from millstream.spark.shard import Present, Shard
from millstream.spark.tasks import (
    SCHEMA,
    Kind,
    LeafInput,
    Message,
    Span,
    Step,
    Task,
    Work,
    as_record,
    joined_spans,
    leaf_messages,
    level_task,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEAF_SCHEMA = pa.schema([("stream", pa.string()), ("first", pa.int64()), ("payload", pa.binary())])


class Outcome:
    """What a batch gave: elements of the answer, errors, and how far it came."""

    def __init__(self, work: Work, step: Step, messages: Iterable[Message]) -> None:
        types = work.answer_types
        batches = [Batch.empty(types, NEVER)]
        spans: list[Mapping[str, Span]] = []
        self.errors: dict[tuple[Row, str], None] = {}
        frontiers: list[int] = []
        for message in messages:
            match message.kind:
                case Kind.ELEMENTS:
                    batches.append(decoded(message.payload))
                case Kind.SOURCES:
                    spans.append(pickle.loads(message.payload))
                case Kind.FRONTIER:
                    frontiers.append(pickle.loads(message.payload))
                case Kind.ERRORS:
                    self.errors |= dict.fromkeys(pickle.loads(message.payload))
        self.present: Present = step.present(joined_spans(spans))
        self.answer = merged(batches).up_to(min(frontiers, default=NEVER))


def run_batch(spark: SparkSession, work: Work, step: Step, leaves: DataFrame) -> Outcome:
    """Run the fragments over what the leaves give."""
    frame = leaves
    for level in range(1, work.last_level + 1):
        placed = frame.repartitionById(work.places, frame["place"])
        frame = placed.mapInArrow(level_task(work, level, step, _Anew(work)), SCHEMA)
    rows = frame.collect()
    return Outcome(work, step, (_message(row) for row in rows))


class _Anew:
    """Shards that are opened for one batch, which is all there is."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __call__(self, fragment: Fragment, shard: int) -> Shard:
        return Shard(fragment, self._work.context())


def _message(row: Any) -> Message:
    return Message(row.place, row.level, Kind(row.kind), row.number, row.shard, bytes(row.payload))


def leaves_of(
    spark: SparkSession, work: Work, inputs: Mapping[str, Records], pieces: int
) -> DataFrame:
    """Rows that the driver has, cut into pieces for the tasks of the leaves."""
    rows = [
        {"stream": stream, "first": first, "payload": _packed(records.slice(first, stop))}
        for stream, records in inputs.items()
        for first, stop in _cuts(len(records), pieces)
    ]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, LEAF_SCHEMA))
    return frame.repartition(min(pieces, len(rows))).mapInArrow(_leaf_task(work), SCHEMA)


def _cuts(length: int, pieces: int) -> Sequence[tuple[int, int]]:
    bounds = [length * piece // pieces for piece in range(pieces + 1)]
    return [cut for cut in pairwise(bounds) if cut[0] < cut[1]] or [(0, 0)]


def _packed(records: Records) -> bytes:
    return encoded(Batch.of(records.columns, records.start, records.end))


def _leaf_task(work: Work) -> Task:
    def task(records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for message in leaf_messages(work, _unpacked(records)):
            yield as_record([message])

    return task


def _unpacked(records: Iterable[pa.RecordBatch]) -> Iterator[LeafInput]:
    for record in records:
        streams, firsts = record.column(0).to_pylist(), record.column(1).to_pylist()
        for index, (stream, first) in enumerate(zip(streams, firsts, strict=True)):
            batch = decoded(record.column(2)[index].as_buffer())
            yield LeafInput(stream, Records(list(batch.columns), batch.start, batch.end), first)
