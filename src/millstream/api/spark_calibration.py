"""Measures the cost constants of the Spark engine on this machine: runs queries, and fits constants
to the processor time of all processes of the session.

Each query runs over few and over many rows. In the model its time is a sum over jobs, levels of
fragments, and values that are read, exchanged and answered (`optimizer/cost/spark.py`), besides the
time of its operators. The constants are the least-squares solution for relative errors.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millstream.api.calibration import not_negative
from millstream.fragments.cutting import placing
from millstream.model.errors import QueryError
from millstream.optimizer.cost.work import SPARK, Handling

if TYPE_CHECKING:
    from millstream.api.session import Session

SIZES = (1_000, 1_000_000)  # rows of each stream
RATE = 350_000  # rows per second of each stream
REPEATS = 2  # the minimum counts, after one warm-up run

QUERIES = (
    "SELECT v FROM A WHERE k + v < 0",
    "SELECT k, v FROM A",
    "SELECT k % 100 AS g, COUNT(*) AS n FROM A WINDOW(RANGE 1 SECOND) "
    "GRANULARITY(100 MILLISECONDS) GROUP BY k % 100",
    "SELECT k, v FROM A WINDOW(RANGE 1 SECOND) EMIT CHANGES",
    "SELECT A.v, B.v AS w FROM A WINDOW(RANGE 1 SECOND), B WINDOW(RANGE 1 SECOND) "
    "WHERE A.k = B.k AND A.v < B.v",
)


@dataclass(frozen=True)
class RunTiming:
    """The work of a run, and its nanoseconds without its operators."""

    counts: Mapping[Handling, float]
    nanoseconds: float


def calibrate(tell: Callable[[int, int], None] = lambda done, all: None) -> dict[Handling, float]:
    """The constants of this machine; `tell` is called with the number of queries done and the
    total."""
    from millstream.api.session import Session

    processor_time()  # fails early where this is not possible
    session = Session(engine="spark")
    observations, todo = [], [(rows, sql) for rows in SIZES for sql in QUERIES]
    for number, (rows, sql) in enumerate(todo):
        tell(number, len(todo))
        observations.append(observed(session, sql, rows))
    return fitted(observations)


def observed(session: Session, sql: str, rows: int) -> RunTiming:
    for seed, name in enumerate("AB"):
        session.stream(name, _rows(rows, seed), time="t", unit="microseconds")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        query = session.sql(sql)
    estimates, span = query.estimates(), rows * 1_000_000 / RATE
    took = []
    for _ in range(REPEATS + 1):
        before = processor_time()
        answer = query.run()
        took.append((processor_time() - before) * 1e9)
    counts = dict(zip(_COUNTED, (each.count * span for each in estimates.engine), strict=True))
    counts |= {  # measured, not estimated
        Handling.JOB: 1.0,
        Handling.LEVEL: float(placing(query.physical_plan, 1).levels),
        Handling.ANSWER: float(answer.num_rows * answer.num_columns),
    }
    operators = sum(own.cost for _, own in estimates) * span
    session.sql(f"DROP QUERY `{query.name}`")
    for name in "AB":
        session.sql(f"DROP STREAM {name}")
    return RunTiming(counts, max(min(took[1:]) - operators, 0.0))


_COUNTED = (Handling.JOB, Handling.READ, Handling.EXCHANGE, Handling.ANSWER)


def _rows(count: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    columns = {
        "t": np.arange(count) * 1_000_000 // RATE,
        "k": random.integers(0, 1_000_000, count),
        "v": random.integers(0, 1_000, count),
    }
    return pa.table(columns)


def fitted(observations: Sequence[RunTiming]) -> dict[Handling, float]:
    """Least squares of relative errors; constants without observations keep their defaults."""
    counts = np.array([[each.counts.get(h, 0.0) for h in Handling] for each in observations])
    took = np.array([each.nanoseconds for each in observations])
    scale = 1 / np.maximum(took, 1.0)
    sizes = np.maximum(counts.max(axis=0), 1e-300)  # scales the unknowns
    found = not_negative(counts / sizes * scale[:, None], took * scale) / sizes
    seen = counts.sum(axis=0) > 0
    known = zip(Handling, found, seen, strict=True)
    return {h: float(value) if is_seen else SPARK[h] for h, value, is_seen in known}


def processor_time() -> float:
    """Processor seconds of this process and its descendants so far: the JVM, its Python workers and
    the keepers."""
    try:
        stats = [path.read_text() for path in Path("/proc").glob("[0-9]*/stat") if path.exists()]
    except OSError:
        return processor_time()  # a process has just ended
    if not stats:
        raise QueryError(
            "the processor time of Spark's processes cannot be measured on this system",
            help="measure on Linux; until then the defaults are used",
        )
    parents: dict[int, int] = {}
    spent: dict[int, int] = {}
    for stat in stats:
        fields = stat.rpartition(")")[2].split()
        process = int(stat.split(" ", 1)[0])
        parents[process] = int(fields[1])
        spent[process] = sum(map(int, fields[11:15]))  # its own, and that of ended children
    own = os.getpid()
    ticks = sum(time for process, time in spent.items() if _is_below(process, own, parents))
    return ticks / os.sysconf("SC_CLK_TCK")


def _is_below(process: int, ancestor: int, parents: Mapping[int, int]) -> bool:
    while process in parents:
        if process == ancestor:
            return True
        process = parents[process]
    return False
