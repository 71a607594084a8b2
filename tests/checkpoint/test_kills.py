"""A query that is killed again and again gives each row of its answer once.

The usual run kills a few times; MILLSTREAM_KILLS=30 kills so often.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

import millstream as ms
from checkpoint import killed_query
from checkpoint.killed_runs import elements, last_manifest
from effort import kills
from millstream.model.errors import QueryError

KILLS = kills(5)


def test_killed_again_and_again(tmp_path: Path) -> None:
    random = Random(KILLS)
    command = [sys.executable, killed_query.__file__, "local", str(tmp_path)]
    for _ in range(KILLS):
        before = last_manifest(tmp_path)
        process = subprocess.Popen(command)
        while process.poll() is None and last_manifest(tmp_path) == before:
            time.sleep(0.005)
        time.sleep(random.uniform(0, 0.1))
        process.kill()
        process.wait()
    subprocess.run(command, check=True)
    given = sorted(tmp_path.glob("*.parquet"), key=lambda path: int(path.stem))
    assert [int(path.stem) for path in given] == list(range(len(given)))
    assert len(given) > KILLS, "it is killed within its work"
    rows = [row for path in given for row in pq.read_table(path).to_pylist()]
    session = ms.Session(engine="local")
    session.source("slow", lambda factor: killed_query.rows(factor, 0))
    expected = session.sql(killed_query.SQL).run().to_pylist()
    assert elements(rows) == elements(expected)
    assert max(Counter(map(repr, rows)).values()) == 1


def test_two_at_once(tmp_path: Path) -> None:
    session = killed_query.session_of("local", 0.01)
    query = session.sql(killed_query.SQL)
    with query.start("noop", checkpoint=str(tmp_path)):
        other = killed_query.session_of("local", 0.01).sql(killed_query.SQL)
        with pytest.raises(ms.QueryError, match="is in use by another query"):
            other.start("noop", checkpoint=str(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT k FROM A WINDOW(RANGE 50)", "stream .B. was .* and is not read"),
        (killed_query.SQL.split(";")[-1].replace("50", "51"), "its plan has changed"),
    ],
)
def test_another_query(tmp_path: Path, text: str, message: str) -> None:
    session = killed_query.session_of("local", 0)
    session.sql(killed_query.SQL).start("noop", checkpoint=str(tmp_path)).wait()
    with pytest.raises(ms.QueryError, match=message):
        session.sql(text).start("noop", checkpoint=str(tmp_path))


def test_changed_function(tmp_path: Path) -> None:
    def start(function: object) -> None:
        session = ms.Session(engine="local")
        session.stream("S", [{"t": 1, "x": 1}], time="t")
        session.function("twice", function, returns="BIGINT")  # type: ignore[arg-type]
        query = session.sql("SELECT SUM(twice(x)) AS s FROM S WINDOW(RANGE 3)")
        query.start("noop", checkpoint=str(tmp_path)).wait()

    start(lambda x: x)
    start(lambda x: x)
    with pytest.raises(ms.QueryError, match='function "twice" or something it uses has changed'):
        start(lambda x: x.fill_null(0))


@pytest.mark.parametrize("at", [3, 100, 250])
def test_snapshot_while_it_runs(tmp_path: Path, at: int) -> None:
    session = killed_query.session_of("local", 0.01)
    query = session.sql(killed_query.SQL)
    with query.start(checkpoint=str(tmp_path)):
        found = query.snapshot(at, timeout=30)
    expected = killed_query.session_of("local", 0).sql(killed_query.SQL).snapshot(at)
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))


def test_a_snapshot_does_not_lack_what_was_answered_before(tmp_path: Path) -> None:
    """A query that goes on from its checkpoint has given rows that still hold, and has them not."""
    for rows in ([{"t": 1}, {"t": 2}], [{"t": 3}]):
        session = ms.Session("local")
        feed = session.feed("S", {"t": "BIGINT"}, time="t")
        query = session.sql("SELECT t FROM S WINDOW(RANGE 9) EMIT CHANGES")
        with query.start("noop", checkpoint=str(tmp_path), snapshots=True) as running:
            feed.send(rows)
            running.stop()
            if rows == [{"t": 3}]:
                with pytest.raises(QueryError, match="what it answered before"):
                    query.snapshot(2)
