"""Deltas: the rows added at each instant (ISTREAM), or those removed (DSTREAM).

*Meaning*: for every t, out(t) = in(t) - in(t-1), or in(t-1) - in(t), as multisets. Rows that were
always valid are never added.
*State*: the known future of the rows; nothing of the past.
*Pattern*: WEAKEST: rows live one instant, and are emitted in order. *Cost*: an event per start and
end.
*Source*: CQL, adapted to intervals in K §17.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from millstream.model.time import ALWAYS
from millstream.physical.batch import Batch
from millstream.physical.events.net_changes import NetOperator
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan


@dataclass(frozen=True)
class Deltas(PhysicalPlan):
    input: PhysicalPlan
    gone: bool = False

    @cached_property
    def pattern(self) -> Pattern:
        return Pattern.WEAKEST

    @property
    def state(self) -> str:
        return "agenda"

    def open(self, context: Context) -> Operator:
        return DeltasOperator(self)


class DeltasOperator(NetOperator):
    def __init__(self, node: Deltas) -> None:
        super().__init__(node)
        self._sign = -1 if node.gone else 1

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        if batch.frontier <= self._frontier:
            self._net.add(batch)
            return []
        self._frontier = batch.frontier
        rows, start, net = self._net.due(batch)
        index = ((net * self._sign > 0) & (start > ALWAYS)).nonzero()[0]
        start = start[index]
        net = np.abs(net[index])
        return [Batch(rows.take(index), start, start + 1, net, batch.frontier)]
