"""The plan that runs: first the rules, then cheaper alternatives by the cost model.

Rules always improve a plan. Other changes depend on the streams: the order of inner joins is
searched, and the positions of GROUP BY, DISTINCT, negation, windows and maps are tried one step at
a time, as long as a step pays off. This needs the rates of the streams: if they are not known, the
plan stays as the rules leave it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from millstream.logical.plan import Distinct, Join, Plan, SetOperation, Source
from millstream.model.modes import Emit
from millstream.optimizer.alternatives import ALTERNATIVES, alternatives
from millstream.optimizer.choice import Approach, Choices, choose
from millstream.optimizer.cost import Constants, Estimates, estimate
from millstream.optimizer.cost.areas import fit_areas
from millstream.optimizer.join_orders.by_cost import WORTH, joins_of_many, reorder_joins
from millstream.optimizer.optimize import optimize, steps
from millstream.optimizer.rules.alternatives.reorder_joins import associate_joins, commute_join
from millstream.optimizer.rules.merge_maps import merge_maps
from millstream.optimizer.statistics import Statistics
from millstream.physical.operator import PhysicalPlan

# Join orders are searched as a whole; many cannot be reached by single steps.
PLACES = tuple(rule for rule in ALTERNATIVES if rule not in (associate_joins, commute_join))
MOST_STEPS = 5
MOST_PLANS = 40  # alternatives considered in one step


def has_choices(plan: Plan) -> bool:
    return any(isinstance(node, Join | SetOperation | Distinct) for node in plan.walk())


@dataclass(frozen=True)
class Planner:
    """Plans of one query. `together`: the engine has multi-way joins. `memory`: the bytes that it
    should use, as far as there is a choice."""

    statistics: Statistics
    constants: Constants
    choices: Choices
    together: bool = False
    memory: float | None = None

    def steps(self, plan: Plan) -> Iterator[tuple[str, Plan]]:
        """The name of each step that changes the plan, with the resulting plan."""
        for name, changed in steps(plan):
            yield name, changed
            plan = changed
        if not self._is_known(plan):
            return
        ordered = reorder_joins(plan, self.statistics, self.constants, self._choices_for(plan))
        if ordered != plan:
            plan = optimize(ordered, (merge_maps,))  # so that other steps see the joins below
            yield "reorder_joins", plan
        for _ in range(MOST_STEPS):
            found = self._cheaper(plan)
            if found is None:
                return
            yield found
            plan = found[1]

    def operators(self, plan: Plan, emit: Emit) -> PhysicalPlan:
        if not self._is_known(plan):
            return choose(plan, emit, self._choices_for(plan))
        estimates = self._cheapest(plan, emit)
        return estimates.plan if self.memory is None else fit_areas(estimates, self.memory)

    def _cheapest(self, plan: Plan, emit: Emit) -> Estimates:
        """With DISTINCT in pieces, or coalesced if that pays off."""
        choices = self._choices_for(plan)
        found = self._estimated(plan, emit, choices)
        hybrid = self.choices.approach is Approach.HYBRID
        if hybrid and any(isinstance(node, Distinct) for node in plan.walk()):
            other = self._estimated(plan, emit, replace(choices, coalesced=True))
            found = other if other.cost < WORTH * found.cost else found
        return found

    def _estimated(self, plan: Plan, emit: Emit, choices: Choices) -> Estimates:
        chosen = choose(plan, emit, choices)
        if self.together:
            chosen = joins_of_many(chosen, self.statistics, self.constants)
        return estimate(chosen, self.statistics, self.constants)

    def _choices_for(self, plan: Plan) -> Choices:
        """If a plan needs the order of a stream's rows, they are held until they are in order."""
        sources = (node for node in plan.walk() if isinstance(node, Source))
        held = {source.stream for source in sources if source.arrival}
        return replace(self.choices, disordered=self.choices.disordered - held)

    def _is_known(self, plan: Plan) -> bool:
        """Whether there is something to choose, and the rates of all streams are known."""
        streams = [node.stream for node in plan.walk() if isinstance(node, Source)]
        rates = [self.statistics.stream(name).rate for name in streams]
        return has_choices(plan) and None not in rates

    def _cheaper(self, plan: Plan) -> tuple[str, Plan] | None:
        """The cheapest plan that is one step away from this one, if the step pays off."""
        others = list(islice(alternatives(plan, PLACES), MOST_PLANS))
        if not others:
            return None
        least, found = WORTH * self._cost(plan), None
        for name, other in others:
            other = optimize(other)
            cost = self._cost(other)
            if cost < least:
                least, found = cost, (name, other)
        return found

    def _cost(self, plan: Plan) -> float:
        return self._cheapest(plan, Emit.ELEMENTS).cost
