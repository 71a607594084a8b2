"""Running queries over streams in disorder, with late rows, heartbeats, idle sources and streams
that end at different times have the answer of the definition over the rows that were not late."""

from __future__ import annotations

import time
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import millstream as ms
from millstream.model.elements import Element, normal_form
from millstream.model.time import INFINITY
from runtime.live import SOON, Seen, live_session

pytestmark = pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")

SCHEMA = {"k": "BIGINT", "v": "BIGINT", "t": "BIGINT"}
QUERIES = (
    "SELECT k, v FROM S WINDOW(PARTITION BY k ROWS 2 SLIDE 2)",
    "SELECT k, FIRST(v) AS f, LAST(v) AS l FROM S WINDOW(ROWS 4) GROUP BY k",
    "SELECT k, v FROM S WINDOW(RANGE 6) EXCEPT ALL SELECT k, v FROM R WINDOW(ROWS 3)",
    "SELECT a.k, b.v FROM S WINDOW(RANGE 5) a FULL JOIN R WINDOW(RANGE 4) b ON a.k = b.k",
    "SELECT k FROM S WINDOW(RANGE 5) WHERE k NOT IN (SELECT k FROM R WINDOW(RANGE 3))",
    "SELECT COUNT(*) AS n FROM R WINDOW(RANGE 7 SLIDE 3)",
    """SELECT x.k, y.n FROM (SELECT DISTINCT k FROM S WINDOW(RANGE 5)) x
    LEFT JOIN (SELECT k, COUNT(*) AS n FROM R WINDOW(RANGE 4) GROUP BY k) y ON x.k = y.k""",
    """SELECT * FROM ISTREAM(SELECT DISTINCT k
    FROM (SELECT k, v FROM S WINDOW(RANGE 6) ORDER BY v DESC LIMIT 2)) x WINDOW(RANGE 3)""",
    """SELECT k, COUNT(*) AS n FROM (SELECT k FROM S UNION ALL SELECT k FROM R) q WINDOW(RANGE 4)
    GRANULARITY(2) GROUP BY k""",
)


class Play:
    """Two feeds, what was sent to them, and how far each has got."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.session, self.clock = live_session(engine="local")
        self.feeds = {name: self._feed(name) for name in "SR"}
        self.sent: dict[str, list[dict[str, Any]]] = {"S": [], "R": []}
        self.now = dict.fromkeys("SR", -10)

    def _feed(self, name: str) -> ms.Feed:
        delay = self.random.choice([None, None, "3 seconds", "8 seconds"])
        idle = self.random.choice([None, "5 seconds"])
        return self.session.feed(name, SCHEMA, "t", unit="SECONDS", delay=delay, idle=idle)

    def step(self) -> None:
        random, name = self.random, self.random.choice("SR")
        match random.choice(["send"] * 8 + ["beat", "pause"]):
            case "send":
                rows = [self._row(name) for _ in range(random.choice([1, 1, 2, 5]))]
                self.sent[name] += rows
                self.feeds[name].send(rows)
            case "beat":
                self.now[name] += random.randrange(6)
                self.feeds[name].heartbeat(self.now[name])
            case "pause":
                self.clock.move(6_000_000)
        if random.random() < 0.4:
            time.sleep(0.002)  # what was sent is a batch of its own

    def _row(self, name: str) -> dict[str, Any]:
        pick = self.random.choice
        self.now[name] += pick([0, 0, 1, 2, 5])
        early = self.random.randrange(9) if self.random.random() < 0.3 else 0
        return {"k": pick([1, 2, 3, None]), "v": pick([1, 2, 5, None]), "t": self.now[name] - early}

    def accepted(self, late: dict[str, pa.Table]) -> ms.Session:
        """A session of the definition with what was not late."""
        session = ms.Session(engine="reference")
        for name, rows in self.sent.items():
            gone = Counter(map(repr, late[name].to_pylist())) if name in late else Counter()
            # Of equal rows the last ones are late: frontiers only go on.
            kept = [row for row in reversed(rows) if not _took(gone, repr(row))][::-1]
            columns = {c: pa.array([row[c] for row in kept], pa.int64()) for c in SCHEMA}
            session.stream(name, pa.table(columns), time="t", unit="SECONDS")
        return session


def _took(bag: Counter[str], item: str) -> bool:
    bag[item] -= 1
    return bag[item] >= 0


def elements(table: pa.Table, changes: bool) -> list[Element]:
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    if changes:
        return normal_form(Element(row[:-2], row[-2], INFINITY, row[-1]) for row in rows)
    return normal_form(Element(row[:-2], row[-2], row[-1], 1) for row in rows)


def assert_complete_below_frontiers(seen: Seen, changes: bool) -> None:
    frontier = None
    for table, batch in zip(seen.tables, seen.batches, strict=True):
        if frontier is not None and table.num_rows:
            assert min(table.column(-2 if changes else -1).to_pylist()) >= frontier
        frontier = batch.frontier


def assert_no_empty_intervals(table: pa.Table) -> None:
    assert all(row["valid_from"] < row["valid_to"] for row in table.to_pylist())


@pytest.mark.parametrize("second", ["EXISTS", "NOT EXISTS"])
@pytest.mark.parametrize("first", ["EXISTS", "NOT EXISTS"])
def test_a_row_that_comes_and_goes_at_one_instant_is_not_given(first: str, second: str) -> None:
    """In a chain of semi- and anti-joins one may let a row in as the other shuts it out."""
    text = f"""SELECT a.k, a.v FROM A WINDOW(RANGE 5) a
        WHERE {first} (SELECT 1 FROM B WINDOW(RANGE 3) b WHERE b.k = a.k)
        AND {second} (SELECT 1 FROM C WINDOW(RANGE 4) c WHERE c.v = a.v)"""
    for seed in range(40):
        random = Random(seed)
        session, seen = ms.Session(engine="local"), Seen()
        feeds = {name: session.feed(name, SCHEMA, "t") for name in "ABC"}
        now = 0
        with session.sql(text).start(seen) as running:
            for _ in range(40):
                now += random.choice([0, 1, 1, 2])
                row = {"k": random.randrange(3), "v": random.randrange(3), "t": now}
                feeds[random.choice("ABC")].send([row])
            for feed in feeds.values():
                feed.close()
            assert running.wait(SOON)
        for table in seen.tables:
            assert_no_empty_intervals(table)


@pytest.mark.parametrize("changes", [False, True], ids=["final", "changes"])
@pytest.mark.parametrize("text", QUERIES)
def test_disorder_late_rows_heartbeats_and_idle_sources(text: str, changes: bool) -> None:
    for seed in range(4):
        play, seen = Play(seed), Seen()
        query = play.session.sql(text + (" EMIT CHANGES" if changes else ""))
        with query.start(seen) as running:
            for _ in range(play.random.randrange(1, 14)):
                play.step()
            for name in play.random.sample("SR", 2):
                play.feeds[name].close()
            assert running.wait(SOON)
        assert_complete_below_frontiers(seen, changes)
        expected = play.accepted(running.late).sql(text).run()
        given = pa.concat_tables(seen.tables) if seen.tables else expected.slice(0, 0)
        if not changes:
            assert_no_empty_intervals(given)
        assert elements(given, changes and bool(seen.tables)) == elements(expected, False), seed
