"""Elements pushed through physical plans: cut into batches anywhere, stopped and started again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from random import Random

import numpy as np

from millstream.logical.plan import Schema
from millstream.model.codec import packed, unpacked
from millstream.model.elements import Element
from millstream.model.time import INFINITY
from millstream.model.values import to_arrow
from millstream.physical.batch import NEVER, Batch
from millstream.physical.operator import Context, Pattern, PhysicalPlan, plain_rows
from millstream.physical.operators.source import Source
from millstream.runtime.graph import Graph

Inputs = Mapping[str, Sequence[Element]]


@dataclass(frozen=True)
class Given(Source):
    """A source whose elements come and go as its pattern says."""

    given_pattern: Pattern = Pattern.WEAK

    @cached_property
    def pattern(self) -> Pattern:
        return self.given_pattern


def given(stream: str, schema: Schema, pattern: Pattern) -> Given:
    return Given(stream, schema, pattern is Pattern.WEAKEST, given_pattern=pattern)


# --- running a plan -------------------------------------------------------------------------------


class Run:
    """A plan that runs; `elements` is what it gave, `frontier` how far it has come."""

    def __init__(self, plan: PhysicalPlan) -> None:
        self.plan = plan
        self.elements: list[Element] = []
        self.frontier = NEVER
        self._context = Context()
        self.graph = Graph(plan, self._context, self._take)

    def _take(self, batch: Batch) -> None:
        taken = list(elements_of(batch, self.plan.schema))
        assert all(element.start >= self.frontier for element in taken), "final is final"
        assert batch.frontier >= self.frontier
        self.elements += taken
        self.frontier = batch.frontier

    def push(self, stream: str, elements: Sequence[Element], frontier: int) -> None:
        for vertex in self.graph.sources[stream]:
            self.graph.push(vertex, batch_of(elements, vertex.node.schema, frontier))

    def restart(self) -> None:
        """Save the state and go on with other operators."""
        states = unpacked(packed(self.graph.save()))
        frontiers = [vertex.frontier for vertex in self.graph.vertices]
        self.graph = Graph(self.plan, self._context, self._take)
        self.graph.restore(states)
        for vertex, frontier in zip(self.graph.vertices, frontiers, strict=True):
            vertex.frontier = frontier


def run(plan: PhysicalPlan, inputs: Inputs, chance: Random | None = None) -> Run:
    """All of the inputs, in the order in which they stand; with `chance`, in batches of any size,
    the streams in any order, and with restarts. Without, element by element in order of time."""
    running = Run(plan)
    if chance is None:
        for stream, elements, frontier in _in_time(inputs):
            running.push(stream, elements, frontier)
    else:
        for stream, elements, frontier in _at_random(inputs, chance):
            running.push(stream, elements, frontier)
            if chance.random() < 0.1:
                running.restart()
    for stream in inputs:
        running.push(stream, [], INFINITY)
    return running


def _in_time(inputs: Inputs) -> Iterator[tuple[str, list[Element], int]]:
    each = [
        (element.start, stream, [element], least)
        for stream, elements in inputs.items()
        for element, least in zip(elements, _least_to_come(elements), strict=True)
    ]
    for start, stream, elements, least in sorted(each, key=lambda item: item[0]):
        yield stream, elements, min(start, least)


def _at_random(inputs: Inputs, chance: Random) -> Iterator[tuple[str, list[Element], int]]:
    rest = {stream: list(elements) for stream, elements in inputs.items() if elements}
    frontiers = dict.fromkeys(rest, NEVER)
    while rest:
        stream = chance.choice(sorted(rest))
        count = chance.choice([0, 1, 1, 2, 5, 50])
        batch, after = rest[stream][:count], rest[stream][count:]
        rest[stream] = after
        least = min((element.start for element in after), default=INFINITY)
        if not after:
            del rest[stream]
        known = [e.start for e in batch] or [least]
        frontier = min(max(known), least) - chance.choice([0, 0, 0, 3])
        if chance.random() < 0.9:
            frontiers[stream] = max(frontiers[stream], frontier)
        yield stream, batch, frontiers[stream]


def _least_to_come(elements: Sequence[Element]) -> list[int]:
    backwards = accumulate((e.start for e in reversed(elements)), min, initial=INFINITY)
    return list(backwards)[-2::-1]


def batch_of(elements: Sequence[Element], schema: Schema, frontier: int) -> Batch:
    return Batch.of(
        [to_arrow([e.row[i] for e in elements], field.type) for i, field in enumerate(schema)],
        [e.start for e in elements],
        [e.end for e in elements],
        [e.weight for e in elements],
        frontier,
    )


def elements_of(batch: Batch, schema: Schema) -> Iterator[Element]:
    rows = plain_rows(batch.columns, [field.type for field in schema], np.arange(len(batch)))
    times = zip(batch.start.tolist(), batch.end.tolist(), batch.weight.tolist(), strict=True)
    for row, (start, end, weight) in zip(rows, times, strict=True):
        yield Element(row, start, end, weight)


# --- elements to feed -----------------------------------------------------------------------------


def random_elements(
    chance: Random, pattern: Pattern, count: int, values: Sequence[Sequence[object]]
) -> list[Element]:
    """Elements that come and go as a pattern says; `values` are those of each column."""
    rows = [tuple(map(chance.choice, values)) for _ in range(count)]
    starts = sorted(chance.randrange(30) for _ in range(count))
    if pattern is Pattern.WEAKEST:
        size = chance.choice([1, 5, 20])
        return [Element(r, s, s + size) for r, s in zip(rows, starts, strict=True)]
    if pattern is Pattern.MONOTONIC:
        return [Element(r, s, INFINITY) for r, s in zip(rows, starts, strict=True)]
    known = [
        Element(r, s, s + chance.choice([1, 3, 10, 30]), chance.choice([1, 1, 2]))
        for r, s in zip(rows, starts, strict=True)
    ]
    if pattern is Pattern.WEAK:
        return sorted(known, key=lambda element: element.start + chance.choice([0, 0, 4]))
    return _retracted(chance, known)


def _retracted(chance: Random, elements: Sequence[Element]) -> list[Element]:
    """Some go before their time, some of them had no end, some lose a part of their weight."""
    signed = []
    for element in elements:
        end = chance.choice([element.end, INFINITY])
        signed.append(Element(element.row, element.start, end, element.weight))
        if chance.random() < 0.7:
            goes = chance.randrange(element.start, min(end, element.start + 20))
            gone = chance.randrange(1, element.weight + 1)
            signed.append(Element(element.row, goes, end, -gone))
    return sorted(signed, key=lambda element: element.start)
