"""The local engine as an engine of the papers' cases, in each of the three forms of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from millstream.logical.plan import Plan, Schema, Source
from millstream.model.elements import Element, normal_form
from millstream.model.records import Records
from millstream.model.values import to_arrow
from millstream.optimizer.choice import Approach, Choices, choose
from millstream.physical.batch import Batch
from millstream.physical.operator import Context, PhysicalPlan, plain_rows
from millstream.runtime import answers, bounded
from papers.cases import Engine, Inputs

ALL_AT_ONCE = 1 << 20


def local(
    approach: Approach, rewrite: Callable[[PhysicalPlan], PhysicalPlan] = lambda plan: plan
) -> Engine:
    """The answer of a plan, row by row and all at once: they must be the same."""

    def answer(plan: Plan, inputs: Inputs) -> list[Element]:
        physical = rewrite(choose(plan, "FINAL", Choices(approach=approach)))
        whole = normal_form(_elements(physical, plan, inputs, ALL_AT_ONCE))
        assert normal_form(_elements(physical, plan, inputs, 1)) == whole
        return whole

    return answer


def interval_elements(plan: Plan, inputs: Inputs) -> Iterable[Element]:
    """What comes out where every operator gives intervals, element by element."""
    physical = choose(plan, "ELEMENTS", Choices(approach=Approach.INTERVALS))
    return _elements(physical, plan, inputs, 1)


def _elements(physical: PhysicalPlan, plan: Plan, inputs: Inputs, rows: int) -> Iterable[Element]:
    context = Context()
    given = bounded.answer(physical, context, records_of(plan, inputs), rows=rows)
    return elements_of(answers.cropped(given, context.beginning), plan.schema)


def records_of(plan: Plan, inputs: Inputs) -> dict[str, Records]:
    """The elements of the streams that a plan reads, each as often as its weight says."""
    sources = (node for node in plan.walk() if isinstance(node, Source))
    return {source.stream: _records(inputs[source.stream], _columns(source)) for source in sources}


def _columns(source: Source) -> Schema:
    return source.schema[:-1] if source.arrival else source.schema


def _records(elements: Sequence[Element], schema: Schema) -> Records:
    each = [element for element in elements for _ in range(element.weight)]
    return Records(
        [to_arrow([e.row[i] for e in each], field.type) for i, field in enumerate(schema)],
        np.array([e.start for e in each], np.int64),
        np.array([e.end for e in each], np.int64),
    )


def elements_of(batch: Batch, schema: Schema) -> Iterator[Element]:
    rows = plain_rows(batch.columns, [field.type for field in schema], np.arange(len(batch)))
    times = zip(batch.start.tolist(), batch.end.tolist(), batch.weight.tolist(), strict=True)
    for row, (start, end, weight) in zip(rows, times, strict=True):
        yield Element(row, start, end, weight)
