"""Streams whose rows the driver never sees: batches are handed over, answered, and let go, whatever
ends in between."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import millstream as ms
from fragments.handed_batches import DELAY, TEXT, Handing, batches, session_of, table
from millstream.fragments.remote_input import RemoteInput


def expected() -> pa.Table:
    session = ms.Session(engine="local")
    for name in ("A", "B"):
        session.stream(name, table(name), time="t")
    return session.sql(TEXT).run()


def changes(tables: list[pa.Table]) -> dict[tuple[Any, ...], int]:
    """How often each row comes or goes at each instant."""
    found: dict[tuple[Any, ...], int] = {}
    for row in (row for each in tables for row in each.to_pylist()):
        key = row["at"], row["k"], row["n"], row["s"]
        found[key] = found.get(key, 0) + row["change"]
    return {key: change for key, change in found.items() if change}


class Crash(Exception):
    pass


@pytest.mark.parametrize("seed", range(12))
def test_any_cut_and_any_end_between(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    origins = {name: Handing(batches(table(name), chance)) for name in ("A", "B")}
    given: dict[int, pa.Table] = {}
    for patience in [chance.randrange(4) for _ in range(chance.randrange(4))] + [None]:
        left = patience

        def sink(answer: pa.Table, batch: Any) -> None:
            nonlocal left
            if left == 0:
                raise Crash
            left = None if left is None else left - 1
            given[batch.id] = answer

        running = session_of(origins).sql(TEXT).start(sink, checkpoint=str(tmp_path))
        with suppress(ms.QueryError):
            assert running.wait(60)
        assert running.exception is None or "the sink failed" in str(running.exception)
    assert changes(list(given.values())) == changes([expected()])


def test_what_is_available_now(tmp_path: Path) -> None:
    """Nothing is final that a later row could change; another start goes on."""
    rows = table("A")
    origin = Handing([rows.slice(0, 60)], ends=False)
    text = "SELECT COUNT(*) AS n FROM A WINDOW(RANGE 5)"
    running = session_of({"A": origin}).sql(text).start(checkpoint=str(tmp_path))
    assert running.wait(60)
    latest = max(rows.slice(0, 60).column("t").to_pylist())
    assert running.frontier == latest - DELAY
    origin = Handing([rows.slice(0, 60), rows.slice(60)])
    running = session_of({"A": origin}).sql(text).start(checkpoint=str(tmp_path))
    assert running.wait(60)
    assert running.progress.rows_in == len(rows)


def test_late_and_unreadable_rows(tmp_path: Path) -> None:
    early = pa.table({"t": [10, None, 20], "k": [1, 2, 3], "v": [0, 0, 0]})
    late = pa.table({"t": [5, 21], "k": [4, 5], "v": [0, 0]})
    session = session_of({"A": Handing([early, late])}, delay=0)
    query = session.sql("SELECT k, COUNT(*) AS n FROM A WINDOW(RANGE 5) GROUP BY k")
    running = query.start(checkpoint=str(tmp_path))
    assert running.wait(60)
    assert running.late["A"].to_pylist() == [{"t": 5, "k": 4, "v": 0}]
    assert [str(e) for e in running.errors] == [
        'query "query_1", stream "A", row (None, 2, 0): the time column "t" is NULL'
    ]
    source = running.metrics.sources["A"]
    assert (source.rows, source.late, source.errors) == (5, 1, 1)


def test_a_source_that_fails(tmp_path: Path) -> None:
    """What came before is answered."""
    rows = pa.table({"t": [1, 2], "k": [1, 1], "v": [1, 1]})
    origin = Handing([rows], failure=OSError("the line is cut"))
    running = session_of({"A": origin}).sql("SELECT k FROM A").start(checkpoint=str(tmp_path))
    with pytest.raises(ms.QueryError, match='stream "A" cannot be read: the line is cut'):
        running.wait(60)
    assert running.results().num_rows == 2


def test_a_batch_that_is_not_answered_is_not_let_go(tmp_path: Path) -> None:
    """Whoever hands it over must know, so that it is handed over again."""
    told: list[bool] = []

    class Telling(Handing):
        def _run(self, input: RemoteInput) -> None:
            told.append(input.hand(self.batches[0].to_batches(), 0))

    def sink(answer: pa.Table, batch: Any) -> None:
        raise Crash

    rows = pa.table({"t": [1, 2], "k": [1, 1], "v": [1, 1]})
    running = (
        session_of({"A": Telling([rows])})
        .sql("SELECT k FROM A")
        .start(sink, checkpoint=str(tmp_path))
    )
    with pytest.raises(ms.QueryError):
        running.wait(60)
    _await(lambda: told == [False])


def _await(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it does not come true")
