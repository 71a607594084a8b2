"""The workloads: a query for Millstream, the same with Spark's own operators, and the bound.

Spark emits rows of hopping windows once they are over; Millstream emits changes of the answer. Both
agree at every instant at which a window ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Frames = Mapping[str, DataFrame]
    Own = Callable[[Frames], DataFrame]

WINDOW = "10 seconds"


def _join(frames: Frames) -> DataFrame:
    from pyspark.sql import functions as f

    a, b = (frames[name].withWatermark("ts", "0 seconds").alias(name.lower()) for name in "AB")
    near = f.expr("a.ts > b.ts - INTERVAL 10 SECONDS AND a.ts < b.ts + INTERVAL 10 SECONDS")
    met = a.join(b, (f.col("a.k") == f.col("b.k")) & near)
    return met.select("a.k", f.col("a.v").alias("av"), f.col("b.v").alias("bv"))


def _hopping(frames: Frames) -> DataFrame:
    from pyspark.sql import functions as f

    stream = frames["A"].withWatermark("ts", "0 seconds")
    groups = stream.groupBy(f.window("ts", WINDOW, "1 second"), "k")
    return groups.agg(f.count("*").alias("n"), f.max("v").alias("m"))


def _distinct(frames: Frames) -> DataFrame:
    frames["A"].createOrReplaceTempView("A")
    return frames["A"].sparkSession.sql("SELECT DISTINCT k FROM A")


def _except(frames: Frames) -> DataFrame:
    return frames["A"].select("k").exceptAll(frames["B"].select("k"))


def _last_rows(frames: Frames) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    last = Window.partitionBy("k").orderBy("ts").rowsBetween(-9, 0)
    return frames["A"].select("k", f.sum("v").over(last).alias("s"))


@dataclass(frozen=True)
class Workload:
    """`times`: how many times faster than the better of Spark's two; `rate`: rows per second, if
    Spark refuses `own`."""

    name: str
    title: str
    streams: str
    sql: str
    own: Own
    times: float = 0.0
    rate: float = 0.0


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(
            "join",
            "window equi-join, 10,000 keys, windows of 10 s",
            "AB",
            "SELECT a.k, a.v AS av, b.v AS bv FROM A WINDOW(RANGE 10 SECONDS) a "
            "JOIN B WINDOW(RANGE 10 SECONDS) b ON a.k = b.k",
            _join,
            times=6.0,
        ),
        Workload(
            "hopping",
            "COUNT and MAX by key, RANGE 10 SECONDS SLIDE 1 SECOND",
            "A",
            "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM A WINDOW(RANGE 10 SECONDS SLIDE 1 SECOND) "
            "GROUP BY k",
            _hopping,
            times=3.0,
        ),
        Workload(
            "distinct",
            "DISTINCT over 10 s",
            "A",
            "SELECT DISTINCT k FROM A WINDOW(RANGE 10 SECONDS)",
            _distinct,
            rate=400_000.0,
        ),
        Workload(
            "except",
            "EXCEPT of two streams over 10 s",
            "AB",
            "SELECT k FROM A WINDOW(RANGE 10 SECONDS) EXCEPT SELECT k FROM B "
            "WINDOW(RANGE 10 SECONDS)",
            _except,
            rate=400_000.0,
        ),
        Workload(
            "rows",
            "SUM of the last 10 rows of each key",
            "A",
            "SELECT k, SUM(v) AS s FROM A WINDOW(PARTITION BY k ROWS 10) GROUP BY k",
            _last_rows,
            rate=400_000.0,
        ),
    )
}
