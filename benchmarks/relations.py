"""Streams and tables: lookups in a table, and changes of a table that affect a window.

The table has a million rows. A *lookup* joins a row of the stream with the version of its key that
is valid when it arrives (NON RETROACTIVE); a *change* replaces a row and retracts the results that
rows of the window had from it (RETROACTIVE). Both are in processor time, once the table is loaded;
the bounds are for one core.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import millstream as ms
from millstream.model.records import Records
from millstream.model.time import INFINITY
from millstream.physical.operator import Context
from millstream.runtime.bounded import source_batch
from millstream.runtime.graph import Graph

Ints = NDArray[np.int64]

ROWS = 1_000_000  # of the table
BATCH = 10_000
ROUNDS = 60
LOOKUPS, CHANGES = 3_000_000, 100_000  # per second

LOOKUP = "SELECT A.k, A.v, R.x FROM A JOIN R ON A.k = R.k"
WINDOW = "SELECT A.k, A.v, R.x FROM A WINDOW(RANGE 100000) JOIN R ON A.k = R.k EMIT CHANGES"


@dataclass
class Trial:
    """A query over a stream A (t, k, v) with one row per unit of time, and a table R (k, x)."""

    sql: str
    changes: str
    rows: int
    now: int = 1
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"A": [], "R": []})

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(7)
        session = ms.Session(engine="local")
        schema = {"k": "BIGINT", "x": "BIGINT"}
        session.feed("A", {"t": "BIGINT", "k": "BIGINT", "v": "BIGINT"}, time="t")
        session.table("R", schema=schema, key="k", changes=self.changes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            query: ms.Query = session.sql(self.sql)
        self.graph = Graph(query.physical_plan, Context(), lambda batch: list(batch.columns))
        keys = self._random.permutation(self.rows)
        self._values = self._random.integers(0, 1000, self.rows)
        self._push("R", _changes(keys, self._values[keys], np.zeros(self.rows, np.int64), 1))
        self._push("A", self._stream(0))

    def _push(self, source: str, *parts: Records) -> None:
        records = parts[0] if len(parts) == 1 else _joined(*parts)
        begin = time.process_time()
        for vertex in self.graph.sources[source]:
            self.graph.push(vertex, source_batch(vertex.node, records, 0, self.now))
        self.seconds[source].append(time.process_time() - begin)

    def _stream(self, rows: int) -> Records:
        times = self.now + np.arange(rows)
        keys = self._random.integers(0, self.rows, rows)
        return Records([pa.array(times), pa.array(keys), pa.array(times)], times, times + 1)

    def go_on(self, rows: int, changes: int) -> None:
        """Push `rows` rows of the stream and `changes` changes of the table."""
        stream = self._stream(rows)
        keys = self._random.choice(self.rows, changes, replace=False)
        times = np.sort(self.now + self._random.integers(0, max(rows, 1), changes))
        old, new = self._values[keys], self._values[keys] + 1
        self._values[keys] = new
        self.now += rows
        self._push("R", _changes(keys, old, times, -1), _changes(keys, new, times, 1))
        self._push("A", stream)


def _changes(keys: Ints, values: Ints, times: Ints, weight: int) -> Records:
    columns = [pa.array(keys), pa.array(values)]
    return Records(columns, times, np.full(len(keys), INFINITY), np.full(len(keys), weight))


def _joined(one: Records, other: Records) -> Records:
    columns = [pa.concat_arrays(both) for both in zip(one.columns, other.columns, strict=True)]
    assert one.weight is not None
    assert other.weight is not None
    pairs = ((one.start, other.start), (one.end, other.end), (one.weight, other.weight))
    return Records(columns, *map(np.concatenate, pairs))


def measure(
    sql: str, changes: str, a_round: tuple[int, int], rows: int = ROWS, rounds: int = ROUNDS
) -> tuple[float, float]:
    """The minimum seconds per round for the stream's rows alone, and for both; the minimum, because
    of other load on the machine. Windows are full after a third of the rounds."""
    trial = Trial(sql, changes, rows)
    for _ in range(rounds):
        trial.go_on(*a_round)
    stream, table = (seconds[1 + rounds // 3 :] for seconds in trial.seconds.values())
    return min(stream), min(map(sum, zip(stream, table, strict=True)))


def report(quick: bool) -> bool:
    """Print the results; returns whether the bounds hold."""
    rows = ROWS // 10 if quick else ROWS
    print(f"Streams and a table of {rows:,} rows, in processor time")
    alone, _ = measure(LOOKUP, "non retroactive", (BATCH, 0), rows)
    _, mixed = measure(LOOKUP, "non retroactive", (BATCH, BATCH // 100), rows)
    _, seen = measure(WINDOW, "retroactive", (BATCH, BATCH), rows)
    found = [
        ("lookups, the table does not change", BATCH / alone, LOOKUPS),
        ("lookups, a change to 100 of them", BATCH / mixed, LOOKUPS),
        ("changes that a window of 100,000 rows sees", BATCH / seen, CHANGES),
    ]
    for what, rate, bound in found:
        missed = "" if rate >= bound else "  MISSED"
        print(f"  {what:<44}{rate:>12,.0f}/s (bound {bound:,}){missed}")
    return all(rate >= bound for _, rate, bound in found)
