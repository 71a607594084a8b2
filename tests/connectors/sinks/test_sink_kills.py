"""However often a query is killed, its sink has each row of the answer once.

The usual run kills a few times; MILLSTREAM_KILLS=30 kills so often.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.dataset
import pytest

import millstream as ms
from checkpoint import killed_query
from checkpoint.killed_runs import elements, last_manifest
from connectors.sinks import killed_insert
from effort import kills
from millstream.fragments.remote import RemoteExecutor
from millstream.runtime import rounds

POSTGRES = pytest.mark.xdist_group("postgres")

KILLS = kills(3)


def killed(folder: Path, *arguments: str) -> None:
    """Start the query and kill it, again and again; then let it come to its end."""
    random = Random(KILLS)
    command = [sys.executable, killed_insert.__file__, str(folder), *arguments]
    tests = str(Path(killed_query.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, *sys.path])}
    for _ in range(KILLS):
        before = last_manifest(folder)
        process = subprocess.Popen(command, env=environment)
        while process.poll() is None and last_manifest(folder) == before:
            time.sleep(0.005)
        time.sleep(random.uniform(0, 0.1))
        process.kill()
        process.wait()
    subprocess.run(command, check=True, env=environment)


def check(rows: list[dict[str, Any]]) -> None:
    session = ms.Session(engine="local")
    session.source("slow", lambda factor: killed_query.rows(factor, 0))
    expected = session.sql(killed_query.SQL).run().to_pylist()
    assert elements(rows) == elements(expected)
    assert max(Counter(map(repr, rows)).values()) == 1


def test_folder(tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    killed(tmp_path, "parquet", f"path={answers}")
    assert all(name.startswith(("batch-", "_")) for name in os.listdir(answers))
    assert len(os.listdir(answers)) > KILLS, "it is killed within its work"
    check(pyarrow.dataset.dataset(answers).to_table().to_pylist())


@POSTGRES
def test_postgres(url: str, tmp_path: Path) -> None:
    import psycopg
    from psycopg.rows import dict_row

    killed(tmp_path, "postgres", f"url={url}", "table=answers")
    with psycopg.connect(url, row_factory=dict_row) as database:
        check(database.execute("SELECT * FROM answers").fetchall())


@pytest.mark.parametrize("kind", ["parquet", pytest.param("postgres", marks=POSTGRES)])
def test_every_batch_is_given_twice(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst that can be: again and again all is lost after the sink has its batch, and before
    that is noted."""
    sink = ms.sink("parquet", path=str(tmp_path / "answers"))
    if kind == "postgres":
        sink = ms.sink("postgres", url=request.getfixturevalue("url"), table="answers")
    session = ms.Session()
    session.stream("S", [{"t": i, "x": i % 3} for i in range(100_000)], time="t")
    query = session.sql("SELECT x, COUNT(*) AS n FROM S WINDOW(RANGE 9) GROUP BY x")
    delivered, notes = RemoteExecutor.delivered, [0]

    def lost(self: RemoteExecutor) -> None:
        """What a new start delivers again is noted, what follows is not."""
        notes.append(notes.pop() + 1)
        if notes[0] == 2:
            raise ConnectionAbortedError
        delivered(self)

    monkeypatch.setattr(RemoteExecutor, "delivered", lost)
    monkeypatch.setattr(rounds, "ROUND_ROWS", 1)  # so that there are several batches
    attempts = 0
    while attempts < 50:
        attempts, notes[0] = attempts + 1, 0
        running = query.start(sink, checkpoint=str(tmp_path / "checkpoint"))
        assert running._worker.done.wait(60)
        if running.exception is None:
            break
        assert isinstance(running.exception.__cause__, ConnectionAbortedError)
    assert 3 < attempts < 50
    if kind == "parquet":
        found = pyarrow.dataset.dataset(tmp_path / "answers").to_table().num_rows
    else:
        import psycopg

        with psycopg.connect(request.getfixturevalue("url")) as database:
            (found,) = database.execute("SELECT count(*) FROM answers").fetchone() or (0,)
    assert found == query.run().num_rows
