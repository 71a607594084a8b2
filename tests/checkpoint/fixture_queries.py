"""Queries whose checkpoints are kept as fixtures, and a program that writes these.

python fixture_queries.py <folder> [renamed]: one checkpoint a query in the middle of its streams,
and what it has answered by then. With `renamed`, many classes have other names while it runs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import millstream as ms
from millstream.fragments import keeping

BID = {"t": "BIGINT", "k": "STRING", "v": "BIGINT", "p": "DECIMAL(10, 2)"}
ROWS = 60
BATCH = 6

QUERIES = {
    "aggregates": """
        SELECT k, COUNT(*) AS n, SUM(v) AS s, AVG(p) AS a, MIN(v) AS low, MAX(k) AS high,
               COUNT(DISTINCT v) AS d, MEDIAN(v) AS m, ARRAY_AGG(v) AS all_v, STDDEV(v) AS e,
               SUM(CAST(v AS DOUBLE)) AS f
        FROM A WINDOW(RANGE 20) GROUP BY k""",
    "join": """
        SELECT a.k, a.v, b.p FROM A WINDOW(RANGE 15) a JOIN B WINDOW(RANGE 9) b
        ON a.k = b.k AND a.v < b.v""",
    "outer join": """
        SELECT a.v, b.v AS w FROM A WINDOW(RANGE 8) a FULL JOIN B WINDOW(RANGE 8) b ON a.v = b.v""",
    "three": """
        SELECT a.v, b.v AS w, c.v AS x
        FROM A WINDOW(RANGE 6) a JOIN B WINDOW(RANGE 6) b ON a.k = b.k
        JOIN A WINDOW(RANGE 4) c ON b.k = c.k""",
    "not exists": """
        SELECT k, v FROM A WINDOW(RANGE 9) a WHERE NOT EXISTS
        (SELECT 1 FROM B WINDOW(RANGE 5) b WHERE b.k = a.k)""",
    "above average": """
        SELECT k, v FROM A WINDOW(RANGE 9) WHERE v > (SELECT AVG(v) FROM A WINDOW(RANGE 9))""",
    "first rows": "SELECT k, v FROM A WINDOW(RANGE 12) ORDER BY v DESC, k LIMIT 3",
    "last rows": "SELECT k, v FROM B WINDOW(PARTITION BY k ROWS 2)",
    "last of all": "SELECT SUM(v) AS s FROM B WINDOW(ROWS 4)",
    "except": "SELECT k, v FROM A WINDOW(RANGE 9) EXCEPT SELECT k, v FROM B WINDOW(RANGE 9)",
    "distinct": "SELECT DISTINCT k, p FROM A WINDOW(RANGE 9)",
    "table": "SELECT a.v, t.label FROM A WINDOW(RANGE 5) a JOIN T t ON a.k = t.k",
    "changes": "SELECT k, COUNT(*) AS n FROM A WINDOW(RANGE 9) GROUP BY k EMIT CHANGES",
    "deltas": "SELECT ISTREAM(k, v) FROM A WINDOW(RANGE 9)",
}


def rows(factor: int) -> list[dict[str, Any]]:
    """B comes out of order, within its delay."""
    return [
        {
            "t": number - (number * 7 % 3 if factor == 5 else 0),
            "k": "abc"[number * factor % 3] if number % 11 else None,
            "v": number * number % 13,
            "p": Decimal(f"{number % 7}.50"),
        }
        for number in range(ROWS)
    ]


class Streams:
    """Two feeds, a table, and how far they have come."""

    def __init__(self) -> None:
        self.session = ms.Session(engine="local")
        a = self.session.feed("A", BID, "t")
        b = self.session.feed("B", BID, "t", delay=5)
        self._feeds = ((a, rows(3)), (b, rows(5)))
        self.session.sql("CREATE TABLE T (k STRING, label STRING) NON RETROACTIVE")
        self.session.sql("INSERT INTO T VALUES ('a', 'first'), ('b', 'second')")

    def send(self, first: int, stop: int) -> Iterator[None]:
        for place in range(first, stop, BATCH):
            for feed, data in self._feeds:
                feed.send(data[place : min(place + BATCH, stop)])
            yield

    def close(self) -> None:
        for feed, _ in self._feeds:
            feed.close()


def answers(table: pa.Table) -> list[list[Any]]:
    return [[str(value) for value in row.values()] for row in table.to_pylist()]


def write(folder: Path, name: str) -> None:
    """The first half of the rows; some of them may wait in the checkpoint for their turn."""
    streams, given = Streams(), Given()
    query = streams.session.sql(QUERIES[name])
    running = query.start(given, checkpoint=str(folder / "checkpoint"))
    for _ in streams.send(0, ROWS // 2):
        time.sleep(0.02)
    until = time.monotonic() + 20
    while given.batches < 2 and time.monotonic() < until:
        time.sleep(0.01)
    running.stop()
    (folder / "answers.json").write_text(json.dumps(given.rows))


def resumed(folder: Path, name: str) -> list[list[Any]]:
    """What a query answers all in all that goes on from a checkpoint."""
    streams, given = Streams(), Given()
    running = streams.session.sql(QUERIES[name]).start(given, checkpoint=str(folder / "checkpoint"))
    for _ in streams.send(ROWS // 2, ROWS):
        pass
    streams.close()
    assert running.wait(60)
    before: Mapping[str, list[list[Any]]] = json.loads((folder / "answers.json").read_text())
    told = {int(batch): found for batch, found in before.items()} | given.rows
    return [row for batch in sorted(told) for row in told[batch]]


def whole(name: str) -> list[list[Any]]:
    """What it answers in one go."""
    streams, given = Streams(), Given()
    running = streams.session.sql(QUERIES[name]).start(given)
    for _ in streams.send(0, ROWS):
        pass
    streams.close()
    assert running.wait(60)
    return [row for batch in sorted(given.rows) for row in given.rows[batch]]


class Given:
    """The rows of each batch by its number: one that is given again counts once."""

    def __init__(self) -> None:
        self.rows: dict[int, list[list[Any]]] = {}
        self.batches = 0

    def __call__(self, table: pa.Table, batch: Any) -> None:
        self.rows[batch.id] = answers(table)
        self.batches += 1


RENAMED = """
logical.plan.Source logical.plan.Filter logical.plan.Map logical.plan.Join logical.plan.Field
logical.plan.Named logical.plan.Aggregate logical.plan.TimeWindow logical.expressions.Column
logical.expressions.Call logical.expressions.AggregateCall model.records.Records
model.records.Checked physical.operators.source.Source physical.operators.join.Join
physical.operators.join.JoinKey physical.operators.aggregate.Aggregate physical.operator.Pattern
physical.operators.time_window.TimeWindow fragments.edges.Fragment fragments.edges.Received
fragments.edges.Exchange fragments.shard.ShardStep fragments.progress.SourceProgress
checkpoint.records.Ref checkpoint.manifest.ShardState runtime.held.HeldRows physical.batch.Batch
""".split()  # noqa: SIM905


def rename_classes() -> None:
    for number, path in enumerate(RENAMED):
        module, _, name = path.rpartition(".")
        made = getattr(sys.modules[f"millstream.{module}"], name)
        made.__name__ = made.__qualname__ = f"Renamed{number}"


def main(folder: Path, renamed: bool) -> None:
    keeping.LEAST = 0  # so that there are states, and not only logs
    Streams()  # loads all modules
    if renamed:
        rename_classes()
    for name in QUERIES:
        own = folder / name.replace(" ", "-")
        own.mkdir(parents=True)
        write(own, name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), "renamed" in sys.argv[2:])
