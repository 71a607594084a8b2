"""G3 (Golab & Özsu 2003): orders of multi-way joins; tables 5 to 8, figures 2 to 4.

Tables 5 to 7 are computed. Figures 2 and 3 compute comparisons per unit of time; here these are
also counted, as the elements that Millstream's multi-way join examines. Figure 4 and table 8 are
measured with it, in rows per second of processor time, on rows generated as in §6.1: one after the
other from a random stream, by the streams' rates. Tables with a number of buckets are implemented
for this: Millstream's own have one bucket per value.

G3 processes one row at a time even if it is lazy; here new rows are processed together, as arrays.
So lazy evaluation pays off where G3 loses, and the fixed cost of each evaluation hides much of the
difference between orders when rows arrive singly. Therefore the examined elements are reported next
to the rates.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pyarrow as pa

from benchmarks.papers.charts import Chart
from benchmarks.papers.join_queries import TABLE_5, TABLE_6, TABLE_7, one_column
from benchmarks.papers.numbers import Findings, Number
from millstream.logical.plan import Field
from millstream.model import types
from millstream.model.arrays import int64
from millstream.model.records import Records
from millstream.optimizer.join_graph import JoinGraph
from millstream.optimizer.multi_way_orders import MultiWay, Orders
from millstream.optimizer.multi_way_search import best_orders
from millstream.papers.multi_way_heuristics import as_they_stand
from millstream.physical.batch import Batch, Ints
from millstream.physical.joins.areas.area import Probing
from millstream.physical.joins.areas.forms import AreaChoice, register_area
from millstream.physical.joins.areas.ring import RingArea
from millstream.physical.joins.steps import Link, new_first
from millstream.physical.operator import Context
from millstream.physical.operators.join import JoinKey
from millstream.physical.operators.multi_join import MultiJoin
from millstream.physical.operators.source import Source
from millstream.physical.operators.time_window import TimeWindow
from millstream.runtime import bounded
from millstream.runtime.graph import Graph

INTERVALS = (1, 2, 5, 10, 15, 20, 30, 40, 50)


# --- tables with a number of buckets --------------------------------------------------------------


class Buckets(RingArea):
    """Elements by the remainder of their code; a probe scans a whole bucket."""

    def __init__(self, types: Sequence[pa.DataType], buckets: int, lazy: int) -> None:
        super().__init__(types, Probing.HASH, lazy)
        self._buckets = buckets

    def insert(self, codes: Ints, batch: Batch) -> None:
        super().insert(codes % self._buckets, batch)

    def probe(self, codes: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        found, slots = super().probe(codes % self._buckets, start, end)
        kept = int64(self.rows(slots)[len(self.types) - 1]) == codes[found]
        return found[kept], slots[kept]


register_area("buckets", lambda types, _, choice: Buckets(types, choice.partitions, choice.lazy))


def in_buckets(buckets: int, lazy: int) -> AreaChoice:
    return AreaChoice(form="buckets", partitions=buckets, lazy=lazy)


def nested_loops(lazy: int) -> AreaChoice:
    return AreaChoice(Probing.LOOP, lazy=lazy)


# --- a join that runs -----------------------------------------------------------------------------


class Joined:
    """A multi-way join over streams with given rates and numbers of values. Time is counted in
    rows, as in §6.1: a unit has as many rows as all streams produce in it. Windows are closed in
    G3, so they are one longer here."""

    def __init__(
        self,
        graph: JoinGraph,
        orders: Orders,
        interval: float = 0.0,
        buckets: Sequence[int] | None = None,
        seed: int = 3,
    ) -> None:
        self.rates = [each.rate for each in graph.inputs]
        self.unit = sum(self.rates)
        self._values = [int(count) for _, count in graph.equalities[0].distinct]
        self._random = np.random.default_rng(seed)
        self._rows = max(1, round(interval * self.unit))  # per evaluation
        self._time = 0
        lazy = round(interval * self.unit)
        schemas = [_schema(each.name) for each in graph.inputs]
        spans = [round(each.size / each.rate * self.unit) + 1 for each in graph.inputs]
        sources = [
            Source(each.name, s, True) for each, s in zip(graph.inputs, schemas, strict=True)
        ]
        windows = [TimeWindow(s, span) for s, span in zip(sources, spans, strict=True)]
        keys = [schema[0].column for schema in schemas]
        links = [Link(0, port, JoinKey(keys[0], key)) for port, key in enumerate(keys) if port]
        areas = [nested_loops(lazy) if b == 1 else in_buckets(b, lazy)
                 for b in buckets or [1] * len(keys)]  # fmt: skip
        join = MultiJoin(
            tuple(windows), tuple(links), (), None, orders, tuple(areas), max(0, lazy - 1)
        )
        self.results = 0
        self._graph = Graph(join, Context(), self._take)
        self._sources = [self._graph.sources[source.stream] for source in sources]
        self.fill = max(spans)

    def _take(self, batch: Batch) -> None:
        self.results += len(batch)

    @property
    def looked_at(self) -> int:
        return sum(vertex.operator.touched for vertex in self._graph.vertices)

    @property
    def pushed(self) -> int:
        return self._time

    def push(self, rows: int) -> int:
        """Push at least `rows` rows, in whole evaluations; returns how many."""
        evaluations = -(-rows // self._rows)
        chances = np.array(self.rates) / self.unit
        chosen = self._random.choice(len(chances), evaluations * self._rows, p=chances)
        uniform = self._random.random(len(chosen))
        values = (uniform * np.array(self._values)[chosen]).astype(np.int64)
        for first in range(0, len(chosen), self._rows):
            part = slice(first, first + self._rows)
            self._evaluate(chosen[part], values[part])
        return len(chosen)

    def _evaluate(self, chosen: Ints, values: Ints) -> None:
        times = np.arange(self._time, self._time + len(chosen))
        self._time += len(chosen)
        for port, vertices in enumerate(self._sources):
            mine = np.flatnonzero(chosen == port)
            # If rows arrive singly, the other streams only advance time, occasionally.
            if not len(mine) and len(chosen) == 1 and self._time % 16:
                continue
            start = times[mine]
            records = Records([pa.array(values[mine]), pa.array(start)], start, start + 1)
            for vertex in vertices:
                batch = bounded.source_batch(vertex.node, records, 0, int(times[-1]))
                self._graph.push(vertex, batch)


def _schema(name: str) -> tuple[Field, ...]:
    return Field("k", types.BIGINT, name), Field("t", types.BIGINT, name)


def counted(joined: Joined, units: float) -> float:
    """Elements examined per unit of time, once the windows are full."""
    joined.push(joined.fill)
    before = joined.looked_at
    pushed = joined.push(round(units * joined.unit))
    return (joined.looked_at - before) / pushed * joined.unit


def rate(joined: Joined, rows: int) -> float:
    """Rows per second of processor time, once the windows are full."""
    joined.push(joined.fill)
    began = time.process_time()
    pushed = joined.push(rows)
    return pushed / (time.process_time() - began)


# --- tables 5 to 7 --------------------------------------------------------------------------------

NAMED = (
    ("G3 table 5", TABLE_5, {"1234": 16_000, "2134": 19_600}, "nearly 90,000"),
    ("G3 table 6", TABLE_6, {"2134": 80_400, "2314": 123_000, "2341": 248_000, "1234": 120_000},
     "nearly 650,000"),
    ("G3 table 7", TABLE_7, {"3142": 47_977, "3412": 49_542, "3124": 51_954, "1234": 68_200,
                             "2134": 79_000}, None),
)  # fmt: skip


def tables() -> Findings:
    numbers = []
    for where, graph, named, worst in NAMED:
        join = MultiWay(graph)
        costs = {order: join.cost_of(order) for order in permutations(range(4))}
        for text, paper in named.items():
            order = tuple(int(port) - 1 for port in text)
            what = f"cost of S{', S'.join(text)}"
            numbers.append(Number(where, what, paper, costs[order]))
        numbers.append(Number(where, "cost of the worst order", worst, max(costs.values())))
        least = best_orders(join).cost
        note = "an order for the new rows of each stream"
        numbers.append(Number(where, "cost of the best orders", None, least, note))
    mean = sum(MultiWay(TABLE_7).cost_of(order) for order in permutations(range(4))) / 24
    numbers.append(Number("G3 table 7", "mean cost of all orders", 63_362, mean))
    return Findings(numbers)


# --- figures 2 and 3: comparisons -----------------------------------------------------------------


def equal_streams(count: int, fast: float = 1.0) -> JoinGraph:
    return one_column(*[(1, 100, 50)] * (count - 1), (fast, 100, 50))


def figure_2(most: int) -> Findings:
    lines: dict[str, list[tuple[float, float]]] = {
        "naive": [], "multi-way": [], "naive, model": [], "multi-way, model": [],
    }  # fmt: skip
    for count in range(2, most + 1):
        graph, every = equal_streams(count), tuple(range(count))
        model = MultiWay(graph)
        for name, orders in (("naive", as_they_stand(every)), ("multi-way", new_first(every))):
            lines[name].append((count, counted(Joined(graph, orders), 100)))
            lines[f"{name}, model"].append((count, model.cost(orders)))
    title = "G3 figure 2: comparisons in a unit of time by the number of windows"
    chart = Chart("g3-figure-2", title, "windows", "comparisons", lines, logarithmic=True,
                  dashes={f"{n}, model": n for n in ("naive", "multi-way")})  # fmt: skip
    last = {name: points[-1][1] for name, points in lines.items()}
    numbers = [
        Number("G3 figure 2", f"{name}, {most} windows: counted by computed", None,
               last[name] / last[f"{name}, model"])
        for name in ("naive", "multi-way")
    ]  # fmt: skip
    return Findings(numbers, [chart])


def figure_3(part: str, fast: float, intervals: Sequence[int]) -> Findings:
    graph = equal_streams(4, fast)
    lines: dict[str, list[tuple[float, float]]] = {"NAIVE": [], "LAZY": [], "GENERAL": []}
    computed: dict[str, list[tuple[float, float]]] = {f"{name}, model": [] for name in lines}
    for interval in intervals:
        model = MultiWay(graph, interval=interval)
        every = list(permutations(range(4)))
        chosen = {
            "NAIVE": as_they_stand(min(every, key=model.naive_cost)),
            "LAZY": new_first(min(every, key=model.cost_of)),
            "GENERAL": best_orders(model).orders,
        }
        for name, orders in chosen.items():
            joined = Joined(graph, orders, interval)
            lines[name].append((interval, counted(joined, max(100, 2 * interval))))
            computed[f"{name}, model"].append((interval, model.cost(orders)))
    streams = "equal streams" if fast == 1 else "one stream ten times faster"
    chart = Chart(f"g3-figure-3{part}", f"G3 figure 3({part}): comparisons in a unit, {streams}",
                  "interval τ", "comparisons", {**lines, **computed}, logarithmic=True,
                  dashes=dict(zip(computed, lines, strict=True)))  # fmt: skip
    last = {name: points[-1][1] for name, points in {**lines, **computed}.items()}
    said = {"a": ("> 1", "1"), "b": ("< 1", "< 1")}[part]
    numbers = []
    for kind in ("", ", model"):
        lazy = last[f"LAZY{kind}"]
        for name, paper in zip(("NAIVE", "GENERAL"), said, strict=True):
            what = f"{name} by LAZY at τ = {intervals[-1]}{kind}"
            numbers.append(Number(f"G3 figure 3({part})", what, paper, last[name + kind] / lazy))
    return Findings(numbers, [chart])


# --- figure 4 and table 8: rates ------------------------------------------------------------------


def figure_4a(intervals: Sequence[int], rows: int) -> Findings:
    graph, orders = equal_streams(4), new_first(range(4))
    kinds = {"NLJ": 1, "HASH2": 2, "HASH10": 10, "HASH30": 30}
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    for interval in intervals:
        for name, buckets in kinds.items():
            joined = Joined(graph, orders, interval, [buckets] * 4)
            lines[name].append((interval, rate(joined, rows)))
    title = "G3 figure 4(a): rows per second by the interval of evaluation"
    chart = Chart("g3-figure-4a", title, "interval τ", "rows/s", lines)
    paper = {"HASH2": "4", "HASH10": "15", "HASH30": "30"}
    best = {name: max(points, key=lambda p: p[1]) for name, points in lines.items()}
    numbers = [
        Number("G3 figure 4(a)", f"best τ of {name}", said, best[name][0])
        for name, said in paper.items()
    ]
    numbers += [
        Number("G3 figure 4(a)", f"{name} by NLJ, at their best τ", "> 1", rate / best["NLJ"][1])
        for name, (_, rate) in best.items()
        if name != "NLJ"
    ]
    return Findings(numbers, [chart])


def figure_4b(means: Sequence[int], rows: int) -> Findings:
    """Of 4·m buckets, each slow stream gets m, 1, 5 or 10, and the fast one the rest."""
    graph, orders = one_column(*[(1, 100, 50)] * 3, (50, 100, 50)), new_first(range(4))
    kinds = {"Equal": None, "1 to slow": 1, "5 to slow": 5, "10 to slow": 10}
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    looks: dict[str, dict[int, float]] = {name: {} for name in kinds}
    for mean in means:
        for name, slow in kinds.items():
            each = mean if slow is None else slow
            fast = 4 * mean - 3 * each
            if fast >= each:
                buckets = [each] * 3 + [fast]
                lines[name].append((mean, rate(Joined(graph, orders, 5, buckets), rows)))
                joined = Joined(graph, orders, 5, buckets)
                looks[name][mean] = counted(joined, 20)
    title = "G3 figure 4(b): rows per second by the buckets of a table on average"
    chart = Chart("g3-figure-4b", title, "buckets on average", "rows/s", lines)
    at = 12 if 12 in means else means[-1]
    best = {name: max(points, key=lambda p: p[1]) for name, points in lines.items() if points}
    last = lines["Equal"][-1]
    numbers = [
        Number("G3 figure 4(b)", f"Equal at {last[0]} buckets, rows/s", "> 7,000 at 13", last[1]),
        Number("G3 figure 4(b)", "1 to slow is best at, buckets", "8", best["1 to slow"][0]),
        Number("G3 figure 4(b)", "5 to slow is best at, buckets", "12", best["5 to slow"][0]),
        Number("G3 figure 4(b)", "5 to slow there, rows/s", "> 10,000", best["5 to slow"][1]),
        Number("G3 figure 4(b)", "1 to slow there, rows/s", None,
               dict(lines["1 to slow"])[best["5 to slow"][0]]),
    ]  # fmt: skip
    numbers += [
        Number("G3 figure 4(b)", f"looked at in a unit, {name}, {at} buckets", None, found[at])
        for name, found in looks.items()
        if at in found
    ]
    return Findings(numbers, [chart])


def table_8(rows: int) -> Findings:
    paper = {"NLJ": ((1614, 333), (1446, 296), (1332, 274)),
             "hash": ((11540, 2524), (8420, 2041), (7947, 1848))}  # fmt: skip
    model = MultiWay(TABLE_5)
    every = sorted(permutations(range(4)), key=model.cost_of)
    best, worst = every[0], every[-1]
    numbers = []
    for kind, buckets in (("NLJ", 1), ("hash", 5)):
        for interval, said in zip((0, 5, 10), paper[kind], strict=True):
            name = f"lazy {kind}, τ = {interval}" if interval else f"eager {kind}"
            for order, which, value in ((best, "best", said[0]), (worst, "worst", said[1])):
                joined = Joined(TABLE_5, new_first(order), interval, [buckets] * 4)
                found = rate(joined, rows if interval else rows // 8)
                what = f"{name}, {which} order, rows/s"
                looked_at = joined.looked_at / joined.pushed
                note = f"{looked_at:,.0f} looked at for each row"
                numbers.append(Number("G3 table 8", what, float(value), found, note))
    return Findings(numbers)


def report(quick: bool = False) -> Findings:
    rate(Joined(equal_streams(3), new_first(range(3)), 1, [1, 2, 2]), 100)  # compiles
    intervals = INTERVALS[::3] if quick else INTERVALS
    rows = 4_000 if quick else 12_000
    found = tables() + figure_2(4 if quick else 5)
    found += figure_3("a", 1, intervals) + figure_3("b", 10, intervals)
    found += figure_4a(intervals, rows)
    found += figure_4b((2, 6, 12) if quick else tuple(range(2, 14)), 2 * rows)
    return found + table_8(rows)
