"""Measures the cost constants of this machine: runs queries, and fits constants to the time of
their operators.

In the model, the time of an operator is a sum over primitive operations and batches (`work.py`),
linear in the constants. So each operator of each query, with few and with many rows per batch, is
an equation, and the constants are the non-negative least-squares solution for relative errors.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millstream.model.records import Records
from millstream.optimizer.choice import Choices, choose
from millstream.optimizer.cost.estimate import FORMULAS, Estimates, estimate
from millstream.optimizer.cost.work import BATCHES, PRIMITIVES, Constants, Primitive
from millstream.optimizer.multi_way import multi_way
from millstream.optimizer.optimize import optimize
from millstream.optimizer.sampling import sampled
from millstream.optimizer.statistics import Statistics, StreamStatistics
from millstream.physical.batch import Batch
from millstream.physical.joins.areas.area import Probing
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.operator import Context, PhysicalPlan
from millstream.runtime.bounded import source_batch
from millstream.runtime.graph import Graph

if TYPE_CHECKING:
    from millstream.api.query import Query

Planning: TypeAlias = "Callable[[Query], PhysicalPlan]"

SECOND = 1_000_000
RATE = 10_000  # rows per second of each stream
WARM = 2 * SECOND  # windows are full by then
PHASES = ((100, SECOND // 2), (5000, 5 * SECOND // 2))  # rows per batch, and the duration
REPEATS = 3  # the minimum counts, because of other load on the machine
LEAST = 2000.0  # nanoseconds; shorter times are not distinguished

QUERIES = (
    "SELECT k FROM A WHERE k = 7",
    "SELECT v FROM A WHERE v < 500 AND k <> 3",
    "SELECT v * 2 + 1 AS w, x / 2 + v AS y FROM A WHERE x < 0.5 OR v % 2 = 0",
    "SELECT k FROM A UNION ALL SELECT k FROM B",
    "SELECT v FROM A WINDOW(RANGE 1 SECOND SLIDE 100 MILLISECONDS)",
    "SELECT k, v FROM A WINDOW(RANGE 1 SECOND) EMIT CHANGES",
    "SELECT ISTREAM(u) FROM A WINDOW(RANGE 1 SECOND)",
    "SELECT v, x FROM A WINDOW(ROWS 10000)",
    "SELECT v FROM A WINDOW(PARTITION BY k ROWS 100) EMIT CHANGES",
    "SELECT A.v, B.x FROM A WINDOW(RANGE 1 SECOND), B WINDOW(RANGE 1 SECOND) WHERE A.u = B.u",
    "SELECT A.v, B.x FROM A WINDOW(RANGE 100 MILLISECONDS), B WINDOW(RANGE 100 MILLISECONDS) "
    "WHERE A.k = B.k",
    "SELECT A.v FROM A WINDOW(RANGE 200 MILLISECONDS), B WINDOW(RANGE 200 MILLISECONDS) "
    "WHERE A.k = B.k AND A.v < B.v",
    "SELECT A.v FROM A WINDOW(RANGE 1 SECOND), B WINDOW(RANGE 500 MILLISECONDS), "
    "C WINDOW(RANGE 1 SECOND) WHERE A.u = B.u AND B.u = C.u",
    "SELECT A.v, B.x FROM A WINDOW(ROWS 5000), B WINDOW(ROWS 5000) WHERE A.u = B.u",
    "SELECT v FROM A WINDOW(RANGE 1 SECOND) "
    "WHERE EXISTS (SELECT 1 FROM B WINDOW(RANGE 1 SECOND) WHERE B.u = A.u)",
    "SELECT v FROM A WINDOW(RANGE 200 MILLISECONDS) "
    "WHERE NOT EXISTS (SELECT 1 FROM B WINDOW(RANGE 20 MILLISECONDS) WHERE B.k = A.k)",
    "SELECT A.v, B.x FROM A WINDOW(RANGE 1 SECOND) LEFT JOIN B WINDOW(RANGE 500 MILLISECONDS) "
    "ON A.u = B.u",
    "SELECT A.v, B.x FROM A, B WINDOW(PARTITION BY u ROWS 1) WHERE A.u = B.u",
    "SELECT COUNT(*) AS n FROM A WINDOW(RANGE 1 SECOND)",
    "SELECT SUM(v) AS s, MAX(v) AS m FROM A WINDOW(RANGE 1 SECOND)",
    "SELECT k, COUNT(*) AS n FROM A WINDOW(RANGE 1 SECOND) GROUP BY k",
    "SELECT u, SUM(v) AS s FROM A WINDOW(RANGE 1 SECOND) GROUP BY u EMIT CHANGES",
    "SELECT k, AVG(x) AS s FROM A WINDOW(RANGE 1 SECOND) GRANULARITY(2 MILLISECONDS) GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM A WINDOW(ROWS 5000) GROUP BY k",
    "SELECT DISTINCT u FROM A WINDOW(RANGE 1 SECOND)",
    "SELECT u FROM A WINDOW(RANGE 1 SECOND) EXCEPT SELECT u FROM B WINDOW(RANGE 1 SECOND)",
    "SELECT s.n, COUNT(*) AS m FROM (SELECT u, COUNT(*) AS n FROM A WINDOW(RANGE 1 SECOND) "
    "GROUP BY u) s GROUP BY s.n",
    "SELECT v, x FROM A WINDOW(RANGE 200 MILLISECONDS) ORDER BY x DESC LIMIT 5",
    "SELECT m FROM (SELECT k, COUNT(*) AS m FROM A WINDOW(RANGE 1 SECOND) GROUP BY k) s "
    "WINDOW(RANGE 1 SECOND) GRANULARITY(1 MILLISECOND)",
)
LOOPS = (  # nested-loop joins
    "SELECT A.v, B.x FROM A WINDOW(RANGE 1 SECOND), B WINDOW(RANGE 1 SECOND) WHERE A.u = B.u",
)
AT_ONCE = (  # multi-way joins
    "SELECT A.v FROM A WINDOW(RANGE 1 SECOND), B WINDOW(RANGE 500 MILLISECONDS), "
    "C WINDOW(RANGE 1 SECOND) WHERE A.u = B.u AND B.u = C.u",
)


@dataclass(frozen=True)
class OperatorTiming:
    """The work of an operator, and its time in nanoseconds."""

    operator: str
    work: Mapping[Primitive, float]
    batches: float
    nanoseconds: float


def calibrate(tell: Callable[[int, int], None] = lambda done, all: None) -> Constants:
    """The constants of this machine; `tell` is called with the number of queries done and the
    total."""
    kinds: list[tuple[Sequence[str], Planning]] = [
        (QUERIES, _as_planned),
        (LOOPS, _by_loops),
        (AT_ONCE, _all_at_once),
    ]
    todo = [(sql, planning) for queries, planning in kinds for sql in queries]
    observations: list[OperatorTiming] = []
    for number, (sql, planning) in enumerate(todo):
        tell(number, len(todo))
        observations += observed(sql, planning)
    return fitted(observations)


def _as_planned(query: Query) -> PhysicalPlan:
    """By rules alone: costs are not known yet."""
    return choose(optimize(query.plan), query.emit)


def _by_loops(query: Query) -> PhysicalPlan:
    choices = Choices(areas=AreaChoice(probing=Probing.LOOP))
    return choose(optimize(query.plan), query.emit, choices)


def _all_at_once(query: Query) -> PhysicalPlan:
    return multi_way(choose(query.plan, query.emit))


# --- queries that are observed --------------------------------------------------------------------


def observed(sql: str, planning: Planning = _as_planned) -> list[OperatorTiming]:
    """Each operator of a query, with few and with many rows per batch."""
    plan, known, records = _planned(sql, planning)
    runs = [_timed(plan, records) for _ in range(REPEATS)]
    found = []
    for phase, (rows, span) in enumerate(PHASES):
        estimates = _estimated(plan, known, rows)
        for node, own in estimates:
            least = min(run[phase][id(node)] for run in runs)
            work = {primitive: count * span for primitive, count in own.work.items()}
            found.append(OperatorTiming(type(node).__name__, work, own.batches * span, least))
    return found


def _planned(sql: str, planning: Planning) -> tuple[PhysicalPlan, Statistics, dict[str, Records]]:
    from millstream.api.session import Session

    session = Session(engine="local")
    for seed, name in enumerate("ABC"):
        session.stream(name, _rows(seed), time="t", unit="MICROSECONDS")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        query = session.sql(sql)
    records = session._origins.inputs(query.plan)
    streams = {name: session._origins.stream(name) for name in records}
    known = {name: sampled(streams[name], each) for name, each in records.items()}
    return planning(query), Statistics(known, query.plan.domain), records


def _rows(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    end = WARM + sum(span for _, span in PHASES)
    count = RATE * end // SECOND
    columns = {
        "t": np.sort(random.integers(0, end, count)),
        "k": random.integers(0, 100, count),
        "u": random.integers(0, 10_000, count),
        "v": random.integers(0, 1000, count),
        "x": random.random(count),
    }
    return pa.table(columns)


def _estimated(plan: PhysicalPlan, known: Statistics, rows: int) -> Estimates:
    for name, stream in known.streams.items():
        batched = StreamStatistics(batch=float(rows)).filled(stream)
        known = known.with_stream(name, batched)
    return estimate(plan, known)


def _timed(plan: PhysicalPlan, records: Mapping[str, Records]) -> list[dict[int, float]]:
    """Per phase the nanoseconds of each operator, by node."""
    graph = Graph(plan, Context(), _gather)
    spent: dict[int, float] = {}
    for vertex in graph.vertices:
        spent[id(vertex.node)] = 0.0
        vertex.operator.process = partial(  # type: ignore[method-assign]
            _process, vertex.operator.process, id(vertex.node), spent
        )
    at = _run(graph, records, 0, WARM, 1000)
    phases = []
    for rows, span in PHASES:
        spent.update(dict.fromkeys(spent, 0.0))
        at = _run(graph, records, at, at + span, rows)
        phases.append(dict(spent))
    return phases


def _gather(batch: Batch) -> None:
    batch.gathered()


def _process(
    process: Callable[[int, Batch], Sequence[Batch]],
    node: int,
    spent: dict[int, float],
    port: int,
    batch: Batch,
) -> Sequence[Batch]:
    began = time.thread_time_ns()
    given = process(port, batch)
    spent[node] += time.thread_time_ns() - began
    return given


def _run(graph: Graph, records: Mapping[str, Records], begin: int, end: int, rows: int) -> int:
    """Push the rows between two times, `rows` rows of each stream at a time."""
    step = rows * SECOND // RATE
    for until in range(begin + step, end + 1, step):
        for name, vertices in graph.sources.items():
            first, last = np.searchsorted(records[name].start, [until - step, until])
            part = records[name].slice(int(first), int(last))
            for vertex in vertices:
                graph.push(vertex, source_batch(vertex.node, part, int(first), until))
    return end


# --- constants that explain them ------------------------------------------------------------------


def fitted(observations: Sequence[OperatorTiming]) -> Constants:
    """Least squares of relative errors; constants without observations keep their defaults."""
    operators = [operator.__name__ for operator in FORMULAS]
    unknowns: list[Primitive | str] = [*Primitive, *operators]
    counts = np.array(
        [
            [each.work.get(primitive, 0.0) for primitive in Primitive]
            + [each.batches if each.operator == operator else 0.0 for operator in operators]
            for each in observations
        ]
    )
    took = np.array([each.nanoseconds for each in observations])
    scale = 1 / (took + LEAST)
    found = not_negative(counts * scale[:, None], took * scale)
    seen = counts.sum(axis=0) > 0
    found_of = zip(unknowns, found, seen, strict=True)
    values = {unknown: float(value) for unknown, value, known in found_of if known}
    return Constants(
        {p: values.get(p, PRIMITIVES[p]) for p in Primitive},
        {name: values.get(name, BATCHES[name]) for name in operators},
    )


def not_negative(
    matrix: NDArray[np.float64], wanted: NDArray[np.float64], rounds: int = 500
) -> NDArray[np.float64]:
    """x ≥ 0 that minimizes |matrix·x - wanted|², by coordinate descent.

    >>> not_negative(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, -1.0])).tolist()
    [2.0, 0.0]
    """
    gram, right = matrix.T @ matrix, matrix.T @ wanted
    found = np.zeros(matrix.shape[1])
    used = np.flatnonzero(np.diag(gram) > 0)
    for _ in range(rounds):
        for j in used:
            step = (right[j] - gram[j] @ found) / gram[j, j]
            found[j] = max(0.0, found[j] + step)
    return found
