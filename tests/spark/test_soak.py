"""A query that runs for long: memory, time a batch and the number of files stay where they are.

The usual run is short and looks at files; MILLSTREAM_SOAK=500 runs so many batches and looks at
memory and time as well.
"""

from __future__ import annotations

import os
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from benchmarks.spark.processes import KINDS, memory, processor_seconds

import millstream as ms
from spark.driven_query import answers, checkpoint, expected, run, session_of

pytestmark = pytest.mark.xdist_group("spark")

BATCHES = int(os.environ.get("MILLSTREAM_SOAK") or 20)
ROWS_A_BATCH = 100
LOOKS = 10  # at memory, during the run
FILES = 150
MEGABYTE = 1 << 20


def heap(session: ms.Session) -> int:
    """Bytes of the JVM that are in use after its collector has run."""
    jvm: Any = session.spark.sparkContext._jvm
    runtime = jvm.java.lang.Runtime.getRuntime()
    for _ in range(3):
        jvm.java.lang.System.gc()
        time.sleep(0.1)
    return int(runtime.totalMemory() - runtime.freeMemory())


def test_soak(tmp_path: Path) -> None:
    session = session_of("spark", rows=BATCHES * ROWS_A_BATCH)
    ends: list[float] = []
    files: list[int] = []
    used: list[dict[str, float]] = []

    def look(id: int) -> None:
        ends.append(sum(processor_seconds().values()))
        files.append(sum(1 for path in checkpoint(tmp_path).rglob("*") if path.is_file()))
        if BATCHES >= 100 and len(ends) % (BATCHES // LOOKS) == 0:
            now = memory()
            told = {kind: now[kind] / MEGABYTE for kind in KINDS if kind != "jvm"}
            used.append({**told, "heap": heap(session) / MEGABYTE})
            print(len(ends), files[-1], used[-1], flush=True)

    run(session, tmp_path, ROWS_A_BATCH, look)
    assert answers(tmp_path) == expected(BATCHES * ROWS_A_BATCH)
    assert len(ends) >= BATCHES
    assert max(files) < FILES
    seconds = [stop - start for start, stop in pairwise(ends)]
    if used:
        quarter = len(seconds) // 4
        early, late = median(seconds[quarter : 2 * quarter]), median(seconds[-quarter:])
        print("processor seconds a batch:", early, late)
        assert late < 1.3 * early
        for kind in ("driver", "keepers", "heap"):
            assert used[-1][kind] < 1.2 * used[LOOKS // 2][kind] + 20, kind
