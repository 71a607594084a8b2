"""The workloads: the streams, the query, and the shape of its answer.

Times are microseconds, strictly ascending within a stream. Every answer is a table of the columns
named here and of `valid_from` and `valid_to`: the maximal intervals in which a row is valid. Data
is drawn from a seed, so all contenders get the same; a share of a workload is its first part, with
the same rates and therefore windows of the same size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

SECOND = 1_000_000
WINDOW = 10 * SECOND
BATCH = 10_000  # rows
INFINITY = 2**63 - 1

Streams = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    sql: str  # for Millstream
    columns: tuple[str, ...]  # of the answer, before valid_from and valid_to
    streams: Streams

    @property
    def rows(self) -> int:
        return sum(map(len, self.streams.values()))

    def share(self, part: float) -> Workload:
        """The beginning of every stream."""
        streams = {n: s.slice(0, max(1, int(len(s) * part))) for n, s in self.streams.items()}
        return Workload(self.name, self.title, self.sql, self.columns, streams)

    def batches(self, rows: int = BATCH) -> Iterator[tuple[str, pa.Table]]:
        """The streams cut into batches, in turn: no stream is ahead by more than a batch."""
        longest = max(map(len, self.streams.values()))
        for first in range(0, longest, rows):
            for name, stream in self.streams.items():
                if first < len(stream):
                    yield name, stream.slice(first, rows)

    def declarations(self, source: str = "memory") -> str:
        """CREATE STREAM for each stream."""
        names = {pa.int64(): "BIGINT", pa.float64(): "DOUBLE"}
        statements = []
        for name, stream in self.streams.items():
            columns = ", ".join(f"{field.name} {names[field.type]}" for field in stream.schema)
            statements.append(
                f"CREATE STREAM {name} ({columns}) SOURCE {source}('{name}') "
                "ORDERED BY t UNIT MICROSECONDS;"
            )
        return "\n".join(statements)


# --- data -----------------------------------------------------------------------------------------


def _times(random: np.random.Generator, rows: int, rate: int) -> np.ndarray:
    """Random arrivals at `rate` rows per second."""
    gaps = random.exponential(SECOND / rate, rows).astype(np.int64)
    return np.cumsum(np.maximum(gaps, 1))


@lru_cache
def uniform(seed: int, rows: int, rate: int = 1_000, keys: int = 10_000) -> pa.Table:
    """Rows (t, k, v) with uniform keys; v is an integer that is unique in the stream."""
    random = np.random.default_rng(seed)
    columns = {
        "t": _times(random, rows, rate),
        "k": random.integers(0, keys, rows),
        "v": random.permutation(rows),
    }
    return pa.table(columns)


@lru_cache
def zipf(seed: int, rows: int, rate: int = 4_000, keys: int = 50_000) -> pa.Table:
    """Rows (t, k, v) where the n-th key is n times rarer than the first; v in [0, 1).

    A window of ten seconds holds 40,000 rows of about 11,000 keys, 3,500 of them of one key.
    """
    random = np.random.default_rng(seed)
    shares = np.cumsum(1 / np.arange(1, keys + 1))
    ranks = np.searchsorted(shares, random.random(rows) * shares[-1], "right")
    columns = {
        "t": _times(random, rows, rate),
        "k": random.permutation(keys)[ranks],
        "v": random.random(rows),
    }
    return pa.table(columns)


# --- workloads ------------------------------------------------------------------------------------


def _pair(rows: int) -> Streams:
    return {"A": uniform(1, rows), "B": uniform(2, rows)}


def _window_join(size: float) -> Workload:
    sql = """SELECT a.k, a.v AS av, b.v AS bv
FROM A WINDOW(RANGE 10 SECONDS) a JOIN B WINDOW(RANGE 10 SECONDS) b ON a.k = b.k"""
    title = "window equi-join of two streams, 10,000 keys"
    return Workload("join", title, sql, ("k", "av", "bv"), _pair(int(2e6 * size)))


def _grouped_aggregate(size: float) -> Workload:
    sql = "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM S WINDOW(RANGE 10 SECONDS) GROUP BY k"
    title = "COUNT(*), MAX(v) by key at every instant, 11,000 groups of skewed size"
    streams = {"S": zipf(3, int(4e6 * size))}
    return Workload("aggregate", title, sql, ("k", "n", "m"), streams)


def _distinct(size: float) -> Workload:
    sql = "SELECT DISTINCT k FROM S WINDOW(RANGE 10 SECONDS)"
    title = "DISTINCT of a key, 10,000 keys"
    return Workload("distinct", title, sql, ("k",), {"S": uniform(4, int(4e6 * size))})


def _difference(size: float) -> Workload:
    sql = """SELECT k FROM A WINDOW(RANGE 10 SECONDS)
EXCEPT SELECT k FROM B WINDOW(RANGE 10 SECONDS)"""
    title = "EXCEPT of the keys of two streams, 10,000 keys"
    return Workload("difference", title, sql, ("k",), _pair(int(2e6 * size)))


def _anti_join(size: float) -> Workload:
    sql = """SELECT a.k, a.v FROM A WINDOW(RANGE 10 SECONDS) a
WHERE NOT EXISTS (SELECT 1 FROM B WINDOW(RANGE 10 SECONDS) b WHERE b.k = a.k)"""
    title = "anti-join of two streams, 10,000 keys"
    return Workload("antijoin", title, sql, ("k", "v"), _pair(int(2e6 * size)))


def _count_window(size: float) -> Workload:
    sql = "SELECT SUM(v) AS s FROM S WINDOW(ROWS 1000)"
    title = "SUM(v) of the last 1,000 rows, at each row"
    return Workload("rows", title, sql, ("s",), {"S": uniform(4, int(4e6 * size))})


def _double_sums(size: float) -> Workload:
    sql = "SELECT SUM(v) AS s FROM S WINDOW(ROWS 1000)"
    title = "SUM(v) of the last 1,000 rows, at each row; doubles, rounded once"
    return Workload("doubles", title, sql, ("s",), {"S": zipf(3, int(4e6 * size))})


def _three_way_join(size: float) -> Workload:
    sql = """SELECT a.k, a.v AS av, b.v AS bv, c.v AS cv
FROM A WINDOW(RANGE 10 SECONDS) a JOIN B WINDOW(RANGE 10 SECONDS) b ON a.k = b.k
JOIN C WINDOW(RANGE 10 SECONDS) c ON a.k = c.k"""
    title = "window equi-join of three streams on one key, 10,000 keys"
    streams = {**_pair(int(1e6 * size)), "C": uniform(5, int(1e6 * size))}
    return Workload("join3", title, sql, ("k", "av", "bv", "cv"), streams)


def _latest(size: float) -> Workload:
    sql = """SELECT a.k, a.v AS av, b.v AS bv
FROM A a JOIN B WINDOW(PARTITION BY k ROWS 1) b ON a.k = b.k"""
    title = "each row with the latest of its key of another stream, a tenth as fast; 10,000 keys"
    streams = {"A": uniform(1, int(4e6 * size)), "B": uniform(6, int(4e5 * size), rate=100)}
    return Workload("latest", title, sql, ("k", "av", "bv"), streams)


def _filter(size: float) -> Workload:
    sql = "SELECT k, v FROM S WHERE k % 10 = 3 AND v > 0.5"
    title = "filter: k % 10 = 3 AND v > 0.5"
    return Workload("filter", title, sql, ("k", "v"), {"S": zipf(3, int(4e6 * size))})


def _map(size: float) -> Workload:
    sql = "SELECT k * 2 + 1 AS x, v * 0.89 AS y, v * v + k AS z FROM S"
    title = "map: three arithmetic expressions"
    return Workload("map", title, sql, ("x", "y", "z"), {"S": zipf(3, int(4e6 * size))})


WORKLOADS: Mapping[str, Callable[[float], Workload]] = {
    "join": _window_join,
    "aggregate": _grouped_aggregate,
    "distinct": _distinct,
    "difference": _difference,
    "antijoin": _anti_join,
    "rows": _count_window,
    "doubles": _double_sums,
    "join3": _three_way_join,
    "latest": _latest,
    "filter": _filter,
    "map": _map,
}
