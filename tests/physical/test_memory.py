"""State follows what holds, not what has come: no operator remembers rows that are gone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import millstream as ms
from millstream.logical.aggregates import lookup, names
from millstream.optimizer.choice import choose
from millstream.optimizer.multi_way import multi_way
from millstream.physical.batch import Batch
from millstream.physical.operator import Context, PhysicalPlan
from millstream.physical.operators.outer_join import OuterJoin
from millstream.physical.operators.semi_join import SemiJoin
from millstream.runtime.graph import Graph

QUERIES = [
    "SELECT x FROM s [ROWS 100]",
    "SELECT x FROM s [PARTITION BY k ROWS 20]",
    "SELECT DISTINCT x FROM s [RANGE 500]",
    "SELECT MAX(x), FIRST(x) FROM s [RANGE 500]",
    "SELECT x, COUNT(*) FROM s [RANGE 500] GROUP BY x",
    "SELECT k, MAX(x) FROM s [RANGE 500] GROUP BY k",
    "SELECT x FROM s [RANGE 500] ORDER BY x LIMIT 3",
    "SELECT x FROM s [RANGE 500] EXCEPT ALL SELECT x FROM r [RANGE 500]",
    "SELECT x FROM s [RANGE 500] WHERE k IN (SELECT k FROM r [RANGE 100])",
    "SELECT s.x FROM s [RANGE 500] JOIN r [RANGE 500] ON s.x = r.x",
    "SELECT s.x FROM s [ROWS 100] JOIN r [RANGE 500] ON s.x = r.x",
    "SELECT s.x FROM s [RANGE 200] LEFT JOIN r [RANGE 200] ON s.k = r.k AND s.x < r.x",
    "SELECT s.x FROM s [RANGE 500], r [RANGE 500], q [RANGE 500] WHERE s.x = r.x AND r.x = q.x",
    "SELECT x FROM ISTREAM(s)",
    "SELECT s.x, n FROM s WINDOW(RANGE 20) LEFT JOIN (SELECT x, COUNT(*) AS n "
    "FROM r WINDOW(RANGE 10) GROUP BY x) AS g ON s.x = g.x",
]


@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
@pytest.mark.parametrize("text", QUERIES)
def test_memory_does_not_grow(text: str) -> None:
    session = ms.Session()
    for name in "srq":
        session.sql(f"CREATE STREAM {name} (k INT, x STRING, t BIGINT) SOURCE f() ORDERED BY t")
    sizes = sizes_of(multi_way(choose(session.sql(text).plan)))
    assert max(sizes[20:]) <= 1.25 * max(sizes[8:20])


CONSTANT = {
    **{name: f"{name}(x)" for name in ("count", "min", "max", "first", "last")},
    **{name: f"{name}(t)" for name in ("sum", "avg", "var_samp", "var_pop")},
    **{name: f"{name}(t)" for name in ("stddev_samp", "stddev_pop")},
    **{name: f"{name}(k > 3)" for name in ("count_if", "bool_and", "bool_or")},
    **{name: f"{name}(x, t)" for name in ("min_by", "max_by")},
}


def test_aggregates_of_constant_state_are_all_there() -> None:
    assert CONSTANT.keys() == {n for n in names() if lookup(n).constant_state}  # type: ignore[union-attr]


@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
@pytest.mark.parametrize("call", [*CONSTANT.values(), "max(t)", "min(DISTINCT t)"])
def test_aggregates_of_constant_state_keep_no_rows(call: str) -> None:
    session = ms.Session()
    session.sql("CREATE STREAM s (k INT, x STRING, t BIGINT) SOURCE f() ORDERED BY t")
    sizes = sizes_of(choose(session.sql(f"SELECT {call} FROM s WINDOW(UNBOUNDED)").plan))
    assert max(sizes[20:]) <= 1.25 * max(sizes[8:20])


def sizes_of(plan: PhysicalPlan) -> list[int]:
    """How much the state takes while new strings come and go, at a steady rate."""
    graph = Graph(plan, Context(), lambda batch: None)
    sizes = []
    for first in range(0, 16_000, 400):
        times = np.arange(first, first + 400)
        columns = [
            pa.array((times % 7).astype(np.int32)),
            pa.array([f"{time:09d}" for time in times]),
            pa.array(times),
            pa.array(times),  # the place of arrival, where a source gives it
        ]
        for vertices in graph.sources.values():
            for vertex in vertices:
                own = columns[: len(vertex.node.types)]
                graph.push(vertex, Batch.of(own, times, times + 1, None, int(times[-1])))
        sizes.append(sum(vertex.operator.nbytes for vertex in graph.vertices))
    return sizes


WINDOWS = ["ROWS 10", "PARTITION BY k ROWS 10", "RANGE 100"]
BESIDE = [
    "SELECT s.x, r.x FROM s WINDOW({w}) LEFT JOIN r WINDOW({w}) ON s.k = r.k",
    "SELECT s.x, r.x FROM s WINDOW({w}) RIGHT JOIN r WINDOW({w}) ON s.k = r.k",
    "SELECT s.x, r.x FROM s WINDOW({w}) FULL JOIN r WINDOW({w}) ON s.k = r.k",
    "SELECT s.x, r.x FROM s WINDOW({w}) FULL JOIN r WINDOW({w}) ON s.k = r.k AND s.x < r.x",
    "SELECT x FROM s WINDOW({w}) WHERE k IN (SELECT k FROM r WINDOW({w}))",
    "SELECT x FROM s WINDOW({w}) WHERE NOT EXISTS (SELECT 1 FROM r WINDOW({w}) WHERE r.k = s.k)",
]


@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("text", BESIDE)
def test_rows_that_are_ahead_of_another_stream_wait_in_little_space(text: str, window: str) -> None:
    """The stream r has stopped, and s continues: its rows must be kept, and little more."""
    session = ms.Session()
    for name in "sr":
        session.sql(f"CREATE STREAM {name} (k BIGINT, x BIGINT, t BIGINT) SOURCE f() ORDERED BY t")
    graph = Graph(choose(session.sql(text.format(w=window)).plan), Context(), lambda batch: None)
    rows = 100_000

    def push(stream: str, times: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        columns = [pa.array(times % 1000), *(pa.array(times) for _ in range(3))]
        for vertex in graph.sources[stream]:
            own = columns[: len(vertex.node.types)]
            graph.push(vertex, Batch.of(own, times, times + 1, None, int(times[-1])))

    push("r", np.arange(1))
    for first in range(0, rows, 1_000):
        push("s", np.arange(first, first + 1_000))
    assert sum(vertex.operator.nbytes for vertex in graph.vertices) <= 4 * rows * 24
    for first in range(1_000, rows, 1_000):
        push("r", np.arange(first, first + 1_000))
    gated = (v.operator for v in graph.vertices if isinstance(v.node, OuterJoin | SemiJoin))
    assert all(sum(map(len, operator._gated._waiting)) <= 2_000 for operator in gated)
