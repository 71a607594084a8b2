"""EMIT EVERY d: the whole answer at the multiples of d that the frontier has passed."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import millstream as ms

QUERIES = [
    "SELECT v FROM S WINDOW(RANGE 7)",
    "SELECT k, COUNT(*) AS n FROM S WINDOW(RANGE 9) GROUP BY k",
    "SELECT COUNT(*) AS n, MAX(v) AS most FROM S WINDOW(ROWS 3)",
    "SELECT DISTINCT k FROM S WINDOW(UNBOUNDED)",
    "SELECT k, v FROM S WINDOW(RANGE 20) ORDER BY v DESC LIMIT 2",
]


def rows(count: int = 40) -> list[dict[str, int]]:
    draw, t, made = random.Random(count), 0, []
    for _ in range(count):
        t += draw.choice([0, 1, 1, 2, 9])
        made.append({"t": t, "k": draw.randrange(3), "v": draw.randrange(9)})
    return made


def session(engine: str) -> ms.Session:
    made = ms.Session(engine=engine)
    made.stream("S", rows(), time="t")
    return made


def expected(query: str, every: int) -> list[dict[str, object]]:
    """By one snapshot after the other."""
    asked = session("reference").sql(query)
    changes = session("reference").sql(f"{query} EMIT CHANGES").run()["at"].to_pylist()
    first, last = -(-min(changes) // every) * every, -(-max(changes) // every) * every
    given: list[dict[str, object]] = []
    for at in range(first, last + 1, every):
        given += [row | {"at": at} for row in asked.snapshot(at).to_pylist()]
    return given


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("every", [1, 4, 25])
@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
def test_it_is_the_snapshots_at_the_multiples(query: str, every: int) -> None:
    wanted = expected(query, every)
    for engine in ("reference", "local"):
        assert session(engine).sql(f"{query} EMIT EVERY {every}").run().to_pylist() == wanted
    running = session("local").sql(f"{query} EMIT EVERY {every}").start()
    running.wait(30)
    assert _sorted(running.results()) == _sorted(pa.Table.from_pylist(wanted))


def _sorted(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row[name] for name in sorted(row)) for row in table.to_pylist())


def test_an_answer_that_does_not_change_comes_again_as_the_frontier_moves() -> None:
    made = ms.Session(engine="local")
    feed = made.feed("S", {"t": "BIGINT", "v": "BIGINT"}, time="t")
    given: list[dict[str, object]] = []
    query = made.sql("SELECT v FROM S WINDOW(RANGE 100) EMIT EVERY 10")
    running = query.start(lambda table, batch: given.extend(table.to_pylist()))
    feed.send([{"t": 5, "v": 1}])
    feed.heartbeat(31)
    query_ends(running, 31)
    assert given == [{"v": 1, "at": at} for at in (10, 20, 30)]
    running.stop()


def query_ends(running: ms.Running, at: int) -> None:
    import time

    until = time.monotonic() + 30
    while time.monotonic() < until and not (running.frontier or 0) >= at:
        time.sleep(0.01)
    running.stop()


def test_it_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    given: list[dict[str, object]] = []

    def keep(table: pa.Table, batch: object) -> None:
        given.extend(table.to_pylist())

    folder = tmp_path / "rows"
    folder.mkdir()
    for number, part in enumerate((rows()[:20], rows()[20:])):
        lines = (f"{row['t']},{row['k']},{row['v']}" for row in part)
        (folder / f"{number}.csv").write_text("\n".join(["t,k,v", *lines]) + "\n")
        made = ms.Session(engine="local")
        made.sql(
            "CREATE STREAM S (t BIGINT, k INT, v INT) SOURCE csv(:path, follow => TRUE) "
            "ORDERED BY t",
            path=str(folder),
        )
        query = made.sql("SELECT k, COUNT(*) AS n FROM S WINDOW(RANGE 9) GROUP BY k EMIT EVERY 4")
        running = query.start(keep, checkpoint=str(tmp_path / "c"), trigger="available_now")
        assert running.wait(60)
    told = {(row["at"], row["k"], row["n"]) for row in given}
    wanted = expected("SELECT k, COUNT(*) AS n FROM S WINDOW(RANGE 9) GROUP BY k", 4)
    last = max(row["at"] for row in given)  # the stream has not ended
    assert last > rows()[-1]["t"] - 4
    assert told == {(row["at"], row["k"], row["n"]) for row in wanted if row["at"] <= last}


def test_timestamps_and_units() -> None:
    made = ms.Session(engine="local")
    made.sql("CREATE STREAM S (t BIGINT, v INT) SOURCE memory() ORDERED BY t UNIT SECONDS")
    query = made.sql("SELECT v FROM S WINDOW(RANGE 1 MINUTE) EMIT EVERY INTERVAL '30' SECONDS")
    assert query.text.endswith("EMIT EVERY 30 SECOND")
    assert made.sql(query.text).plan == query.plan
