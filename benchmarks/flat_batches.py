"""Flat cost: the cost of a row does not depend on how many rows its batch has.

The same streams go through each query in batches of 1,000 rows up to 1,000,000. Windows do not
change, so all runs give the same answer. Most inputs are signed: count windows, aggregates, set
operations, and windows whose ends are elements of their own; in a large batch most of their rows
come and go within it. Streams have few keys, so that a key has many rows in a batch of which few
overlap. Times are processor time, the median of several runs per size.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

import numpy as np
import pyarrow as pa

from benchmarks.driving import Drive, Rewrite, physical
from millstream.optimizer.choice import Approach, Choices
from millstream.optimizer.multi_way import multi_way
from millstream.physical.joins.areas.forms import AreaChoice

SIZES = (1_000, 10_000, 100_000, 1_000_000)
KEYS = 100
BOUND = 2.0  # how much more a row may cost in the largest batch than in the smallest one
RUNS = 3

_SIGNED = Choices(approach=Approach.SIGNED)
_INTERVALS = Choices(approach=Approach.INTERVALS)
_CALENDAR = Choices(areas=AreaChoice(calendar=True))


@dataclass(frozen=True)
class Trial:
    name: str
    sql: str
    choices: Choices | None = None
    rewrite: Rewrite | None = None


TRIALS: Sequence[Trial] = (
    Trial(
        "join of count windows",
        "SELECT a.v, b.v AS bv FROM A WINDOW(ROWS 10) a JOIN B WINDOW(ROWS 10) b ON a.k = b.k",
    ),
    Trial(
        "join of count windows, no key",
        "SELECT a.v, b.v AS bv FROM A WINDOW(ROWS 4) a JOIN B WINDOW(ROWS 4) b ON a.v < b.v",
    ),
    Trial(
        "join of partitioned windows",
        """SELECT a.v, b.v AS bv FROM A WINDOW(PARTITION BY k ROWS 2) a
           JOIN B WINDOW(PARTITION BY k ROWS 2) b ON a.k = b.k""",
    ),
    Trial(
        "join of three count windows",
        """SELECT a.v, b.v AS bv, c.v AS cv FROM A WINDOW(ROWS 10) a
           JOIN B WINDOW(ROWS 10) b ON a.k = b.k JOIN C WINDOW(ROWS 10) c ON b.k = c.k""",
    ),
    Trial(
        "the same in one operator",
        """SELECT a.v, b.v AS bv, c.v AS cv FROM A WINDOW(ROWS 10) a
           JOIN B WINDOW(ROWS 10) b ON a.k = b.k JOIN C WINDOW(ROWS 10) c ON b.k = c.k""",
        rewrite=multi_way,
    ),
    Trial(
        "join of counts by key",
        """SELECT a.k, a.n, b.n AS bn
           FROM (SELECT k, COUNT(*) AS n FROM A WINDOW(RANGE 1000) GROUP BY k) a
           JOIN (SELECT k, COUNT(*) AS n FROM B WINDOW(RANGE 1000) GROUP BY k) b ON a.k = b.k""",
    ),
    Trial(
        "a short and a long average",
        """SELECT s.m, l.m AS lm FROM (SELECT AVG(v) AS m FROM A WINDOW(ROWS 10)) s,
           (SELECT AVG(v) AS m FROM A WINDOW(ROWS 100)) l WHERE s.m > l.m""",
    ),
    Trial(
        "signed join",
        "SELECT a.v, b.v AS bv FROM A WINDOW(RANGE 100) a JOIN B WINDOW(RANGE 100) b ON a.k = b.k",
        choices=_SIGNED,
    ),
    Trial(
        "ring join",
        "SELECT a.v, b.v AS bv FROM A WINDOW(RANGE 100) a JOIN B WINDOW(RANGE 100) b ON a.k = b.k",
    ),
    Trial(
        "ring join, no key",
        "SELECT a.v, b.v AS bv FROM A WINDOW(RANGE 4) a JOIN B WINDOW(RANGE 4) b ON a.v < b.v",
    ),
    Trial(
        "calendar join",
        "SELECT a.v, b.v AS bv FROM A WINDOW(RANGE 100) a JOIN B WINDOW(RANGE 100) b ON a.k = b.k",
        choices=_CALENDAR,
    ),
    Trial(
        "semi-join by key",
        """SELECT a.v FROM A WINDOW(ROWS 100) a
           WHERE EXISTS (SELECT 1 FROM B WINDOW(ROWS 10) b WHERE b.k = a.k)""",
    ),
    Trial(
        "anti-join by order",
        """SELECT a.v FROM A WINDOW(ROWS 4) a
           WHERE NOT EXISTS (SELECT 1 FROM B WINDOW(ROWS 4) b WHERE b.v > a.v)""",
    ),
    Trial(
        "anti-join by condition",
        """SELECT a.v FROM A WINDOW(ROWS 4) a
           WHERE NOT EXISTS (SELECT 1 FROM B WINDOW(ROWS 4) b WHERE b.v + b.k > a.v)""",
    ),
    Trial(
        "groups above the mean",
        """SELECT k, COUNT(*) AS n FROM A WINDOW(RANGE 1000) GROUP BY k
           HAVING COUNT(*) > (SELECT COUNT(*) / 100 FROM B WINDOW(RANGE 1000))""",
    ),
    Trial(
        "outer join by key",
        """SELECT a.v, b.v AS bv FROM A WINDOW(ROWS 10) a
           LEFT JOIN B WINDOW(ROWS 10) b ON a.k = b.k""",
    ),
    Trial(
        "outer join by condition",
        """SELECT a.v, b.v AS bv FROM A WINDOW(ROWS 4) a
           FULL JOIN B WINDOW(ROWS 4) b ON a.v < b.v""",
    ),
    Trial(
        "lookup",
        """SELECT a.v, b.v AS bv FROM A WINDOW(NOW) a
           JOIN B WINDOW(PARTITION BY k ROWS 2) b ON a.k = b.k""",
    ),
    Trial(
        "lookup by condition",
        "SELECT a.v, b.v AS bv FROM A WINDOW(NOW) a LEFT JOIN B WINDOW(ROWS 4) b ON a.v < b.v",
    ),
    Trial("distinct", "SELECT DISTINCT k FROM A WINDOW(ROWS 100)"),
    Trial(
        "difference",
        "SELECT k FROM A WINDOW(ROWS 100) EXCEPT ALL SELECT k FROM B WINDOW(ROWS 100)",
    ),
    Trial(
        "aggregate of signed elements",
        "SELECT k, MAX(v) AS m, SUM(v) AS s FROM A WINDOW(RANGE 1000) GROUP BY k",
        choices=_SIGNED,
    ),
    Trial(
        "aggregate of an aggregate",
        """SELECT MAX(n) AS m FROM
           (SELECT k, COUNT(*) AS n FROM A WINDOW(RANGE 1000) GROUP BY k) c""",
    ),
    Trial("top 10", "SELECT k, v FROM A WINDOW(ROWS 100) ORDER BY v DESC LIMIT 10"),
    Trial(
        "granules",
        """SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM A WINDOW(RANGE 1000) GROUP BY k)
           GRANULARITY(100) c""",
    ),
    Trial(
        "count window over counts",
        """SELECT MAX(n) AS m FROM ISTREAM(SELECT k, COUNT(*) AS n FROM A WINDOW(RANGE 1000)
           GROUP BY k) WINDOW(ROWS 100) c""",
    ),
    Trial("changes", "SELECT k, v FROM A WINDOW(ROWS 100) EMIT CHANGES"),
    Trial(
        "counts as intervals, joined",
        """SELECT a.k, a.n, b.v
           FROM (SELECT k, COUNT(*) AS n FROM A WINDOW(RANGE 1000) GROUP BY k) a
           JOIN B WINDOW(RANGE 100) b ON a.k = b.k""",
        choices=_INTERVALS,
    ),
)


@lru_cache
def streams(rows: int) -> Mapping[str, pa.Table]:
    """One row per unit of time on each of three streams."""
    return {name: _stream(seed, rows) for seed, name in enumerate("ABC")}


def _stream(seed: int, rows: int) -> pa.Table:
    random = np.random.default_rng(seed)
    keys = random.integers(0, KEYS, rows)
    return pa.table({"t": np.arange(rows), "k": keys, "v": random.random(rows)})


@dataclass(frozen=True)
class Cost:
    """Per row: seconds, and elements and events examined; the total of results."""

    seconds: float
    touched: float
    results: int


def cost(trial: Trial, rows: int, batch: int) -> Cost:
    """The cost of all rows of the streams, in batches of this size."""
    data = streams(rows)
    drive = Drive(physical(trial.sql, data, choices=trial.choices, rewrite=trial.rewrite), data)
    gc.collect()
    seconds = drive.timed(rows, batch)
    total = sum(drive.read.values())
    return Cost(seconds, drive.touched / total, drive.rows_out)


@dataclass(frozen=True)
class Measured:
    trial: Trial
    seconds: Mapping[int, float]  # by size of the batch

    @property
    def ratio(self) -> float:
        return self.seconds[max(self.seconds)] / self.seconds[min(self.seconds)]

    @property
    def holds(self) -> bool:
        return self.ratio <= BOUND


def measure(names: Sequence[str] = (), sizes: Sequence[int] = SIZES) -> Iterator[Measured]:
    for trial in TRIALS:
        if names and not any(name in trial.name for name in names):
            continue
        cost(trial, sizes[0], sizes[0])  # compiles
        yield Measured(
            trial,
            {
                size: median(
                    cost(trial, max(size, 10 * sizes[0]), size).seconds for _ in range(RUNS)
                )
                for size in sizes
            },
        )


def report(names: Sequence[str] = (), sizes: Sequence[int] = SIZES) -> bool:
    """Print the results; returns whether all bounds hold."""
    print(f"Flat cost: µs per row in batches of {sizes[0]:,} to {sizes[-1]:,} rows")
    print(f"{'query':34}" + "".join(f"{size:>12,}" for size in sizes) + f"{'ratio':>8}")
    held = True
    for measured in measure(names, sizes):
        costs = "".join(f"{1e6 * seconds:>12.2f}" for seconds in measured.seconds.values())
        missed = "" if measured.holds else "  MISSED"
        print(f"{measured.trial.name:34}{costs}{measured.ratio:>8.2f}{missed}", flush=True)
        held &= measured.holds
    return held
