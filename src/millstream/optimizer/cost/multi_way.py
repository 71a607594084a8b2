"""The multi-way join (G3 §4): like the binary join, without stored intermediate results."""

from __future__ import annotations

import math
from collections.abc import Sequence

from millstream.optimizer.cost.characteristics import INFINITE, Characteristics, product
from millstream.optimizer.cost.joins import area_rows, element_bytes, narrow, side_work
from millstream.optimizer.cost.model import Given, Model, joined_columns
from millstream.optimizer.cost.selectivity import facts_of_value, filtered, parts_of, selectivity
from millstream.optimizer.cost.work import Primitive, Work, together
from millstream.physical.joins.steps import EqualityClass, JoinStep
from millstream.physical.operators.multi_join import MultiJoin


def joint_rate_length(inputs: Sequence[tuple[float, float]], share: float) -> tuple[float, float]:
    """Eq. 22.4 for any number of inputs (dᵢ, lᵢ): a row of one input meets all rows of the others,
    and there are σ·∏ lᵢ/dᵢ results at an instant; so r' = σ·∏ (lᵢ/dᵢ)·∑ 1/lᵢ and
    l' = 1 / ∑ 1/lᵢ."""
    held = share * math.prod(life / d for d, life in inputs)
    length = 1 / sum(1 / life for _, life in inputs)
    return held / length, length


def multi_join(node: MultiJoin, inputs: Sequence[Characteristics], model: Model) -> Given:
    """State: the rows of each input, in one area per key by which it is probed; with lazy expiry,
    half of the rows of an interval wait. Costs: the partial results of each new element (G3 §4.2:
    λ·(N₁ + N₁·N₂/max(v₁, v₂) + …), or with hash tables only those that match)."""
    columns = joined_columns(node.sources, inputs)
    for link in node.links:
        narrow(link.key, columns)
    share = product(class_selectivity(each, inputs) for each in node.classes)
    rate, length = joint_rate_length([(i.distance, i.length) for i in inputs], share)
    output = Characteristics(
        1.0,
        length,
        max(input.granule for input in inputs),
        columns,
        _retractions(inputs),
        written=None if all(i.written is None for i in inputs) else INFINITE,
        batches=sum(input.batches for input in inputs),
    ).with_rate(rate)
    for condition in (*node.conditions, *([] if node.condition is None else [node.condition])):
        passed, columns_left = filtered(condition, output, model)
        output = output.with_rate(output.rate * passed, columns=columns_left)
    work, (rows, size) = _work(node, inputs, output, model), _state(node, inputs)
    return Given(output, work, rows, size, parts=len(inputs))


def class_selectivity(
    equals: EqualityClass, inputs: Sequence[Characteristics], ports: Sequence[int] | None = None
) -> float:
    """The share of combinations in which all members are equal: the member with the fewest distinct
    values is free, the others must match it (G3: one in max(v, w) per pair)."""
    members = [
        facts_of_value(expression, inputs[port]).distinct
        for port, expression in equals.members
        if ports is None or port in ports
    ]
    return 1 / product(sorted(members)[1:]) if members else 1.0


def _retractions(inputs: Sequence[Characteristics]) -> float:
    """As for two inputs: of all results, 1/lᵢ of ∑ 1/l begin, and end, with a row of input i."""
    total = sum(1 / input.length for input in inputs)
    return sum(input.retracted / input.length for input in inputs) / total


def _state(node: MultiJoin, inputs: Sequence[Characteristics]) -> tuple[float, float]:
    rows = size = 0.0
    for port, (own, choice) in enumerate(zip(inputs, node.areas, strict=True)):
        others = [other for index, other in enumerate(inputs) if index != port]
        slowest = min(others, key=lambda other: other.batches)
        count = area_rows(choice, node.sources[port], own, slowest) + own.rate * node.interval / 2
        rows += count
        size += count * element_bytes(choice, node.sources[port], own)
    return rows, size


def _work(
    node: MultiJoin, inputs: Sequence[Characteristics], output: Characteristics, model: Model
) -> Work:
    parts: list[Work] = [{Primitive.PAIR: output.elements}]
    ways = [node.steps(port) for port in range(len(inputs))]
    for port, own in enumerate(inputs):
        reached = (step for other, way in enumerate(ways) if other != port for step in way)
        indexes = len({step.shared for step in reached if step.port == port}) or 1
        keys = sum(1 for equals in node.classes if equals.of(port))
        own_side = side_work(node.areas[port], node.sources[port], own, keys, indexes)
        del own_side[Primitive.PROBE]
        parts += [own_side, _way(node, port, ways[port], inputs, model)]
    return together(*parts)


def _way(
    node: MultiJoin,
    port: int,
    steps: Sequence[JoinStep],
    inputs: Sequence[Characteristics],
    model: Model,
) -> Work:
    """The partial results of one input's new elements. A step with an equality to the bound inputs
    is probed by it, any other step scans all rows."""
    work: Work = {}
    partial = inputs[port].elements
    bound: list[int] = []
    for step in steps:
        if step.port != port:
            there = inputs[step.port].present
            before = product(class_selectivity(c, inputs, bound) for c in node.classes)
            after = product(class_selectivity(c, inputs, [*bound, step.port]) for c in node.classes)
            # Values that never repeat never match: both shares are 0.
            equal = after / before if after else 0.0
            met = partial * there * (equal if step.shared else 1.0)
            pairs: Work = {Primitive.PROBE: partial, Primitive.CANDIDATE: met, Primitive.PAIR: met}
            partial = met
            work = together(work, pairs)
        bound.append(step.port)
        for condition in step.conditions:
            everything = Characteristics(1.0, 1.0, columns=joined_columns(node.sources, inputs))
            work = together(work, {Primitive.EXPRESSION: partial * parts_of(condition)})
            partial *= selectivity(condition, everything, model)
    return work
