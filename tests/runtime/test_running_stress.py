"""Several sources, several queries, random sends and stops: the answers are those of `run` over the
rows that were accepted."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import millstream as ms
from runtime.live import SOON

SCHEMA = {"t": "BIGINT", "k": "BIGINT", "v": "BIGINT", "id": "BIGINT"}
DELAYS = {"A": 0, "B": 6, "C": 0}

QUERIES = [
    "SELECT k, v, id FROM A WINDOW(RANGE 7) WHERE v > 2",
    "SELECT k, COUNT(*) AS n, SUM(v) AS s, MAX(v) AS m FROM B WINDOW(RANGE 9) GROUP BY k",
    "SELECT COUNT(*) AS n, MIN(v) AS m FROM A WINDOW(RANGE 4)",
    "SELECT a.id, b.id AS other FROM A a WINDOW(RANGE 5), B b WINDOW(RANGE 8) WHERE a.k = b.k",
    "SELECT a.id, c.v FROM A a WINDOW(RANGE 5) LEFT JOIN C c WINDOW(ROWS 3) ON a.k = c.k",
    "SELECT k FROM A WINDOW(RANGE 9) EXCEPT SELECT k FROM C WINDOW(RANGE 3)",
    "SELECT k, LAST(id) AS l, FIRST(id) AS f FROM B WINDOW(RANGE 6) GROUP BY k",
    "SELECT id FROM C WINDOW(PARTITION BY k ROWS 2)",
    "SELECT k, SUM(v) AS s FROM B WINDOW(RANGE 9) GROUP BY k ORDER BY s DESC LIMIT 2",
    "SELECT DISTINCT k FROM A WINDOW(RANGE 3) UNION ALL SELECT k FROM C WINDOW(RANGE 2)",
    "SELECT id FROM A WINDOW(RANGE 5) WHERE k IN (SELECT k FROM B WINDOW(RANGE 5))",
]


class Sender(threading.Thread):
    """Sends random rows, mostly in order, in batches of random size."""

    def __init__(self, feed: ms.Feed, seed: int, count: int) -> None:
        super().__init__(daemon=True)
        self._feed = feed
        self._random = random.Random(seed)
        delay = DELAYS[feed.name]
        now = 0
        self.rows: list[dict[str, Any]] = []
        for id in range(count):
            now += self._random.choice((0, 0, 1, 1, 2, 5))
            early = self._random.randint(0, delay + 2) if self._random.random() < 0.2 else 0
            k, v = self._random.randint(0, 4), self._random.randint(0, 9)
            self.rows.append({"t": now - early, "k": k, "v": v, "id": id})

    def run(self) -> None:
        sent = 0
        while sent < len(self.rows):
            size = self._random.choice((1, 1, 2, 5, 40))
            self._feed.send(self.rows[sent : sent + size])
            sent += size
            if self._random.random() < 0.3:
                time.sleep(self._random.random() * 0.002)


def level_changes(table: pa.Table) -> dict[tuple[Any, ...], dict[int, int]]:
    """How often each row comes and goes, by instant: the normal form of EMIT FINAL."""
    changes: dict[tuple[Any, ...], dict[int, int]] = {}
    for *row, start, end in zip(*table.to_pydict().values(), strict=True):
        of_row = changes.setdefault(tuple(row), {})
        of_row[start] = of_row.get(start, 0) + 1
        of_row[end] = of_row.get(end, 0) - 1
    cleaned = {row: {t: c for t, c in of.items() if c} for row, of in changes.items()}
    return {row: of for row, of in cleaned.items() if of}


def over_accepted(
    text: str, running: ms.Running, senders: Sequence[Sender], late: Sequence[pa.Table]
) -> ms.Query:
    """The query over what the running one accepted: a beginning of each stream, less what was
    late."""
    session = ms.Session()
    missed = {
        (table.schema.metadata[b"stream"].decode(), id)
        for table in late
        for id in table.column("id").to_pylist()
    }
    received = {name: source.rows for name, source in running.metrics.sources.items()}
    for sender in senders:
        name = sender._feed.name
        rows = sender.rows[: received.get(name, 0)]
        kept = [row for row in rows if (name, row["id"]) not in missed]
        session.stream(name, kept, "t", schema=SCHEMA)
    return session.sql(text)


def start_all(
    texts: Sequence[str], seed: int, count: int
) -> tuple[list[tuple[str, ms.Running, list[pa.Table]]], list[Sender]]:
    session = ms.Session()
    feeds = [
        session.feed(name, SCHEMA, "t", delay=delay, capacity=100) for name, delay in DELAYS.items()
    ]
    started = []
    for text in texts:
        late: list[pa.Table] = []
        started.append((text, session.sql(text).start(late=late), late))
    senders = [Sender(feed, 10 * seed + n, count) for n, feed in enumerate(feeds)]
    for sender in senders:
        sender.start()
    return started, senders


@pytest.mark.parametrize("seed", range(3))
def test_stopped_at_a_random_moment(seed: int) -> None:
    rng = random.Random(seed)
    texts = [text + rng.choice(("", " EMIT CHANGES")) for text in rng.sample(QUERIES, 5)]
    started, senders = start_all(texts, seed, 600)
    time.sleep(rng.random() * 0.1)
    for text, running, late in started:
        assert running.stop(SOON)
        assert running.exception is None
        expected = over_accepted(text, running, senders, late)
        frontier = running.frontier
        if frontier is None:
            continue
        assert isinstance(frontier, int)
        if text.endswith("CHANGES"):
            given = sorted(map(str, running.results().to_pylist()))
            right = [row for row in expected.run().to_pylist() if row["at"] < frontier]
            assert given == sorted(map(str, right)), text
        for at in [frontier - 1, *(rng.randrange(-3, max(frontier, 0) + 3) for _ in range(3))]:
            if at < frontier:
                found = running.snapshot(at).to_pylist()
                assert found == expected.snapshot(at).to_pylist(), (text, at)
    for sender in senders:
        sender.join(SOON)
        assert not sender.is_alive()


@pytest.mark.parametrize("seed", range(3, 6))
def test_run_to_the_end(seed: int) -> None:
    texts = random.Random(seed).sample(QUERIES, 6)
    started, senders = start_all(texts, seed, 400)
    for sender in senders:
        sender.join(SOON)
        sender._feed.close()
    for text, running, late in started:
        assert running.wait(SOON)
        expected = over_accepted(text, running, senders, late)
        given = running.results()
        assert level_changes(given) == level_changes(expected.run()), text


def test_queries_that_come_and_go_while_rows_are_sent() -> None:
    """Each sees the rows from some moment to another, all of them, in order."""
    session = ms.Session()
    feed = session.feed("A", {"t": "BIGINT", "id": "BIGINT"}, "t", capacity=50)
    done = threading.Event()
    sent = 0

    def send() -> None:
        nonlocal sent
        while not done.is_set():
            feed.send([(sent, sent), (sent + 1, sent + 1)])
            sent += 2

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    rng = random.Random(5)
    try:
        for round in range(15):
            texts = ("SELECT id FROM A", "SELECT id FROM A WINDOW(ROWS 1) EMIT CHANGES")
            queries = [session.sql(text).start() for text in texts]
            time.sleep(rng.random() * 0.01)
            stoppers = [threading.Thread(target=query.stop) for query in queries * 2]
            for stopper in stoppers:
                stopper.start()
            for stopper in stoppers:
                stopper.join(SOON)
                assert not stopper.is_alive()
            for running in queries:
                ids = running.results().column("id").to_pylist()
                distinct = sorted(set(ids))
                assert distinct == [*range(min(ids, default=0), max(ids, default=-1) + 1)]
                assert running.progress.late == 0, round
            ids = queries[0].results().column("id").to_pylist()
            assert ids == sorted(ids)
            assert len(ids) == queries[0].metrics.sources["A"].rows
    finally:
        done.set()
        sender.join(SOON)
    assert not sender.is_alive()


@pytest.mark.parametrize("seed", range(6, 8))
def test_snapshots_beside_a_sink(seed: int) -> None:
    """From what still holds or lies ahead, while the query runs."""
    rng = random.Random(seed)
    text = rng.choice(QUERIES) + rng.choice(("", " EMIT CHANGES"))
    session = ms.Session()
    feeds = [session.feed(name, SCHEMA, "t", delay=delay) for name, delay in DELAYS.items()]
    late: list[pa.Table] = []
    query = session.sql(text)
    running = query.start("noop", late=late, snapshots=True)
    senders = [Sender(feed, 10 * seed + n, 3000) for n, feed in enumerate(feeds)]
    for sender in senders:
        sender.start()
    found = {}
    for at in range(0, 1500, 100):
        with contextlib.suppress(ms.QueryError):  # it was long past when it was asked for
            found[at] = query.snapshot(at, SOON).to_pylist()
    for sender in senders:
        sender.join(SOON)
    running.stop()
    expected = over_accepted(text, running, senders, late)
    assert found
    for at, rows in found.items():
        assert rows == expected.snapshot(at).to_pylist(), (text, at)
