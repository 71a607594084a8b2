"""Measures the time from the start of a program to the end of its first batch."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.spark.contenders import Millstream, default_store, rocksdb_store, spark_session
from benchmarks.spark.contest import streams
from benchmarks.spark.workloads import WORKLOADS

CONTENDERS = {"millstream": Millstream, "default": default_store, "rocksdb": rocksdb_store}
_ROWS = 10_000


def report() -> None:
    print(
        f"From the start of a program to the answer of a first batch of {2 * _ROWS:,} rows (join)"
    )
    with streams(WORKLOADS["join"], _ROWS, 2) as files:
        for name in CONTENDERS:
            command = [sys.executable, "-m", "benchmarks.spark.first", name, str(files)]
            began = time.time()
            told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            print(f"  {name:12}{float(told.split()[-1]) - began:>8.1f} s", flush=True)


def main(name: str, files: Path) -> None:
    """Print when the first of two batches was complete."""
    contender = CONTENDERS[name](spark_session())
    contender.run(WORKLOADS["join"], files, warm=1, on_warm=lambda: print(time.time(), flush=True))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
