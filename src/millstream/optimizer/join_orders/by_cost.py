"""Inner joins in the cheapest order, as binary joins or as a multi-way join.

Orders are searched in the join graph, with a simple cost function. Then the cost model compares the
result with the original plan, over the operators that would run. If it is not cheaper, the plan
stays unchanged.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from math import inf

from millstream.logical.expressions import Column, Expression, walk
from millstream.logical.plan import Plan
from millstream.model.modes import Emit
from millstream.optimizer.choice import Choices, choose
from millstream.optimizer.cost import Constants, estimate
from millstream.optimizer.cost.characteristics import Characteristics
from millstream.optimizer.cost.model import Model, joined_columns
from millstream.optimizer.cost.selectivity import facts_of_value, selectivity
from millstream.optimizer.join_graph import Equality, JoinGraph, JoinInput, Predicate, mask_of
from millstream.optimizer.join_orders.greedy import good_tree
from millstream.optimizer.join_orders.inner_joins import InnerJoins, inner_joins
from millstream.optimizer.join_orders.plan_rates import PlanRates, weights
from millstream.optimizer.join_orders.search import cheapest
from millstream.optimizer.multi_way import multi_way
from millstream.optimizer.multi_way_orders import MultiWay
from millstream.optimizer.multi_way_search import best_orders
from millstream.optimizer.optimize import optimize
from millstream.optimizer.statistics import Statistics
from millstream.physical.joins.areas.area import Probing
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.multi_join import MultiJoin

MOST = 10  # the maximum number of inputs for an exact search
WORTH = 0.9  # of the cost: the accuracy of estimates


def reorder_joins(
    plan: Plan,
    statistics: Statistics,
    constants: Constants | None = None,
    choices: Choices | None = None,
) -> Plan:
    """The plan with each tree of inner joins in its cheapest order; the columns do not change."""
    return _Reordering(statistics, constants or Constants(), choices).node(plan)


class _Reordering:
    def __init__(
        self, statistics: Statistics, constants: Constants, choices: Choices | None
    ) -> None:
        self._statistics, self._constants, self._choices = statistics, constants, choices
        self._known = PlanRates(statistics, choices)
        self._done: dict[int, Plan] = {}

    def node(self, plan: Plan) -> Plan:
        if id(plan) not in self._done:
            joins = inner_joins(plan)
            if joins is None or len(joins.inputs) < 3:
                self._done[id(plan)] = self._with_inputs(plan)
            else:
                self._done[id(plan)] = self._ordered(plan, joins)
        return self._done[id(plan)]

    def _with_inputs(self, plan: Plan) -> Plan:
        inputs = [self.node(child) for child in plan.inputs]
        if all(new is old for new, old in zip(inputs, plan.inputs, strict=True)):
            return plan
        return plan.with_inputs(*inputs)

    def _ordered(self, plan: Plan, joins: InnerJoins) -> Plan:
        within = joins.with_inputs(map(self.node, joins.inputs))
        # Inputs keep their columns, so trees over the old inputs are also trees over the new ones.
        same = all(map(operator.is_, within.inputs, joins.inputs))
        written = plan if same else self._with_inputs(plan)
        search = cheapest if len(joins.inputs) <= MOST else good_tree
        found = search(within.graph(self._known), weights(self._constants))
        ordered = optimize(within.plan(found.tree))
        return ordered if self._cost(ordered) < WORTH * self._cost(written) else written

    def _cost(self, plan: Plan) -> float:
        chosen = choose(plan, Emit.ELEMENTS, self._choices)
        return estimate(chosen, self._statistics, self._constants).cost


# --- multi-way joins ------------------------------------------------------------------------------


def joins_of_many(
    plan: PhysicalPlan, statistics: Statistics, constants: Constants | None = None
) -> PhysicalPlan:
    """The plan with trees of binary joins as joins of up to `MOST` inputs, each with its best
    orders, if that costs less."""
    together = multi_way(plan, lambda join: _in_best_orders(join, statistics), MOST)
    if together is plan:
        return plan
    costs = [estimate(each, statistics, constants).cost for each in (together, plan)]
    return together if costs[0] < WORTH * costs[1] else plan


def _in_best_orders(join: MultiJoin, statistics: Statistics) -> MultiJoin:
    return replace(join, orders=best_orders(_as_model(join, statistics)).orders)


def _as_model(join: MultiJoin, statistics: Statistics) -> MultiWay:
    """A multi-way join in G3's model. Inputs with a key are looked up by it, if hashed."""
    estimates = estimate(join, statistics)
    given = [estimates[source].output for source in join.sources]
    inputs = (JoinInput(f"{i + 1}", each.rate, each.present) for i, each in enumerate(given))
    equalities = (
        Equality(
            tuple(
                (port, max(facts_of_value(each, given[port]).distinct for each in equal.of(port)))
                for port in range(len(given))
                if equal.of(port)
            )
        )
        for equal in join.classes
    )
    everything = Characteristics(1.0, 1.0, columns=joined_columns(join.sources, given))
    predicates = (
        Predicate(_read(join, each), selectivity(each, everything, Model(statistics)))
        for each in join.conditions
    )
    buckets = tuple(inf if area.probing is Probing.HASH else 1.0 for area in join.areas)
    graph = JoinGraph(tuple(inputs), tuple(equalities), tuple(predicates))
    return MultiWay(graph, buckets, join.interval)


def _read(join: MultiJoin, condition: Expression) -> int:
    """The inputs that a condition reads."""
    columns = {part.key for part in walk(condition) if isinstance(part, Column)}
    own = [{field.key for field in source.schema} for source in join.sources]
    return mask_of([port for port, keys in enumerate(own) if columns & keys])
