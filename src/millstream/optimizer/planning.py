"""The plan that is carried out: what the rules make of it, then what the cost model finds cheaper.

Rules are always for the better. What is not depends on the streams: the order of inner joins is
searched for, and where groups, DISTINCT, negation, windows and maps stand is tried one step after
the other, as long as a step is worth it. That needs to know how fast rows come: where nobody
knows, plans stay as the rules leave them.
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

# Whole orders of joins are searched for; by steps from one to the next many cannot be reached.
PLACES = tuple(rule for rule in ALTERNATIVES if rule not in (associate_joins, commute_join))
MOST_STEPS = 5
MOST_PLANS = 40  # of which one is chosen in a step


def has_choices(plan: Plan) -> bool:
    return any(isinstance(node, Join | SetOperation | Distinct) for node in plan.walk())


@dataclass(frozen=True)
class Planner:
    """Plans of one query. `together`: the engine has joins of many inputs. `memory`: the bytes that
    it should make do with, as far as it can choose."""

    statistics: Statistics
    constants: Constants
    choices: Choices
    together: bool = False
    memory: float | None = None

    def steps(self, plan: Plan) -> Iterator[tuple[str, Plan]]:
        """What changes the plan, with what it makes of it."""
        for name, changed in steps(plan):
            yield name, changed
            plan = changed
        if not self._is_known(plan):
            return
        ordered = reorder_joins(plan, self.statistics, self.constants, self._choices_for(plan))
        if ordered != plan:
            plan = optimize(ordered, (merge_maps,))  # so that others see the joins below them
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
        """With DISTINCT in pieces, or coalesced where that is worth it."""
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
        """Rows of a stream whose order a plan asks for are held until they are in order."""
        sources = (node for node in plan.walk() if isinstance(node, Source))
        held = {source.stream for source in sources if source.arrival}
        return replace(self.choices, disordered=self.choices.disordered - held)

    def _is_known(self, plan: Plan) -> bool:
        """Whether there is something to choose, and the rates of all streams are known."""
        streams = [node.stream for node in plan.walk() if isinstance(node, Source)]
        rates = [self.statistics.stream(name).rate for name in streams]
        return has_choices(plan) and None not in rates

    def _cheaper(self, plan: Plan) -> tuple[str, Plan] | None:
        """The cheapest plan at a step from this one, if it is worth the step."""
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
