"""Flat cost: the cost per row does not depend on the length of the window.

The same stream goes through each operator with a window 64 times as long. Keys drift: equal ones
lie within the shorter window, so both windows give the same number of results. The longer window is
full before timing starts, and the timed part is as long as it. Times are processor time. Both
windows are timed in turn, part by part, so that other load on the machine affects them alike;
`touched` counts the elements and events that operators examine, which is free of noise.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import mean

import numpy as np
import pyarrow as pa

from benchmarks.driving import Drive, Rewrite, physical
from millstream.optimizer.choice import Approach, Choices
from millstream.optimizer.multi_way import multi_way
from millstream.physical.joins.areas.forms import AreaChoice

TIMES = 64
SMALL = 10_000
BATCHES = (1_000, 10_000)
NEAR = 500  # equal keys lie within this many rows of each other
PARTITIONS = 100
PARTS = 16  # of the timed stream
LOOKS = 1.25  # an event of a calendar may be moved to a narrower partition, once

Text = Callable[[int], str]  # of the window


@dataclass(frozen=True)
class Trial:
    name: str
    sql: Text
    bound: float = 2.0
    choices: Choices | None = None
    rewrite: Rewrite | None = None
    drifting: bool = True  # else one key per partition


def _select(columns: str, *streams: str, rest: str = "") -> Text:
    def text(window: int) -> str:
        windows = ", ".join(f"{s} WINDOW(RANGE {window}) {s.lower()}" for s in streams)
        return f"SELECT {columns} FROM {windows} {rest}".replace("$w", str(window))

    return text


_JOIN = _select("a.k, a.v AS av, b.v AS bv", "A", "B", rest="WHERE a.k = b.k")
_SIGNED = Choices(approach=Approach.SIGNED)
_INTERVALS = Choices(approach=Approach.INTERVALS)
_CALENDAR = Choices(areas=AreaChoice(calendar=True))

TRIALS: Sequence[Trial] = (
    Trial("ring join", _JOIN, 1.3),
    Trial("calendar join", _JOIN, choices=_CALENDAR),
    Trial("keyed join of signed elements", _JOIN, choices=_SIGNED),
    Trial(
        "join of three in one operator",
        _select(
            "a.k, a.v, b.v AS bv, c.v AS cv", "A", "B", "C", rest="WHERE a.k = b.k AND b.k = c.k"
        ),
        rewrite=multi_way,
    ),
    Trial("distinct", _select("DISTINCT k", "A")),
    Trial("distinct of signed elements", _select("DISTINCT k", "A"), choices=_SIGNED),
    Trial("difference", _select("k", "A", rest="EXCEPT ALL SELECT k FROM B WINDOW(RANGE $w)")),
    Trial(
        "semi-join",
        _select(
            "a.*", "A", rest="WHERE EXISTS (SELECT 1 FROM B WINDOW(RANGE $w) b WHERE b.k = a.k)"
        ),
    ),
    Trial(
        "anti-join",
        _select(
            "a.*", "A", rest="WHERE NOT EXISTS (SELECT 1 FROM B WINDOW(RANGE $w) b WHERE b.k = a.k)"
        ),
    ),
    Trial(
        "outer join",
        _select("a.k, a.v, b.v AS bv", "A", rest="LEFT JOIN B WINDOW(RANGE $w) b ON a.k = b.k"),
    ),
    Trial("COUNT by key", _select("k, COUNT(*) AS n", "A", rest="GROUP BY k")),
    Trial("SUM by key", _select("k, SUM(v) AS s", "A", rest="GROUP BY k")),
    Trial("MAX by key", _select("k, MAX(v) AS m", "A", rest="GROUP BY k")),
    Trial("COUNT, SUM, MAX of all", _select("COUNT(*) AS n, SUM(v) AS s, MAX(v) AS m", "A")),
    Trial(
        "MAX by key of signed elements",
        _select("k, MAX(v) AS m", "A", rest="GROUP BY k"),
        choices=_SIGNED,
    ),
    Trial(
        "difference as intervals, joined",
        _select(
            "n.k, c.v",
            "C",
            rest="""JOIN (SELECT k FROM A WINDOW(RANGE $w)
                EXCEPT ALL SELECT k FROM B WINDOW(RANGE $w)) n ON n.k = c.k""",
        ),
        choices=_INTERVALS,
    ),
    Trial(
        "COUNT as intervals, joined",
        _select(
            "n.k, n.n, c.v",
            "C",
            rest="""JOIN (SELECT k, COUNT(*) AS n FROM A WINDOW(RANGE $w) GROUP BY k) n
                ON n.k = c.k""",
        ),
        choices=_INTERVALS,
    ),
    Trial("count window, settled", lambda w: f"SELECT k, v FROM A WINDOW(ROWS {w})"),
    Trial("SUM over a count window", lambda w: f"SELECT SUM(v) AS s FROM A WINDOW(ROWS {w})"),
    Trial(
        "partitioned window",
        lambda w: f"SELECT k, v FROM A WINDOW(PARTITION BY k ROWS {w // PARTITIONS}) EMIT CHANGES",
        drifting=False,
    ),
    Trial("top 10", _select("k, v", "A", rest="ORDER BY v DESC LIMIT 10")),
    Trial("ISTREAM", lambda w: f"SELECT * FROM ISTREAM(SELECT k FROM A WINDOW(RANGE {w})) x"),
    Trial("DSTREAM", lambda w: f"SELECT * FROM DSTREAM(SELECT k FROM A WINDOW(RANGE {w})) x"),
    Trial("expire: changes", lambda w: f"SELECT k, v FROM A WINDOW(RANGE {w}) EMIT CHANGES"),
)


@lru_cache
def streams(rows: int, drifting: bool = True) -> Mapping[str, pa.Table]:
    """One row per unit of time on each of three streams; about two rows of each key on each."""
    return {name: _stream(seed, rows, drifting) for seed, name in enumerate("ABC")}


def _stream(seed: int, rows: int, drifting: bool) -> pa.Table:
    random = np.random.default_rng(seed)
    times = np.arange(rows)
    drift = (times + random.integers(0, NEAR, rows)) // 2
    columns = {
        "t": times,
        "k": drift if drifting else random.integers(0, PARTITIONS, rows),
        "v": random.random(rows),
    }
    return pa.table(columns)


@dataclass(frozen=True)
class Cost:
    """Per row: seconds, and elements and events examined."""

    seconds: float
    touched: float
    results: float


@dataclass(frozen=True)
class Measured:
    trial: Trial
    batch: int
    small: Cost
    large: Cost

    @property
    def ratio(self) -> float:
        return self.large.seconds / self.small.seconds

    @property
    def touched_ratio(self) -> float:
        return self.large.touched / self.small.touched if self.small.touched else 1.0

    @property
    def holds(self) -> bool:
        return self.ratio <= self.trial.bound and self.touched_ratio <= LOOKS


def costs(
    trial: Trial, windows: Sequence[int], full: int, timed: int, batch: int, parts: int = PARTS
) -> list[Cost]:
    """The cost of rows after every window is full, for each window."""
    data = streams(full + timed, trial.drifting)
    runs = [_Run(trial, window, data, full, batch) for window in windows]
    gc.collect()
    for _ in range(parts):
        for run in runs:
            run.time(timed // parts, batch)
    return [run.cost for run in runs]


class _Run:
    """A trial with one window, which is full."""

    def __init__(
        self, trial: Trial, window: int, data: Mapping[str, pa.Table], full: int, batch: int
    ) -> None:
        plan = physical(trial.sql(window), data, choices=trial.choices, rewrite=trial.rewrite)
        self._drive = Drive(plan, data)
        self._drive.push_rows(full, batch)
        self._touched, self._given = self._drive.touched, self._drive.rows_out
        self._seconds: list[float] = []  # per row
        self._rows = 0

    def time(self, rows: int, batch: int) -> None:
        self._seconds.append(self._drive.timed(rows, batch))
        self._rows += rows * len(self._drive.read)

    @property
    def cost(self) -> Cost:
        touched, given = self._drive.touched - self._touched, self._drive.rows_out - self._given
        return Cost(mean(self._seconds), touched / self._rows, given / self._rows)


def measure(
    names: Sequence[str] = (), small: int = SMALL, batches: Sequence[int] = BATCHES
) -> Iterator[Measured]:
    large = small * TIMES
    for trial in TRIALS:
        if names and not any(name in trial.name for name in names):
            continue
        for batch in batches:
            costs(trial, [small], batch, batch, batch, parts=1)  # compiles
            yield Measured(trial, batch, *costs(trial, [small, large], 2 * large, large, batch))


def heading() -> str:
    return (
        f"{'operator':32}{'batch':>8}{'µs/row':>9}{'64 × window':>13}{'ratio':>8}{'bound':>7}"
        f"{'touched':>10}{'64 ×':>8}{'results':>9}{'64 ×':>7}"
    )


def line(m: Measured) -> str:
    return (
        f"{m.trial.name:32}{m.batch:>8,}{1e6 * m.small.seconds:>9.2f}"
        f"{1e6 * m.large.seconds:>13.2f}{m.ratio:>8.2f}{m.trial.bound:>7}"
        f"{m.small.touched:>10.2f}{m.large.touched:>8.2f}"
        f"{m.small.results:>9.2f}{m.large.results:>7.2f}" + ("" if m.holds else "  MISSED")
    )


def report(names: Sequence[str] = (), small: int = SMALL) -> bool:
    """Print the results; returns whether all bounds hold."""
    print(f"Flat cost: a window of {small:,} rows, and one of {small * TIMES:,}")
    print(heading())
    held = True
    for measured in measure(names, small):
        print(line(measured), flush=True)
        held &= measured.holds
    return held
