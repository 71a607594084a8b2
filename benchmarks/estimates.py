"""Compares the estimates of the cost model with measurements.

    python -m benchmarks estimates

Streams of known rates with random arrivals go through the operators of each query. Once its windows
are full, the output rows, the rows of state and the processor time are measured and compared with
the estimates. The model knows only what a sample of the rows shows (`sampled`). Estimates get worse
with the height of a plan (K §24.4), so errors are also printed by height.
"""

from __future__ import annotations

import statistics as numbers
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

import millstream as ms
from millstream.connectors.intake.checking import records_of
from millstream.logical.catalog import Stream
from millstream.model.names import Name
from millstream.model.records import Records
from millstream.optimizer.cost import Estimates, estimate, known_constants
from millstream.optimizer.sampling import sampled, span_of
from millstream.optimizer.statistics import Statistics
from millstream.physical.operator import Context, PhysicalPlan
from millstream.runtime.bounded import source_batch
from millstream.runtime.graph import Graph

SECOND = 1_000_000
SLICE = SECOND // 10  # the duration of a batch
RATES = {"A": 2000, "B": 1000, "C": 500}  # rows per second


def queries_of(path: Path) -> dict[str, str]:
    """The statements of a file, by the name above each."""
    parts = (part.partition("\n") for part in path.read_text().split("-- name:")[1:])
    return {name.strip(): text.split(";")[0] for name, _, text in parts}


QUERIES = queries_of(Path(__file__).with_suffix(".sql"))


@lru_cache
def streams(seconds: int) -> dict[str, pa.Table]:
    """A, B and C arrive at random, R at equal intervals; k has 100 values, u 10,000, v 1,000, x
    any."""
    made = {}
    for seed, (name, rate) in enumerate({**RATES, "R": 1000}.items()):
        random = np.random.default_rng(seed)
        rows = rate * seconds
        times = np.sort(random.integers(0, seconds * SECOND, rows))
        if name == "R":
            times = np.arange(rows) * (SECOND // rate)
        made[name] = pa.table(
            {
                "t": times,
                "k": random.integers(0, 100, rows),
                "u": random.integers(0, 10_000, rows),
                "v": random.integers(0, 1000, rows),
                "x": random.random(rows),
            }
        )
    return made


@dataclass(frozen=True)
class Measured:
    """Output rows and processor time per second, and the average rows and bytes of state."""

    rate: float
    rows: float
    bytes: float
    seconds: float
    by_operator: Mapping[int, tuple[float, float, float]]


@dataclass(frozen=True)
class Comparison:
    name: str
    height: int
    estimates: Estimates
    measured: Measured

    @property
    def rate(self) -> float:
        return self.estimates.output.elements * self.estimates.statistics.second

    def error(self, estimated: float, measured: float) -> float | None:
        """The relative error; None if there is too little data."""
        return None if measured < 1 else abs(estimated - measured) / measured

    @property
    def rate_error(self) -> float | None:
        return self.error(self.rate, self.measured.rate)

    @property
    def rows_error(self) -> float | None:
        return self.error(self.estimates.rows, self.measured.rows)

    @property
    def bytes_error(self) -> float | None:
        """Only for many rows: an empty operator takes some kilobytes."""
        few = self.measured.rows < 1000
        return None if few else self.error(self.estimates.bytes, self.measured.bytes)

    @property
    def pace(self) -> float:
        """The measured time as a multiple of the estimate."""
        return self.measured.seconds / self.estimates.share


def planned(sql: str, seconds: int) -> tuple[PhysicalPlan, Statistics, dict[str, Records]]:
    session = ms.Session(engine="local")
    for name, table in streams(seconds).items():
        session.stream(name, table, time="t", unit="MICROSECONDS")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        query = session.sql(sql)
    used = session.catalog.queries[-1].depends_on
    known, records = {}, {}
    for name in used:
        stream = session.catalog.stream(Name(name, quoted=True))
        assert isinstance(stream, Stream)
        records[name] = records_of(stream, streams(seconds)[name])
        known[name] = sampled(stream, records[name], len(records[name]) * SLICE / SECOND / seconds)
    told = Statistics(known, query.plan.domain, horizon=span_of(records))
    return query.physical_plan, told, records


def measure(plan: PhysicalPlan, records: Mapping[str, Records], warm: int, end: int) -> Measured:
    """From when windows are full until the end, in chronons."""
    graph = Graph(plan, Context(), lambda batch: batch.gathered())
    for until in range(SLICE, warm + 1, SLICE):
        pushed(graph, records, until)
    before = {id(v): (v.rows_out, v.seconds) for v in graph.vertices}
    state = dict.fromkeys(before, 0.0)
    spent = size = 0.0
    slices = range(warm + SLICE, end + 1, SLICE)
    for until in slices:
        spent += pushed(graph, records, until)
        for vertex in graph.vertices:
            state[id(vertex)] += vertex.operator.rows / len(slices)
            size += vertex.operator.nbytes / len(slices)
    span = (end - warm) / SECOND
    by_operator = {
        id(v.node): (
            (v.rows_out - before[id(v)][0]) / span,
            state[id(v)],
            (v.seconds - before[id(v)][1]) / span,
        )
        for v in graph.vertices
    }
    rows = sum(state.values())
    return Measured(by_operator[id(plan)][0], rows, size, spent / span, by_operator)


def pushed(graph: Graph, records: Mapping[str, Records], until: int) -> float:
    """Push one slice of time; returns the processor time of the operators."""
    spent = 0.0
    for name, vertices in graph.sources.items():
        first, last = np.searchsorted(records[name].start, [until - SLICE, until])
        rows = records[name].slice(int(first), int(last))
        for vertex in vertices:
            batch = source_batch(vertex.node, rows, int(first), until)
            began = time.process_time()
            graph.push(vertex, batch)
            spent += time.process_time() - began
    return spent


def height(plan: PhysicalPlan) -> int:
    return 1 + max(map(height, plan.inputs), default=0)


def compare(seconds: int, names: Sequence[str] = ()) -> Iterator[Comparison]:
    constants = known_constants()
    for name, sql in QUERIES.items():
        if names and name not in names:
            continue
        plan, known, records = planned(sql, seconds)
        measure(plan, records, 2 * SLICE, 4 * SLICE)  # compiles what it needs
        found = measure(plan, records, 11 * SECOND, seconds * SECOND)
        yield Comparison(name, height(plan), estimate(plan, known, constants), found)


def report(quick: bool = False) -> None:
    print(_line("query", "height", *("measured", "estimate", "error") * 3))
    print(_line("", "", "rows/s", "", "", "state", "", "", "processor", "", ""))
    done = []
    for each in compare(16 if quick else 31):
        done.append(each)
        found = each.measured
        rates = f"{found.rate:,.1f}", f"{each.rate:,.1f}", _share(each.rate_error)
        rows = f"{found.rows:,.0f}", f"{each.estimates.rows:,.0f}", _share(each.rows_error)
        cpu = f"{found.seconds:.2%}", f"{each.estimates.share:.2%}", f"×{each.pace:.2f}"
        print(_line(each.name, str(each.height), *rates, *rows, *cpu), flush=True)
    print()
    for tall in sorted({each.height for each in done}):
        _tell(f"height {tall}", [each for each in done if each.height == tall])
    _tell("all", done)
    pace = numbers.median(each.pace for each in done)
    apart = [abs(each.pace / pace - 1) for each in done]
    print(
        f"\nprocessor: {pace:.2f} times the estimate in the median; relative to that, queries are "
        f"{numbers.fmean(apart):.0%} off on average, {numbers.median(apart):.0%} in the median"
    )


def _line(name: str, *cells: str) -> str:
    return f"{name:<24}{cells[0]:>7}" + "".join(f"{cell:>11}" for cell in cells[1:])


def _tell(title: str, some: Sequence[Comparison]) -> None:
    errors = [
        [error for error in (getattr(each, kind) for each in some) if error is not None]
        for kind in ("rate_error", "rows_error", "bytes_error")
    ]
    rate, rows, size = (numbers.fmean(each) if each else 0.0 for each in errors)
    print(
        f"{title:<26}{len(some):>3} queries   mean error: "
        f"rate {rate:.1%}, rows of state {rows:.1%}, bytes {size:.1%}"
    )


def _share(error: float | None) -> str:
    return "" if error is None else f"{error:.1%}"
