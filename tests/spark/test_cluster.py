"""A query on a cluster: executors are processes of their own, and tasks that take long are started
a second time elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spark import driven_query
from spark.driven_query import ROWS, answers, expected

pytestmark = pytest.mark.xdist_group("spark")

TWO_EXECUTORS = "local-cluster[2, 1, 1024]"
HASTY = {
    "spark.speculation": "true",
    "spark.speculation.interval": "20ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "0ms",
}


def test_two_executors_and_tasks_that_are_started_twice(tmp_path: Path) -> None:
    settings = [f"{name}={value}" for name, value in HASTY.items()]
    program = [sys.executable, driven_query.__file__]
    arguments = [str(tmp_path), str(ROWS // 4), TWO_EXECUTORS, *settings]
    ended = subprocess.run([*program, *arguments], capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert answers(tmp_path) == expected()
