"""Map: each row replaced by expressions over it.

*Meaning*: for every t, out(t) = { (f(e), n) | (e, n) in in(t) }, equal images added up.
*State*: none. *Pattern*: that of the input. *Cost*: one evaluation per row; columns that are only
renamed or moved are not touched.
*Source*: K §11.5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from millstream.logical.expressions import Column
from millstream.logical.plan import Named, Schema
from millstream.physical.batch import Batch, Columns
from millstream.physical.expressions.evaluation import Evaluation
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan


@dataclass(frozen=True)
class Map(PhysicalPlan):
    input: PhysicalPlan
    outputs: tuple[Named, ...]

    @cached_property
    def schema(self) -> Schema:
        return tuple(output.field for output in self.outputs)

    @cached_property
    def pattern(self) -> Pattern:
        return self.input.pattern

    def open(self, context: Context) -> Operator:
        expressions = [output.expression for output in self.outputs]
        places = {field.key: place for place, field in enumerate(self.input.schema)}
        chosen = [places[e.key] for e in expressions if isinstance(e, Column)]
        if len(chosen) == len(expressions):
            return ChoiceOperator(chosen)
        return MapOperator(Evaluation(expressions, self.input.schema, context))


class MapOperator(Operator):
    def __init__(self, outputs: Evaluation) -> None:
        self._outputs = outputs

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        columns, kept = self._outputs.kept(batch)
        return [Batch(columns, kept.start, kept.end, kept.weight, kept.frontier)]


class ChoiceOperator(Operator):
    """A map that computes nothing: the columns at these positions."""

    def __init__(self, places: list[int]) -> None:
        self._places = places

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        lazy = batch.columns.lazy
        columns = Columns([lazy[place] for place in self._places])
        return [Batch(columns, batch.start, batch.end, batch.weight, batch.frontier)]
