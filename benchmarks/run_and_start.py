"""The cost of `run` compared with `start`: the same query over the same rows, in one process.

`start` passes each batch of the answer to a function; `run` returns the whole answer as one table,
in normal form and in order. Times are the minimum of several alternating runs.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

import millstream as ms
from benchmarks.nexmark import QUERIES, streams

EVENTS = 2_000_000
BOUND = 1.5  # times as long
TURNS = 3


@dataclass(frozen=True)
class Measured:
    name: str
    run: float  # seconds
    start: float
    rows: int  # of the answer

    @property
    def ratio(self) -> float:
        return self.run / self.start

    @property
    def holds(self) -> bool:
        return self.ratio <= BOUND


def measure(names: list[str], events: int = EVENTS, turns: int = TURNS) -> Iterator[Measured]:
    data = streams(events)
    for name in names:
        runs, starts, rows = [], [], 0
        for _ in range(turns):
            for times, timed in ((starts, _started), (runs, _ran)):
                gc.collect()
                query = _session(data).sql(QUERIES[name])
                assert isinstance(query, ms.Query)
                query.physical_plan  # noqa: B018 - planned before anything is timed
                began = time.perf_counter()
                rows = timed(query)
                times.append(time.perf_counter() - began)
        yield Measured(name, min(runs), min(starts), rows)


def _session(data: Mapping[str, pa.Table]) -> ms.Session:
    session = ms.Session(engine="local")
    for name, table in data.items():
        session.stream(name, table, time="ts")
    return session


def _ran(query: ms.Query) -> int:
    return query.run().num_rows


def _started(query: ms.Query) -> int:
    found = [0]

    def sink(table: pa.Table, batch: object) -> None:
        found[0] += table.num_rows

    query.start(sink).wait()
    return found[0]


def heading() -> str:
    return f"{'query':8}{'start, s':>10}{'run, s':>10}{'ratio':>8}{'rows':>12}"


def line(m: Measured) -> str:
    missed = "" if m.holds else "  MISSED"
    return f"{m.name:8}{m.start:>10.2f}{m.run:>10.2f}{m.ratio:>8.2f}{m.rows:>12,}{missed}"


def report(quick: bool = False) -> bool:
    """Print the results; returns whether the bound holds."""
    events = EVENTS // 20 if quick else EVENTS
    print(f"run beside start: NEXMark, {events:,} events; run takes at most {BOUND} times as long")
    print(heading())
    held = True
    for measured in measure([*QUERIES], events):
        print(line(measured), flush=True)
        held &= measured.holds
    return held
