"""Measures what cost-based planning gains: queries of many joins as written, and as the optimizer
plans them.

Both plans process the same rows in the same batches, in turn; the result is the median processor
time of their operators once windows are full. A handful of other plans is measured too, to see
whether the plan with the lowest estimated cost is among the two fastest.
"""

from __future__ import annotations

import math
import statistics as numbers
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa

import millstream as ms
from benchmarks.estimates import SECOND, SLICE, pushed, queries_of
from millstream.connectors.intake.checking import records_of
from millstream.logical.catalog import Stream
from millstream.logical.plan import Plan
from millstream.model.names import Name
from millstream.model.records import Records
from millstream.optimizer.alternatives import alternatives
from millstream.optimizer.choice import Choices, choose
from millstream.optimizer.cost import estimate, known_constants
from millstream.optimizer.facts.sharing import in_order
from millstream.optimizer.join_orders.inner_joins import inner_joins
from millstream.optimizer.optimize import optimize
from millstream.optimizer.planning import Planner
from millstream.optimizer.rewriting import rewritten
from millstream.optimizer.sampling import sampled, span_of
from millstream.optimizer.statistics import Statistics
from millstream.papers.join_trees import all_trees
from millstream.physical.operator import Context, PhysicalPlan
from millstream.runtime.graph import Graph

RATES = {"A": 4000, "B": 2000, "C": 500, "D": 100, "E": 20, "F": 5}  # rows per second
VALUES = {"k": 100, "u": 5000, "w": 10, "v": 1000}
KEYS = {"A": 200, "B": 100, "C": 80, "D": 60, "E": 40, "F": 20}  # values of i
WARM, END = 5 * SECOND, 8 * SECOND
RUNS, QUICK_RUNS = 7, 3
OTHERS = 4  # plans besides the two
STEPS = 2  # per plan, at most
TRIES = 40  # to find them
ALIKE = 0.02  # plans of equal cost are the same, with left and right swapped
TOO_MUCH = 5.0  # times the least cost: not worth measuring
QUERIES = queries_of(Path(__file__).with_suffix(".sql"))


@lru_cache
def streams() -> dict[str, pa.Table]:
    made = {}
    for seed, (name, rate) in enumerate(RATES.items()):
        random = np.random.default_rng(seed)
        rows = rate * END // SECOND
        columns = {"t": np.sort(random.integers(0, END, rows))}
        columns |= {column: random.integers(0, n, rows) for column, n in VALUES.items()}
        made[name] = pa.table(columns | {"i": random.integers(0, KEYS[name], rows)})
    return made


@dataclass(frozen=True)
class Problem:
    """A query, what is known of its streams, and their rows."""

    name: str
    plan: Plan
    known: Statistics
    records: Mapping[str, Records]

    @property
    def planner(self) -> Planner:
        return Planner(self.known, known_constants(), Choices(), together=True)

    def cost(self, plan: PhysicalPlan) -> float:
        return estimate(plan, self.known, known_constants()).cost

    def written(self) -> PhysicalPlan:
        """The plan after the rules, with joins in their written order."""
        return choose(optimize(self.plan), "FINAL")

    def chosen(self) -> PhysicalPlan:
        *_, (_, plan) = [("", self.plan), *self.planner.steps(self.plan)]
        return self.planner.operators(plan, "FINAL")

    def others(self) -> Iterator[PhysicalPlan]:
        """Plans with random join orders and some random rewrites, each with binary and multi-way
        joins."""
        random = Random(self.name)
        while True:
            plan = reordered(optimize(self.plan), random)
            for _ in range(random.randint(0, STEPS)):
                steps = [other for _, other in alternatives(plan)]
                plan = optimize(random.choice(steps)) if steps else plan
            yield choose(plan, "FINAL")
            yield self.planner.operators(plan, "FINAL")


def reordered(plan: Plan, random: Random) -> Plan:
    """The plan with its topmost inner joins in another order, if there are several."""
    for node in in_order(plan):
        joins = inner_joins(node)
        if joins is not None and len(joins.inputs) > 2:
            trees = all_trees((1 << len(joins.inputs)) - 1, bushy=True)
            return optimize(_replaced(plan, node, joins.plan(random.choice([*trees]))))
    return plan


def _replaced(plan: Plan, old: Plan, new: Plan) -> Plan:
    return new if plan is old else rewritten(plan, lambda node: new if node is old else node)


def problems(names: Sequence[str] = ()) -> Iterator[Problem]:
    session = ms.Session(engine="local")
    for name, table in streams().items():
        session.stream(name, table, time="t", unit="MICROSECONDS")
    for name, sql in QUERIES.items():
        if names and name not in names:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            query = session.sql(sql)
        known, records = {}, {}
        for used in session.catalog.queries[-1].depends_on:
            stream = session.catalog.stream(Name(used, quoted=True))
            assert isinstance(stream, Stream)
            records[used] = records_of(stream, streams()[used])
            known[used] = sampled(stream, records[used], RATES[used] * SLICE / SECOND)
        told = Statistics(known, query.plan.domain, horizon=span_of(records))
        yield Problem(name, query.plan, told, records)


@dataclass
class Contender:
    """A plan, its estimated cost, and the processor time of its runs."""

    plan: PhysicalPlan
    cost: float
    runs: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return numbers.median(self.runs)


@dataclass(frozen=True)
class Gain:
    """`written` and `chosen` may be the same, and are among `all`."""

    name: str
    written: Contender
    chosen: Contender
    all: Sequence[Contender]

    @property
    def factor(self) -> float:
        """The time of the written plan as a multiple of the chosen one's."""
        return self.written.seconds / self.chosen.seconds

    @property
    def least_factor(self) -> float:
        """The same for the fastest run of each, which is least disturbed."""
        return min(self.written.runs) / min(self.chosen.runs)

    @property
    def place(self) -> int:
        """The rank of the plan with the lowest estimate, by its fastest run; 1 is the fastest."""
        cheapest = min(self.all, key=lambda each: each.cost)
        return 1 + sum(min(each.runs) < min(cheapest.runs) for each in self.all)


def share(plan: PhysicalPlan, records: Mapping[str, Records], end: int = END) -> float:
    """The share of a processor that the plan takes once windows are full."""
    graph = Graph(plan, Context(), lambda batch: batch.gathered())
    spent = [pushed(graph, records, until) for until in range(SLICE, end + 1, SLICE)]
    return sum(spent[WARM // SLICE :]) * SECOND / (END - WARM)


def gain(problem: Problem, others: int = OTHERS, runs: int = RUNS) -> Gain:
    written, chosen = problem.written(), problem.chosen()
    contenders = {plan: Contender(plan, problem.cost(plan)) for plan in (written, chosen)}
    least = min(each.cost for each in contenders.values())
    for plan in islice(problem.others(), TRIES if others else 0):
        cost = problem.cost(plan)
        is_new = all(abs(cost / each.cost - 1) > ALIKE for each in contenders.values())
        if is_new and cost < TOO_MUCH * least and len(contenders) < others + 2:
            contenders[plan] = Contender(plan, cost)
    for plan in contenders:
        share(plan, problem.records, 4 * SLICE)  # compiles what it needs
    for _ in range(runs):
        for plan, each in contenders.items():
            each.runs.append(share(plan, problem.records))
    return Gain(problem.name, contenders[written], contenders[chosen], tuple(contenders.values()))


def report(quick: bool = False, names: Sequence[str] = ()) -> None:
    """With `quick` only the two plans, in fewer runs."""
    print(_line("query", "written", "chosen", "factor", "least", "place"))
    done = []
    for problem in problems(names):
        found = gain(problem, 0 if quick else OTHERS, QUICK_RUNS if quick else RUNS)
        done.append(found)
        shares = f"{found.written.seconds:.2%}", f"{found.chosen.seconds:.2%}"
        factors = f"{found.factor:.2f}", f"{found.least_factor:.2f}"
        place = f"{found.place} of {len(found.all)}"
        print(_line(found.name, *shares, *factors, place), flush=True)
    print()
    _tell("factor", [each.factor for each in done])
    _tell("least", [each.least_factor for each in done])
    near = sum(each.place <= 2 for each in done) / len(done)
    print(f"the plan estimated cheapest is among the two fastest in {near:.0%} of {len(done)}")


def _tell(title: str, factors: Sequence[float]) -> None:
    mean = math.exp(numbers.fmean(map(math.log, factors)))
    print(f"{title:<8}{mean:.2f} in the geometric mean, {min(factors):.2f} at worst")


def _line(name: str, *cells: str) -> str:
    return f"{name:<28}" + "".join(f"{cell:>10}" for cell in cells)
