"""The leaves over rows that Spark reads: Millstream's tasks after a Spark scan.

If Spark can read the rows again (files) and the plan does not need all of them, there are three
scans instead of one: the rows and columns that the plan needs; late and bad rows with all columns,
for reporting; and the times of all other rows, which advance the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from millstream.fragments.messages import SCHEMA, Message, as_record
from millstream.fragments.reading import Reading, RemoteRows, read_messages, time_messages
from millstream.fragments.remote_query import RemoteQuery
from millstream.spark import native_intake
from millstream.spark.native_leaves import NativeLeaf
from millstream.spark.schemas import moved, typed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Task: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class SparkRows:
    """Rows in a DataFrame; with a `leaf` it can be read again and returns what the leaf selects."""

    frame: DataFrame
    leaf: NativeLeaf | None = None


def frame_leaves(
    spark: SparkSession, work: RemoteQuery, frame: RemoteRows, batch: int
) -> DataFrame:
    rows: SparkRows = frame.rows
    if rows.leaf is None:
        return rows.frame.mapInArrow(_task(_Read(work, frame.reading, batch)), SCHEMA)
    given = typed(moved(rows.frame, spark))
    in_time, apart = _conditions(frame.reading)
    wanted = rows.leaf.frame(given.where(in_time))
    times = given.where(in_time).selectExpr(f"{native_intake.start(rows.leaf.stream)} AS start")
    leaves = wanted.mapInArrow(_task(_Read(work, frame.reading, batch, told=False)), SCHEMA)
    others = given.where(apart).mapInArrow(_task(_Read(work, frame.reading, batch)), SCHEMA)
    return leaves.union(others).union(times.mapInArrow(_task(_Times(work, frame.reading)), SCHEMA))


def _conditions(reading: Reading) -> tuple[str, str]:
    """The condition for rows that enter the query, and the one for late and bad rows."""
    start, faulty = native_intake.start(reading.stream), native_intake.is_faulty(reading.stream)
    bounds, apart = [f"NOT ({faulty})"], [faulty]
    if reading.has_late:
        bounds.append(f"{start} >= {reading.frontier}L")
        apart.append(native_intake.is_before(reading.stream, reading.frontier))
    if reading.has_bound:
        bounds.append(f"{start} <= {reading.until}L")
    return " AND ".join(bounds), " OR ".join(apart)


@dataclass(frozen=True)
class _Read:
    """Runs rows through the leaves of the plan."""

    work: RemoteQuery
    reading: Reading
    batch: int
    told: bool = True

    def messages(self, records: Iterable[pa.RecordBatch]) -> Iterator[Message]:
        from pyspark import TaskContext

        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        first = (self.batch << 40) + (part << 20)
        return read_messages(self.work, self.reading, records, first, self.told)


@dataclass(frozen=True)
class _Times:
    """Reports the times of rows."""

    work: RemoteQuery
    reading: Reading

    def messages(self, records: Iterable[pa.RecordBatch]) -> Iterator[Message]:
        return time_messages(self.work, self.reading, records)


def _task(reader: _Read | _Times) -> Task:
    def task(records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for message in reader.messages(records):
            yield as_record([message])

    return task
