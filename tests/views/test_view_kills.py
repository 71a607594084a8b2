"""A view that is killed again and again has each change once, and what it retains.

The usual run kills a few times; MILLSTREAM_KILLS=30 kills so often.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from random import Random

import duckdb
import killed_view

import millstream as ms
from effort import kills

KILLS = kills(5)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("view/rows/*.parquet")}


def test_killed_again_and_again(tmp_path: Path) -> None:
    random = Random(KILLS)
    command = [sys.executable, killed_view.__file__, str(tmp_path)]
    for _ in range(KILLS):
        before = files(tmp_path)
        process = subprocess.Popen(command)
        while process.poll() is None and files(tmp_path) == before:
            time.sleep(0.005)
        time.sleep(random.uniform(0, 0.2))
        assert process.poll() is None, "it is killed within its work"
        process.kill()
        process.wait()
    view = killed_view.view_of(tmp_path, 0, killed_view.TRANSFERS)
    assert view.wait(120)
    session = ms.Session(engine="local")
    session.stream("Transfer", list(killed_view.rows(0, killed_view.TRANSFERS)), time="t")
    asked = session.sql(killed_view.QUERY)
    last = killed_view.TRANSFERS - 1
    for at in range(last + 1 - killed_view.RETAIN, last + 1, 50):
        assert view.as_of(at).equals(asked.snapshot(at)), at
    with duckdb.connect(str(tmp_path / "balances.duckdb"), read_only=True) as connection:
        kept = connection.execute("SELECT account, balance FROM balances").fetchall()
    assert len(kept) == 60
    assert sorted(kept) == sorted(tuple(row.values()) for row in view.table().to_pylist())
