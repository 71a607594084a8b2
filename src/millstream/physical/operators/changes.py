"""Changes: the rows added and removed at each instant, for EMIT CHANGES.

*Meaning*: for every instant t, the rows e with in(t)(e) ≠ in(t-1)(e), each once, with the
difference as its weight and [t, ∞) as its interval; all of an instant at once, in order of time.
*State*: the known future of the rows. *Pattern*: STRICT.
*Cost*: an event per start and end.

The answer begins with the first input: rows valid before it are added at that instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from millstream.logical.expressions import AggregateCall, Column
from millstream.logical.plan import Named
from millstream.model import types
from millstream.model.time import INFINITY
from millstream.physical.accumulators import accumulator
from millstream.physical.batch import NEVER, Batch
from millstream.physical.events.net_changes import NetOperator
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan
from millstream.physical.operators.aggregate import Aggregate
from millstream.physical.operators.map import Map
from millstream.physical.operators.pointwise import Form


@dataclass(frozen=True)
class Changes(PhysicalPlan):
    input: PhysicalPlan

    @cached_property
    def pattern(self) -> Pattern:
        return Pattern.STRICT

    @property
    def state(self) -> str:
        return "agenda"

    def open(self, context: Context) -> Operator:
        return ChangesOperator(self, context)


def _is_net(plan: PhysicalPlan, context: Context) -> bool:
    """Whether all rows of an instant are distinct and actually change: true for groups identified
    by their keys, if a new row that equals the old one has the same bits."""
    if isinstance(plan, Map):
        outputs = [output.expression for output in plan.outputs]
        kept = {output.key for output in outputs if isinstance(output, Column)}
        below = plan.input
        chosen = len(kept) == len(outputs)
    else:
        kept, below, chosen = {field.key for field in plan.schema}, plan, True
    if not (chosen and isinstance(below, Aggregate) and below.keys):
        return False
    told = kept.issuperset(key.field.key for key in below.keys)
    if not told or below.form is not Form.SIGNED:
        return False
    return all(_has_one_form(aggregate, context) for aggregate in below.aggregates)


def _has_one_form(aggregate: Named, context: Context) -> bool:
    """Whether equal values have equal bits: there may be two zeros, and several NaNs."""
    call = aggregate.expression
    if types.is_floating(call.type):
        assert isinstance(call, AggregateCall)
        one = accumulator(call, context.aggregates, fifo=False).one_form
        return one and call.type == types.DOUBLE
    return not pa.types.is_nested(call.type)


class ChangesOperator(NetOperator):
    def __init__(self, node: Changes, context: Context) -> None:
        super().__init__(node, net=_is_net(node.input, context))
        self._context = context
        self._nothing = Batch.empty(node.types, NEVER)

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        if batch.frontier <= self._frontier or self._context.beginning >= batch.frontier:
            self._net.add(batch)
            return [self._nothing.up_to(batch.frontier)]
        self._frontier = batch.frontier
        rows, start, net = self._net.due(batch, self._context.beginning)
        end = np.full(len(start), INFINITY)
        return [Batch(rows, start, end, net, batch.frontier)]
