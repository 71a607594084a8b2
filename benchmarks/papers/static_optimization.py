"""A (Ayad & Naughton 2004): which plan to shed from, and the gain; figures 6 to 10.

All of it is computed from the cost model, as in the paper. §6 has 1,000 queries of five streams
with random rates; resources are a share of those at which the cheapest left-deep plan is just
feasible. The planning time for many inputs is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import fmean

from benchmarks.papers.charts import Chart
from benchmarks.papers.join_queries import EXAMPLE_1, any_query, random_query
from benchmarks.papers.numbers import Findings, Number
from millstream.optimizer.join_orders.search import cheapest
from millstream.optimizer.join_orders.trees import left_deep
from millstream.optimizer.multi_way_orders import MultiWay
from millstream.optimizer.multi_way_search import best_orders
from millstream.papers.filter_orders import PricedFilter, utilization
from millstream.papers.join_trees import PerElement
from millstream.papers.shed_trees import Shedding

PLANS = {"(a)": left_deep([0, 1, 2]), "(b)": left_deep([1, 2, 0]), "(c)": left_deep([0, 2, 1])}
LEVELS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.01)
QUERIES, FEW_QUERIES = 1_000, 100


def report(quick: bool = False) -> Findings:
    found = selections() + example() + experiments(FEW_QUERIES if quick else QUERIES)
    return found + planning()


def selections() -> Findings:
    first, second = PricedFilter("σ1", 0.0005, 0.25), PricedFilter("σ2", 0.001, 0.5)
    plans = {"plan A": [first, second], "plan B": [second, first]}
    paper = {"plan A": 75.0, "plan B": "250 ms and 1 s"}  # per second: more than there is
    return Findings(
        [
            Number("A figure 1", f"{name}, % used", paper[name], 100 * utilization(1000, plan))
            for name, plan in plans.items()
        ]
    )


# --- example 1 ------------------------------------------------------------------------------------


def throughput(plan: str, milliseconds: float) -> float:
    """Results per second if a join takes `milliseconds` per row."""
    return Shedding(EXAMPLE_1, PerElement(milliseconds / 1000)).shed(PLANS[plan]).output


def example() -> Findings:
    shedding = Shedding(EXAMPLE_1, PerElement(0.003))
    used = {name: 100 * shedding.utilization(tree) for name, tree in PLANS.items()}
    numbers = [
        Number("A example 1", f"plan {name} at 3 ms, % used", paper, used[name])
        for name, paper in zip(PLANS, (150.0, 84.0, 120.0), strict=True)
    ]
    numbers.append(Number("A figure 6", "plan (b) sheds from, ms", "3.5", 300 / used["(b)"]))
    numbers.append(Number("A figure 6", "(c) beats (b) from, ms", "4 to 4.5", _crossover()))
    gaps = {t / 10: throughput("(c)", t / 10) / throughput("(b)", t / 10) for t in range(50, 400)}
    widest = max(gaps, key=lambda each: gaps[each])
    numbers.append(Number("A figure 6", "gap is widest at, ms", "about 14", widest))
    numbers.append(Number("A figure 6", "(c) as a multiple of (b) there", "> 2", gaps[widest]))
    numbers.append(Number("A figure 6", "(b) is the worst from, ms", "17", _worst_from()))
    numbers += [
        Number("A figure 6", f"plan {name} at 17 ms, results/s", None, throughput(name, 17))
        for name in PLANS
    ]
    return Findings(numbers, [_figure_6("a", 0.5, 100), _figure_6("b", 0.5, 6)])


def _crossover() -> float:
    return _overtakes("(c)", 4.0, 4.5)


def _worst_from() -> float:
    """The cost at which plan (a), worse than (b) at first, overtakes it."""
    return _overtakes("(a)", 10.0, 20.0)


def _overtakes(plan: str, low: float, high: float) -> float:
    """The cost between these two from which a plan has more results than (b)."""
    while high - low > 1e-6:
        middle = (low + high) / 2
        better = throughput(plan, middle) > throughput("(b)", middle)
        low, high = (low, middle) if better else (middle, high)
    return high


def _figure_6(part: str, first: float, last: float) -> Chart:
    costs = [first + (last - first) * i / 200 for i in range(201)]
    lines = {name: [(each, throughput(name, each)) for each in costs] for name in PLANS}
    title = "A figure 6: results of the three plans of example 1, best drops"
    return Chart(f"a-figure-6{part}", title, "milliseconds a row and join", "results/s", lines)


# --- 1,000 queries --------------------------------------------------------------------------------


@dataclass
class Level:
    """Per query at one level of resources: the gain of the best plan over the cheapest one, and the
    error of the heuristic."""

    gains: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)

    @property
    def needing(self) -> list[float]:
        """The gains of queries for which another plan is better."""
        return [gain for gain in self.gains if gain > 1e-9]


def levels(queries: int, seed: int = 2004) -> dict[float, Level]:
    chance = Random(seed)
    found = {level: Level() for level in LEVELS}
    for _ in range(queries):
        shedding = Shedding(random_query(chance), PerElement(1.0))
        costs, saturated = shedding.all_costs(), float(shedding.tree_cost(shedding.lowest))
        for part, level in found.items():
            best = shedding.best_of(costs, part * saturated)
            lowest = shedding.shed(shedding.lowest, part * saturated)
            level.gains.append(best.output / lowest.output - 1)
            level.errors.append(1 - shedding.heuristic(part * saturated).output / best.output)
    return found


def experiments(queries: int) -> Findings:
    found = levels(queries)
    need = {part: 100 * len(level.needing) / queries for part, level in found.items()}
    gain = {part: 100 * fmean(level.gains) for part, level in found.items()}
    among = {part: 100 * fmean(level.needing or [0.0]) for part, level in found.items()}
    most = {part: 100 * max(level.gains) for part, level in found.items()}
    error = {part: 100 * fmean(level.errors) for part, level in found.items()}
    worst = max(max(level.errors) for level in found.values())
    better = "each set of inputs keeps its best plan, and the shares are computed again at the end"
    numbers = [
        Number("A figure 7", "% that another plan is better for, at 60 %", "> 50", need[0.6]),
        Number("A figure 7", "the same at 30 %", "almost all", need[0.3]),
        Number("A figure 8", "mean gain at 60 %, %", "about 4", gain[0.6]),
        Number("A figure 8", "mean gain at 1 %, %", "almost 800", gain[0.01]),
        Number("A figure 9", "mean gain at 90 % of those that need it, %", None, among[0.9]),
        Number("A figure 9", "largest gain at 90 %, %", None, most[0.9]),
        Number("A figure 9", "largest gain at 1 %, %", None, most[0.01]),
        Number("A figure 10", "mean error at 1 %, %", 28.0, error[0.01], better),
        Number("A figure 10", "mean error elsewhere, at most, %", 0.2, _most_elsewhere(error)),
        Number("A figure 10", "largest error, %", "≤ 100", 100 * worst),
    ]
    return Findings(numbers, list(_charts(need, gain, among, most, error)))


def _most_elsewhere(error: dict[float, float]) -> float:
    return max(value for part, value in error.items() if part != 0.01)


def _charts(
    need: dict[float, float],
    gain: dict[float, float],
    among: dict[float, float],
    most: dict[float, float],
    error: dict[float, float],
) -> Sequence[Chart]:
    def line(values: dict[float, float], least: float = 0.0) -> list[tuple[float, float]]:
        return [(100 * part, max(least, value)) for part, value in values.items()]

    x = "% of the resources at which the query is just feasible"
    some = [part for part, value in gain.items() if value > 1e-3]
    of_those = {"mean": among, "largest": most}
    return (
        Chart("a-figure-7", "A figure 7: queries that another plan is better for", x,
              "% of queries", {"queries": line(need)}),
        Chart("a-figure-8", "A figure 8: what the best plan gains over the cheapest", x,
              "mean gain, %", {"all queries": line(gain)}),
        Chart("a-figure-9", "A figure 9: gain of queries that need another plan", x, "gain, %",
              {name: line({p: v[p] for p in some}) for name, v in of_those.items()},
              logarithmic=True),
        Chart("a-figure-10", "A figure 10: how far the heuristic is from the best plan", x,
              "mean error, %", {"error": line(error)}),
    )  # fmt: skip


# --- how fast -------------------------------------------------------------------------------------


def planning() -> Findings:
    numbers = []
    for count, bound in ((6, 50.0), (10, 1000.0)):
        graph = any_query(Random(count), count, "time")
        ways: dict[str, Callable[[], object]] = {
            "left-deep": lambda graph=graph: cheapest(graph, PerElement(1.0), bushy=False),
            "bushy": lambda graph=graph: cheapest(graph, PerElement(1.0)),
            "multi-way": lambda graph=graph: best_orders(MultiWay(graph)),
        }
        for name, plan in ways.items():
            what = f"{count} inputs, {name}, ms"
            numbers.append(_planned(what, bound, plan))
        for windows in ("time", "rows"):
            what = f"{count} inputs, dropping, windows over {windows}, ms"
            limit = 50.0 if count == 6 else 5000.0
            numbers.append(_planned(what, limit, _shedding(count, windows)))
    return Findings(numbers)


def _planned(what: str, bound: float, plan: Callable[[], object]) -> Number:
    return Number("planning", what, None, _milliseconds(plan), f"bound of this project: {bound:g}")


def _shedding(count: int, windows: str) -> Callable[[], object]:
    graph = any_query(Random(count), count, windows)
    capacity = 0.1 * cheapest(graph, PerElement(1.0)).cost
    return lambda: Shedding(graph, PerElement(1.0)).heuristic(capacity)


def _milliseconds(plan: Callable[[], object]) -> float:
    """Processor time, the minimum of three runs."""
    taken = []
    for _ in range(3):
        began = time.process_time()
        plan()
        taken.append(time.process_time() - began)
    return 1000 * min(taken)
