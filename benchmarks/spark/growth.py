"""The cost of a batch depends on its rows, not on the state: the same batches over windows that are
16 times as long, whose rows join with the same ones."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.spark.contenders import Measured, Millstream
from benchmarks.spark.data import STEP, Shape, make_streams
from benchmarks.spark.workloads import Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMES = 16
BOUND = 1.5
ROWS = 20_000  # of a stream per batch, and in the shorter window
NEAR = Shape(keys=1_000, drift=True)

_QUERIES = {
    "join": (
        "AB",
        "SELECT a.k, a.v AS av, b.v AS bv FROM A WINDOW(RANGE {w} MICROSECONDS) a "
        "JOIN B WINDOW(RANGE {w} MICROSECONDS) b ON a.k = b.k",
    ),
    "COUNT and MAX": (
        "A",
        "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM A WINDOW(RANGE {w} MICROSECONDS) GROUP BY k",
    ),
}


def report(spark: SparkSession, quick: bool) -> bool:
    """Print the results; returns whether the bound holds."""
    batches = TIMES if quick else 3 * TIMES
    print(
        f"A batch of {ROWS:,} rows of a stream, and windows of {ROWS:,} and {TIMES} times as many"
    )
    print(f"  {'':16}{'processor seconds':>20}{f'{TIMES} ×':>8}{'ratio':>8}{'bound':>8}")
    held = True
    for name, (streams, sql) in _QUERIES.items():
        small, large = (_measured(spark, streams, sql, times, batches) for times in (1, TIMES))
        ratio = large / small
        held &= ratio <= BOUND
        word = "" if ratio <= BOUND else "  MISSED"
        print(f"  {name:16}{small:>20.3f}{large:>8.3f}{ratio:>8.2f}{BOUND:>8}{word}", flush=True)
    return held


def _measured(spark: SparkSession, streams: str, sql: str, times: int, batches: int) -> float:
    """Processor seconds per batch once all windows are full."""
    window = sql.format(w=times * ROWS * STEP)
    workload = Workload("growth", "", streams, window, lambda frames: frames["A"])
    folder = Path(tempfile.mkdtemp(prefix="millstream-bench-"))
    try:
        files = make_streams(folder / "streams", streams, ROWS, TIMES + 2 + batches, NEAR)
        measured: Measured = Millstream(spark).run(workload, files, warm=TIMES + 2)
    finally:
        shutil.rmtree(folder)
    return sum(measured.processors.values()) / measured.batches
