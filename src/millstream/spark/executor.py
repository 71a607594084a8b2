"""Runs the tasks of batches as Spark jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.checkpoint.files import CheckpointError, LocalFiles
from millstream.fragments.keeping import Order
from millstream.fragments.messages import Message
from millstream.fragments.reading import RemoteRows
from millstream.fragments.remote_query import RemoteQuery
from millstream.fragments.tasks import LeafInput
from millstream.spark.job import collected, leaves_of
from millstream.spark.keepers import KeptQuery, kept_task, stop_keepers
from millstream.spark.starting import for_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROBE = "probe"  # a file that every machine must see


@dataclass
class OnSpark:
    """A Spark job per batch, whose tasks call the keepers of their places."""

    spark: SparkSession
    query: KeptQuery

    def run(
        self, order: Order, inputs: Sequence[LeafInput], frames: Sequence[RemoteRows] = ()
    ) -> Iterable[Message]:
        work = self.query.work
        frame = leaves_of(self.spark, work, inputs, frames, order.batch)
        for level in range(1, work.last_level + 1):
            placed = frame.repartitionById(work.places, frame["place"])
            frame = placed.mapInArrow(kept_task(self.query, level, order), frame.schema)
        return collected(frame)

    @staticmethod
    def opened(spark: SparkSession, work: RemoteQuery, files: LocalFiles) -> OnSpark:
        _check_shared(spark, files)
        return OnSpark(
            for_batches(spark), KeptQuery.new(work, str(files.root.resolve()), files.durable)
        )

    def close(self) -> None:
        stop_keepers(self.query)


def _check_shared(spark: SparkSession, files: LocalFiles) -> None:
    """Check that executors on other machines see the folder of the state."""
    context = spark.sparkContext
    if (context.master or "").startswith("local["):
        return
    folder = files.root.resolve()
    files.replace(_PROBE, b"")

    def is_there(_: int) -> bool:
        return (folder / _PROBE).exists()

    tasks = context.defaultParallelism
    if not all(context.parallelize(range(tasks), tasks).map(is_there).collect()):
        raise CheckpointError(
            f'the folder "{folder}" is not the same on all machines of the Spark cluster',
            help="pass checkpoint= a folder that all of them share",
        )
