"""A batch as one Spark job: the leaves, then level after level; the driver collects messages."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.checkpoint.files import Files
from millstream.checkpoint.manifest import ShardState
from millstream.checkpoint.records import Ref
from millstream.logical.elements import Row
from millstream.physical.batch import NEVER, Batch, merged
from millstream.records import Records
from millstream.spark.fragments import ANSWER
from millstream.spark.payload import decoded, encoded
from millstream.spark.shard import leaf_frontiers
from millstream.spark.tasks import (
    SCHEMA,
    Kind,
    LeafInput,
    Message,
    Span,
    Step,
    Task,
    Transient,
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
    """What a batch gave: the answer, as bytes or where it lies; errors, the states of shards, and
    how far it came."""

    def __init__(self, work: Work, step: Step, messages: Iterable[Message]) -> None:
        self.inline: list[bytes] = []
        self.staged: list[Ref] = []
        self.states: dict[tuple[int, int], ShardState] = {}
        self.errors: dict[tuple[Row, str], None] = {}
        self._types = work.answer_types
        spans: list[Mapping[str, Span]] = []
        frontiers: list[int] = []
        for message in messages:
            match message.kind:
                case Kind.ELEMENTS:
                    self.inline.append(message.payload)
                case Kind.STAGED:
                    self.staged.append(pickle.loads(message.payload))
                case Kind.STATE:
                    self.states[message.number, message.shard] = pickle.loads(message.payload)
                case Kind.SOURCES:
                    spans.append(pickle.loads(message.payload))
                case Kind.FRONTIER:
                    frontiers.append(pickle.loads(message.payload))
                case Kind.ERRORS:
                    self.errors |= dict.fromkeys(pickle.loads(message.payload))
        self.present = step.present(joined_spans(spans))
        if frontiers:
            self.frontier = min(frontiers)
        else:  # nothing but leaves
            self.frontier = leaf_frontiers(work.leaves, self.present.sources)[ANSWER]

    def answer(self, files: Files | None = None) -> Batch:
        """The elements of the answer, read from where they lie."""
        payloads = list(self.inline)
        if files is not None:
            payloads += [ref.read(files) for ref in self.staged]
        nothing = Batch.empty(self._types, NEVER)
        return merged([nothing, *map(decoded, payloads)]).up_to(self.frontier)


def run_batch(work: Work, step: Step, leaves: DataFrame) -> Outcome:
    """Run the fragments over what the leaves give; nothing is kept."""
    frame = leaves
    for level in range(1, work.last_level + 1):
        placed = frame.repartitionById(work.places, frame["place"])
        frame = placed.mapInArrow(level_task(work, level, step, Transient(work)), SCHEMA)
    return Outcome(work, step, collected(frame))


def collected(frame: DataFrame) -> Iterator[Message]:
    """The one action of a batch."""
    return (_message(row) for row in frame.collect())


def _message(row: Any) -> Message:
    return Message(row.place, row.level, Kind(row.kind), row.number, row.shard, bytes(row.payload))


def leaves_of(spark: SparkSession, work: Work, inputs: Sequence[LeafInput]) -> DataFrame:
    """What follows from rows that the driver has, in tasks over pieces of them."""
    rows = [
        {"stream": input.stream, "first": input.first + first, "payload": _packed(records)}
        for input in inputs
        for first, records in _pieces(input.records, work.places)
    ]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, LEAF_SCHEMA))
    return frame.repartition(max(1, min(work.places, len(rows)))).mapInArrow(
        _leaf_task(work), SCHEMA
    )


def _pieces(records: Records, count: int) -> Iterator[tuple[int, Records]]:
    """In parts of like size; also of nothing there is one, so that a task sees it."""
    parts = max(1, min(count, len(records)))
    bounds = [len(records) * part // parts for part in range(parts + 1)]
    for first, stop in pairwise(bounds):
        yield first, records.slice(first, stop)


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
