"""A query with its plan: made once, and used to explain, run, start and admit it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from millstream.logical.plan import Plan
from millstream.model.modes import Emit
from millstream.optimizer.choice import Approach, Choices, choose
from millstream.optimizer.cost import Estimates, estimate, known_constants
from millstream.optimizer.cost.spark import in_jobs, on_spark
from millstream.optimizer.planning import Planner, has_choices
from millstream.optimizer.shedding.queries import Demand, demand, selectivities, with_drops
from millstream.optimizer.statistics import Statistics
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.operator import PhysicalPlan
from millstream.physical.placing import Placing


@dataclass(frozen=True)
class SourceFacts:
    """Facts about the sources of a query. `disordered` names the streams whose rows arrive out of
    order, `small` the tables with few rows. `statistics` samples rows in memory, and is called only
    if there is something to choose or to estimate."""

    disordered: frozenset[str] = frozenset()
    small: frozenset[str] = frozenset()
    statistics: Callable[[], Statistics] = field(default=Statistics, compare=False)


@dataclass(frozen=True)
class Options:
    """The planner settings of a session. `together`: the engine has multi-way joins. `memory` is in
    bytes. `areas` says how joins store their inputs. `placing` says how the engine distributes a
    plan, if it does."""

    optimize: bool = True
    approach: Approach = Approach.HYBRID
    together: bool = False
    memory: float | None = None
    areas: AreaChoice = field(default_factory=AreaChoice)
    placing: Callable[[PhysicalPlan], Placing] | None = None


@dataclass(frozen=True)
class PlannedQuery:
    """The bound plan, the result of each rewrite, and the operators that run. `shares`: the kept
    share of each stream from which rows are dropped."""

    bound: Plan
    rewrites: tuple[tuple[str, Plan], ...]
    physical: PhysicalPlan
    emit: Emit
    facts: SourceFacts
    options: Options
    planner: Planner
    shares: Mapping[str, float] = field(default_factory=dict)

    @property
    def optimized(self) -> Plan:
        """The logical plan that runs. It has the answer and the errors of the bound plan, except
        for dropped rows."""
        whole = self.rewrites[-1][1] if self.rewrites else self.bound
        return with_drops(whole, self.shares)

    @property
    def identified(self) -> Plan:
        """The plan that identifies a checkpoint, without shares: a resumed query keeps the shares
        of its checkpoint."""
        return with_drops(self.bound, dict.fromkeys(self.shares, 0.5))

    @cached_property
    def elements(self) -> PhysicalPlan:
        """The operators for the answer at one instant; regardless of the approach, none waits."""
        return choose(self.optimized, Emit.ELEMENTS)

    def dropping(self, shares: Mapping[str, float]) -> PlannedQuery:
        """The same query, keeping only these shares of its streams."""
        if dict(shares) == dict(self.shares):
            return self
        changed = replace(self, shares=dict(shares))
        return replace(changed, physical=self.planner.operators(changed.optimized, self.emit))

    @cached_property
    def statistics(self) -> Statistics:
        return self.facts.statistics()

    @cached_property
    def estimates(self) -> Estimates:
        """The estimated output, state and cost of the operators."""
        known = self.statistics
        if self.shares:
            known = replace(known, selectivities=dict(selectivities(self.optimized)))
        return self._estimated(self.physical, known)

    def demand(self, streams: Sequence[str], capacity: float) -> Demand:
        """Its demand with a number of processors, if only these streams may be shed."""
        return demand(self.physical, self.statistics, streams, capacity, self._estimated)

    def _estimated(self, plan: PhysicalPlan, known: Statistics) -> Estimates:
        constants = known_constants()
        if self.options.placing is None:
            return estimate(plan, known, constants)
        placing = self.options.placing(plan)
        return on_spark(estimate(plan, in_jobs(known), constants), placing, constants)


def planned(plan: Plan, emit: Emit, facts: SourceFacts, options: Options) -> PlannedQuery:
    """The plan of a bound query over sources with these facts."""
    choices = Choices(facts.disordered, options.approach, options.areas, facts.small)
    if options.optimize and has_choices(plan):
        known = facts.statistics()
        planner = Planner(known, known_constants(), choices, options.together, options.memory)
    else:
        planner = Planner(Statistics(), known_constants(), choices)
    rewrites = tuple(planner.steps(plan)) if options.optimize else ()
    optimized = rewrites[-1][1] if rewrites else plan
    physical = planner.operators(optimized, emit)
    return PlannedQuery(plan, rewrites, physical, emit, facts, options, planner)
