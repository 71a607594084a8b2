"""Filter: the rows for which a predicate holds.

*Meaning*: for every t, out(t) = { (e, n) in in(t) | p(e) }.
*State*: none. *Pattern*: that of the input. *Cost*: one evaluation a row.
*Source*: K §11.5.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from millstream.logical.expressions import Expression
from millstream.physical.batch import Batch
from millstream.physical.evaluation import Evaluation, is_true
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan


@dataclass(frozen=True)
class Filter(PhysicalPlan):
    input: PhysicalPlan
    predicate: Expression

    @cached_property
    def pattern(self) -> Pattern:
        return self.input.pattern

    def open(self, context: Context) -> Operator:
        return FilterOperator(Evaluation([self.predicate], self.input.schema, context))


class FilterOperator(Operator):
    def __init__(self, predicate: Evaluation) -> None:
        self._predicate = predicate

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        (holds,), failed = self._predicate.over(batch.columns, len(batch), batch.end)
        mask = is_true(holds)
        return [batch.where(mask if failed is None else mask & ~failed)]
