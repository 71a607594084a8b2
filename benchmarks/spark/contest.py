"""Runs all contenders of a workload in turn: first each finds its best batch size, then it is
measured."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.spark.contenders import (
    Contender,
    Measured,
    Millstream,
    default_store,
    rocksdb_store,
)
from benchmarks.spark.data import make_streams
from benchmarks.spark.workloads import Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Extent:
    """The extent of a measurement: batches per round, after some for warm-up; the batch sizes, in
    rows of one stream, among which each contender finds its best."""

    own_sizes: tuple[int, ...] = (25_000, 100_000, 400_000)
    sizes: tuple[int, ...] = (100_000, 400_000, 1_000_000)
    rounds: int = 2
    warm: int = 3
    batches: int = 10
    tried: int = 2  # batches per size, to find the best


QUICK = Extent(own_sizes=(20_000,), sizes=(200_000,), rounds=1, warm=2, batches=3)


@dataclass(frozen=True)
class Entry:
    name: str
    size: int
    measured: Measured


@dataclass(frozen=True)
class Result:
    """Millstream's entry is the first, then without durability, then Spark's own or its refusal."""

    workload: Workload
    entries: list[Entry]
    refusal: str | None = None

    @property
    def rate(self) -> float:
        return self.entries[0].measured.rate

    @property
    def durability(self) -> float:
        """Its share of the time."""
        return max(0.0, 1 - self.rate / self.entries[1].measured.rate)

    def times(self, rate: Callable[[Measured], float]) -> float | None:
        """How many times faster Millstream is than the better of Spark's two."""
        own = [rate(entry.measured) for entry in self.entries[2:]]
        return rate(self.entries[0].measured) / max(own) if own else None

    @property
    def holds(self) -> bool:
        times = self.times(lambda measured: measured.rate)
        if times is None:
            return self.rate >= self.workload.rate
        return times >= self.workload.times


@contextmanager
def streams(workload: Workload, size: int, files: int) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="millstream-bench-"))
    try:
        yield make_streams(folder / "streams", workload.streams, size, files)
    finally:
        shutil.rmtree(folder)


def contest(spark: SparkSession, workload: Workload, extent: Extent) -> Result:
    ours = [Millstream(spark), Millstream(spark, durable=False)]
    own = [default_store(spark), rocksdb_store(spark)]
    if workload.rate:
        with streams(workload, 1_000, 1) as files:
            refusal = own[0].refusal(workload, files)
        return Result(workload, _entries(workload, ours, [], extent), refusal)
    return Result(workload, _entries(workload, ours, own, extent))


def _entries(
    workload: Workload, ours: Sequence[Contender], own: Sequence[Contender], extent: Extent
) -> list[Entry]:
    size = _best_size(workload, ours[0], extent.sizes, extent)
    sizes = [size for _ in ours]
    sizes += [_best_size(workload, contender, extent.own_sizes, extent) for contender in own]
    found: dict[str, Measured] = {}
    for _ in range(extent.rounds):
        for contender, size in zip([*ours, *own], sizes, strict=True):
            with streams(workload, size, extent.warm + extent.batches) as files:
                measured = contender.run(workload, files, extent.warm)
            known = found.get(contender.name)
            found[contender.name] = measured if known is None else known + measured
    return [Entry(name, size, found[name]) for name, size in zip(found, sizes, strict=True)]


def _best_size(
    workload: Workload, contender: Contender, sizes: Sequence[int], extent: Extent
) -> int:
    """Tries larger sizes as long as they are better."""
    best, best_rate = sizes[0], 0.0
    for size in sizes if len(sizes) > 1 else ():
        with streams(workload, size, extent.tried + 2) as files:
            rate = contender.run(workload, files, warm=2).rate
        if rate < best_rate:
            break
        best, best_rate = size, rate
    return best
