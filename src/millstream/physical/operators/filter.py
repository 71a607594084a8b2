"""Filter: the rows for which a predicate holds.

*Meaning*: for every t, out(t) = { (e, n) in in(t) | p(e) }.
*State*: none. *Pattern*: that of the input. *Cost*: one evaluation per row.
*Source*: K §11.5.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from millstream.logical.expressions import Expression
from millstream.physical.batch import Batch
from millstream.physical.expressions.evaluation import Condition
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan


@dataclass(frozen=True)
class Filter(PhysicalPlan):
    input: PhysicalPlan
    predicate: Expression

    @cached_property
    def pattern(self) -> Pattern:
        return self.input.pattern

    def open(self, context: Context) -> Operator:
        return FilterOperator(Condition(self.predicate, self.input.schema, context))


class FilterOperator(Operator):
    def __init__(self, predicate: Condition) -> None:
        self._predicate = predicate

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        rows = self._predicate.rows(batch.columns, len(batch), batch.end)
        return [batch if len(rows) == len(batch) else batch.take(rows)]
