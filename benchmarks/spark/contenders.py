"""The contenders: Millstream on Spark, and Spark's own operators with either of its state stores.

Each runs a query over files of one batch each, with a sink that does nothing, and reports how long
its batches took once it was warm.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow.parquet as pq

import millstream as ms
from benchmarks.spark.processes import processor_seconds
from benchmarks.spark.workloads import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OnWarm = Callable[[], None]

_LOOK = 0.005  # seconds between two checks of a query's progress
_ROWS = "ts TIMESTAMP, k BIGINT, v BIGINT"
_STORES = "org.apache.spark.sql.execution.streaming.state"


def spark_session(cores: int = 2) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("benchmarks")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@dataclass
class Measured:
    """`batches` measured batches of `rows` rows: the wall time of each, and the processor time of
    all."""

    rows: int
    seconds: list[float] = field(default_factory=list)
    processors: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Measured) -> Measured:
        seconds, processors = self.seconds + other.seconds, self.processors + other.processors
        return Measured(self.rows, seconds, processors)

    @property
    def batches(self) -> int:
        return len(self.seconds)

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows * self.batches / sum(self.seconds)

    @property
    def processor_rate(self) -> float:
        """Rows per second of processor time."""
        return self.rows * self.batches / sum(self.processors.values())


class Contender(Protocol):
    name: str

    def run(
        self, workload: Workload, files: Path, warm: int, on_warm: OnWarm = lambda: None
    ) -> Measured:
        """The workload over all files; the first `warm` batches are not measured."""


@contextmanager
def _folder() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="millstream-bench-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def file_rows(files: Path, workload: Workload) -> tuple[int, int]:
    """How many batches there are, and how many rows one has of all streams."""
    paths = sorted((files / workload.streams[0]).glob("*.parquet"))
    return len(paths), pq.read_metadata(paths[0]).num_rows * len(workload.streams)


def read(spark: SparkSession, folder: Path) -> DataFrame:
    """A stream of files, one after the other."""
    return spark.readStream.schema(_ROWS).option("maxFilesPerTrigger", 1).parquet(str(folder))


# --- Spark's own ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class SparksOwn:
    spark: SparkSession
    name: str
    settings: dict[str, str]

    def run(
        self, workload: Workload, files: Path, warm: int, on_warm: OnWarm = lambda: None
    ) -> Measured:
        _, rows = file_rows(files, workload)
        with _folder() as checkpoint:
            query = self.query(workload, files, checkpoint)
            while query.isActive and len(query.recentProgress) < warm:
                time.sleep(_LOOK)
            on_warm()
            before, first = processor_seconds(), len(query.recentProgress)
            query.awaitTermination()
            used = processor_seconds() - before
            ends = [_end(p) for p in query.recentProgress if p["numInputRows"]]
        seconds = [stop - start for start, stop in pairwise(ends[warm - 1 :])]
        share = len(seconds) / max(1, len(ends) - first)  # correction if the first check was late
        return Measured(rows, seconds, Counter({k: v * share for k, v in used.items()}))

    def query(self, workload: Workload, files: Path, checkpoint: str) -> Any:
        for name, value in self.settings.items():
            self.spark.conf.set(name, value)
        answer = workload.own({name: read(self.spark, files / name) for name in workload.streams})
        writer = answer.writeStream.format("noop").outputMode("append")
        return writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()

    def refusal(self, workload: Workload, files: Path) -> str:
        """The first line of Spark's error for a query that it does not run on streams."""
        from pyspark.errors import PySparkException

        with _folder() as checkpoint:
            try:
                self.query(workload, files, checkpoint).awaitTermination()
            except PySparkException as error:
                return next(line for line in str(error).splitlines() if line.strip())
        return "it runs"


def _end(progress: Any) -> float:
    """When a batch was over."""
    began = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00"))
    return began.timestamp() + progress["durationMs"]["triggerExecution"] / 1000


def default_store(spark: SparkSession) -> SparksOwn:
    provider = f"{_STORES}.HDFSBackedStateStoreProvider"
    settings = {"spark.sql.streaming.stateStore.providerClass": provider}
    return SparksOwn(spark, "Spark, default store", settings)


def rocksdb_store(spark: SparkSession) -> SparksOwn:
    """With its log of changes, which is faster."""
    settings = {
        "spark.sql.streaming.stateStore.providerClass": f"{_STORES}.RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }
    return SparksOwn(spark, "Spark, RocksDB store", settings)


# --- Millstream -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Millstream:
    """`durable`: with a checkpoint synced to disk; otherwise nothing is synced."""

    spark: SparkSession
    durable: bool = True

    @property
    def name(self) -> str:
        return "Millstream" if self.durable else "Millstream, nothing forced to disk"

    def run(
        self, workload: Workload, files: Path, warm: int, on_warm: OnWarm = lambda: None
    ) -> Measured:
        count, rows = file_rows(files, workload)
        with _folder() as checkpoint:
            running = self.start(workload, files, checkpoint if self.durable else None)
            ends: list[float] = []
            before: Counter[str] = Counter()
            while len(ends) < count:
                over = running.wait(_LOOK)
                if running.progress.rows_in >= rows * (len(ends) + 1):
                    ends.append(time.monotonic())
                    if len(ends) == warm:
                        on_warm()
                        before = processor_seconds()
                elif over:
                    break
            used = processor_seconds() - before
            running.stop()
        return Measured(rows, [stop - start for start, stop in pairwise(ends[warm - 1 :])], used)

    def start(self, workload: Workload, files: Path, checkpoint: str | None) -> Any:
        session = ms.Session(engine="spark", spark=self.spark)
        for name in workload.streams:
            session.stream(name, read(self.spark, files / name), time="ts")
        query = session.sql(workload.sql)
        return query.start("noop", checkpoint=checkpoint, trigger="available_now")
