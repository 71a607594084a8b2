"""Granularity: the input as it was at the start of the granule.

*Meaning*: for every t, out(t) = in(⌊t/g⌋·g).
*State*: none: [s, e) holds at ⌊t/g⌋·g exactly if t lies in [⌈s/g⌉·g, ⌈e/g⌉·g).
*Pattern*: that of the input; rounding keeps the order. *Cost*: two divisions per element.
*Source*: K algorithm 24.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from millstream.physical.batch import Batch
from millstream.physical.instants import up
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan


@dataclass(frozen=True)
class Granularity(PhysicalPlan):
    input: PhysicalPlan
    granule: int

    @cached_property
    def pattern(self) -> Pattern:
        return self.input.pattern

    def open(self, context: Context) -> Operator:
        return GranularityOperator(self.granule)


class GranularityOperator(Operator):
    def __init__(self, granule: int) -> None:
        self._granule = granule

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        return [batch.timed(up(batch.start, self._granule), up(batch.end, self._granule))]
