"""The costs of a plan as G5 counts them (§5.4.1): elements examined per unit of time.

    filter, map, union      ∑ λ                       δ*          λ₁·N_out / 2
    join, intersection      λ₁·N₁ + λ₂·N₂ (a scan)    group-by    2·λ₁·C, C = 1
    negation                2·λ₁·log d₁ + 2·λ₂·log d₂, plus early retractions

A row that is retracted by a separate element is processed twice. If all rows are, that doubles the
costs of all operators except group-by and negation, which process each end anyway. In a hybrid plan
only the share of early retractions counts twice. So plans of one query in the three approaches can
be compared without constants of a machine; `Estimates.cost` estimates times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from millstream.optimizer.cost.characteristics import Characteristics
from millstream.optimizer.cost.estimate import Estimates
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.aggregate import Aggregate
from millstream.physical.operators.distinct import Distinct
from millstream.physical.operators.join import Join
from millstream.physical.operators.lookup_join import LookupJoin
from millstream.physical.operators.multi_join import MultiJoin
from millstream.physical.operators.outer_join import OuterJoin
from millstream.physical.operators.pointwise import Pointwise, PointwiseFunction
from millstream.physical.operators.semi_join import SemiJoin


def unit_cost(estimates: Estimates) -> float:
    """Of the whole plan, elements a chronon."""
    return sum(
        node_cost(node, [estimates[child].output for child in node.inputs], own.output)
        for node, own in estimates
    )


def node_cost(
    node: PhysicalPlan, inputs: Sequence[Characteristics], output: Characteristics
) -> float:
    match node:
        case Join() | MultiJoin() | OuterJoin():
            return sum(input.elements * input.present for input in inputs)
        case LookupJoin():
            return inputs[0].elements * inputs[1].present + inputs[1].elements
        case Aggregate():
            return 2 * inputs[0].rate
        case SemiJoin():
            return negation(inputs) + output.retracted * output.rate
        case Pointwise(function=PointwiseFunction.IDENTITY):
            return inputs[0].elements
        case Pointwise(function=PointwiseFunction.INTERSECTION):
            return sum(input.elements * input.present for input in inputs)
        case Pointwise():
            return negation(inputs) + output.retracted * output.rate
        case Distinct():
            return inputs[0].elements * output.present / 2
    return sum(input.elements for input in inputs)


def negation(inputs: Sequence[Characteristics]) -> float:
    """2·∑ λ·log d: each start and each end is looked up among the different rows."""
    return sum(2 * input.rate * math.log2(max(2.0, input.variety)) for input in inputs)
