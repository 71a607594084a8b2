"""Changes of a table survive those who made them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from random import Random

import killed_table
import pyarrow.parquet as pq

KILLS = 4


def last_manifest(folder: Path) -> str:
    return max((path.name for path in folder.glob("checkpoint/manifests/*")), default="")


def test_killed_while_a_table_changes(tmp_path: Path) -> None:
    """Each row looks up one version, no earlier one than the row before it, and keeps it."""
    random = Random(KILLS)
    command = [sys.executable, killed_table.__file__, str(tmp_path)]
    for _ in range(KILLS):
        before = last_manifest(tmp_path)
        process = subprocess.Popen(command)
        while process.poll() is None and last_manifest(tmp_path) == before:
            time.sleep(0.005)
        time.sleep(random.uniform(0, 0.2))
        process.kill()
        process.wait()
    subprocess.run(command, check=True)
    given = sorted(tmp_path.glob("*.parquet"), key=lambda path: int(path.stem))
    assert [int(path.stem) for path in given] == list(range(len(given)))
    rows = sorted(
        (row["t"], row["version"], row["valid_from"], row["valid_to"])
        for path in given
        for row in pq.read_table(path).to_pylist()
    )
    assert [row[0] for row in rows] == list(range(killed_table.ROWS))
    assert [row[2:] for row in rows] == [(t, t + 50) for t, *_ in rows]
    versions = [row[1] for row in rows]
    assert versions == sorted(versions)
    assert len({*versions}) > KILLS, "it changes within its work"
