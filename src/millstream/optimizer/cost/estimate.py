"""The estimates of a physical plan: bottom up, each operator from its inputs (K §22.3).

Each family of operators has a file with its formulas; the table below maps operators to functions.
A shared node is counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.optimizer.cost import (
    aggregation,
    changes,
    gates,
    joins,
    lookups,
    multi_way,
    pieces,
    pointwise,
    ranking,
    stateless,
    windows,
)
from millstream.optimizer.cost.characteristics import Characteristics
from millstream.optimizer.cost.model import Given, Model
from millstream.optimizer.cost.work import Constants, Primitive, Work, together
from millstream.optimizer.statistics import Statistics
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.aggregate import Aggregate
from millstream.physical.operators.changes import Changes
from millstream.physical.operators.coalesce import Coalesce
from millstream.physical.operators.count_window import CountWindow
from millstream.physical.operators.cut import Cut
from millstream.physical.operators.deltas import Deltas
from millstream.physical.operators.distinct import Distinct
from millstream.physical.operators.filter import Filter
from millstream.physical.operators.granularity import Granularity
from millstream.physical.operators.join import Join
from millstream.physical.operators.lookup_join import LookupJoin
from millstream.physical.operators.map import Map
from millstream.physical.operators.multi_join import MultiJoin
from millstream.physical.operators.outer_join import OuterJoin
from millstream.physical.operators.pointwise import Pointwise
from millstream.physical.operators.semi_join import SemiJoin
from millstream.physical.operators.source import Source
from millstream.physical.operators.split import Split
from millstream.physical.operators.time_window import TimeWindow
from millstream.physical.operators.top_n import TopN
from millstream.physical.operators.union import Union

IDLE = 0.25  # the cost of a batch without rows, as a share of one with rows: only time advances

Formula = Callable[[Any, Sequence[Characteristics], Model], Given]

FORMULAS: Mapping[type[PhysicalPlan], Formula] = {
    Source: stateless.source,
    Filter: stateless.filter,
    Map: stateless.map,
    Union: stateless.union,
    TimeWindow: stateless.time_window,
    Granularity: stateless.granularity,
    CountWindow: windows.count_window,
    Join: joins.join,
    MultiJoin: multi_way.multi_join,
    SemiJoin: gates.semi_join,
    OuterJoin: gates.outer_join,
    LookupJoin: lookups.lookup_join,
    Distinct: pointwise.distinct,
    Pointwise: pointwise.pointwise,
    Aggregate: aggregation.aggregate,
    TopN: ranking.top_n,
    Split: pieces.split,
    Cut: pieces.cut,
    Coalesce: pieces.coalesce,
    Deltas: changes.deltas,
    Changes: changes.changes,
}


@dataclass(frozen=True)
class Estimate:
    """Estimates of one operator: its output, the rows and bytes of its state, and its processing
    cost: the counts of primitive operations, the batches with rows, and nanoseconds, all per
    chronon."""

    output: Characteristics
    rows: float
    bytes: float
    work: Work
    batches: float
    cost: float


@dataclass(frozen=True)
class EngineCost:
    """Work of the engine besides the operators: how often, and its cost, per chronon."""

    name: str
    count: float
    cost: float


@dataclass(frozen=True)
class Estimates:
    """Estimates of a plan, each of its operators, and the overhead of the engine."""

    plan: PhysicalPlan
    statistics: Statistics
    _by_node: Mapping[int, tuple[PhysicalPlan, Estimate]] = field(repr=False)
    engine: tuple[EngineCost, ...] = ()

    def __getitem__(self, node: PhysicalPlan) -> Estimate:
        return self._by_node[id(node)][1]

    def __iter__(self) -> Iterator[tuple[PhysicalPlan, Estimate]]:
        """Inputs before their consumers, each once."""
        return iter(self._by_node.values())

    @property
    def output(self) -> Characteristics:
        return self[self.plan].output

    @property
    def rows(self) -> float:
        """Rows of state."""
        return sum(estimate.rows for _, estimate in self)

    @property
    def bytes(self) -> float:
        return sum(estimate.bytes for _, estimate in self)

    @property
    def cost(self) -> float:
        """Nanoseconds per chronon."""
        own = sum(estimate.cost for _, estimate in self)
        return own + sum(each.cost for each in self.engine)

    @property
    def share(self) -> float:
        """The share of a processor that it uses; on raw time a unit counts as a second."""
        return self.cost * self.statistics.second / 1e9

    @property
    def work(self) -> Work:
        return together(*(estimate.work for _, estimate in self))


def estimate(
    plan: PhysicalPlan, statistics: Statistics, constants: Constants | None = None
) -> Estimates:
    """The estimates of a plan over streams with these statistics."""
    model = Model(statistics)
    constants = constants or Constants()
    done: dict[int, tuple[PhysicalPlan, Estimate]] = {}

    def visit(node: PhysicalPlan) -> Characteristics:
        if id(node) not in done:
            inputs = [visit(child) for child in node.inputs]
            given = FORMULAS[type(node)](node, inputs, model)
            busy = sum(each.busy for each in inputs) or given.output.batches
            idle = sum(each.batches for each in inputs) - busy
            calls = (busy + IDLE * max(idle, 0.0)) * given.parts
            work = together(given.work, {Primitive.VECTOR: busy * _vectors(node, given)})
            cost = constants.cost(type(node).__name__, work, calls)
            own = Estimate(given.output, given.rows, given.bytes, work, calls, cost)
            done[id(node)] = node, own
        return done[id(node)][1].output

    visit(plan)
    return Estimates(plan, statistics, done)


def _vectors(node: PhysicalPlan, given: Given) -> float:
    if node.state is None:
        return given.vectors
    return float(len(node.schema) + sum(len(child.schema) for child in node.inputs))
