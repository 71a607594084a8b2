"""Streams whose rows the driver never sees: batches are handed over, answered, and let go, whatever
ends in between."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import millstream as ms
from millstream.fragments.remote_input import RemoteInput
from millstream.runtime.inputs import InputPlace

TEXT = """SELECT a.k, COUNT(*) AS n, SUM(b.v) AS s FROM A WINDOW(RANGE 20) a
JOIN B WINDOW(RANGE 30) b ON a.k = b.k GROUP BY a.k EMIT CHANGES"""
COLUMNS = {"t": "BIGINT", "k": "BIGINT", "v": "BIGINT"}
DELAY = 4


def table(seed: str) -> pa.Table:
    """Rows that are out of order within the delay."""
    chance = random.Random(seed)
    times = [i // 2 + chance.randrange(DELAY) for i in range(120)]
    rows = [{"t": t, "k": chance.randrange(4), "v": chance.randrange(9)} for t in times]
    return pa.Table.from_pylist(rows, pa.schema([(name, pa.int64()) for name in COLUMNS]))


def batches(rows: pa.Table, chance: random.Random) -> list[pa.Table]:
    bounds = sorted(chance.choices(range(len(rows) + 1), k=chance.randrange(8)))
    firsts, stops = [0, *bounds], [*bounds, len(rows)]
    return [rows.slice(a, b - a) for a, b in zip(firsts, stops, strict=True)]


@dataclass
class Handing:
    """Hands over batches from where the input is."""

    batches: list[pa.Table]
    ends: bool = True
    failure: Exception | None = None

    def open(self, place: InputPlace) -> RemoteInput:
        return RemoteInput(place.stream, place.sources, self, place.inbox)

    def begin(self, input: RemoteInput) -> None:
        threading.Thread(target=self._run, args=(input,), daemon=True).start()

    def _run(self, input: RemoteInput) -> None:
        first = 0 if input.mark is None else input.mark + 1
        for number in range(first, len(self.batches)):
            if not input.hand(self.batches[number].to_batches(), number):
                return
        if self.ends:
            input.end(self.failure)
        else:
            input.run_dry()

    def stop(self) -> None:
        pass


def session_of(origins: dict[str, Handing], delay: int = DELAY) -> ms.Session:
    session = ms.Session(engine="local")
    for name in origins:
        session.feed(name, COLUMNS, time="t", delay=delay)
    session._origins.origin = lambda name, *_: origins[name]  # type: ignore[method-assign]
    return session


def expected() -> pa.Table:
    session = ms.Session(engine="local")
    for name in ("A", "B"):
        session.stream(name, table(name), time="t")
    return session.sql(TEXT).run()


def changes(tables: list[pa.Table]) -> dict[tuple[Any, ...], int]:
    """How often each row comes or goes at each instant."""
    found: dict[tuple[Any, ...], int] = {}
    for row in (row for table in tables for row in table.to_pylist()):
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
