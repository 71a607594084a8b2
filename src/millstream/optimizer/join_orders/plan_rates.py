"""The cost model's knowledge of the inputs of joins."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.logical.expressions import Expression
from millstream.logical.plan import Plan
from millstream.model.modes import Emit
from millstream.optimizer.choice import Choices, choose
from millstream.optimizer.cost import Characteristics, Constants, Primitive, estimate
from millstream.optimizer.cost.model import Model
from millstream.optimizer.cost.selectivity import facts_of_value, selectivity
from millstream.optimizer.multi_way_search import Weights
from millstream.optimizer.statistics import Statistics


class PlanRates:
    """Rates per chronon and sizes at an instant of logical plans, from the statistics of their
    streams."""

    def __init__(self, statistics: Statistics, choices: Choices | None = None) -> None:
        self._statistics, self._choices = statistics, choices
        self._outputs: dict[int, tuple[Plan, Characteristics]] = {}  # by who is kept with it

    def _output(self, plan: Plan) -> Characteristics:
        if id(plan) not in self._outputs:
            chosen = choose(plan, Emit.ELEMENTS, self._choices)
            self._outputs[id(plan)] = plan, estimate(chosen, self._statistics).output
        return self._outputs[id(plan)][1]

    def rate(self, plan: Plan) -> float:
        return self._output(plan).rate

    def size(self, plan: Plan) -> float:
        return self._output(plan).present

    def distinct(self, plan: Plan, expression: Expression) -> float:
        return facts_of_value(expression, self._output(plan)).distinct

    def selectivity(self, inputs: Sequence[Plan], condition: Expression) -> float:
        columns = {
            key: facts for plan in inputs for key, facts in self._output(plan).columns.items()
        }
        everything = Characteristics(1.0, 1.0, columns=columns)
        return selectivity(condition, everything, Model(self._statistics))


def weights(constants: Constants) -> Weights:
    """The costs of primitive operations for the search of orders; the cost model then decides which
    of the found plans is best."""
    cost = constants.primitives
    return Weights(
        append=cost[Primitive.INSERT],
        hash=cost[Primitive.INSERT] + cost[Primitive.KEY],
        expire=0.0,  # is in INSERT
        probe=cost[Primitive.PROBE],
        look=cost[Primitive.CANDIDATE],
        make=cost[Primitive.PAIR],
    )
