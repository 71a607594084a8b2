"""Whether the local operators give the answer of the definition, whatever the schedule.

A *trial* is a form of the plan (approach, emit, which streams are in order) and a schedule, both
drawn from one tape. While a plan runs, every edge is held to what its pattern promises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random

import numpy as np
import pyarrow as pa

from millstream.logical.expressions import AggregateCall
from millstream.logical.plan import Join, Lifetime, Plan, Source, expressions
from millstream.logical.reference import Reference
from millstream.logical.text import plan_text
from millstream.model.codec import packed, unpacked
from millstream.model.elements import Element, Row, normal_form
from millstream.model.errors import QueryError
from millstream.model.long_texts import ordinary_type
from millstream.model.time import INFINITY
from millstream.model.values import to_arrow
from millstream.optimizer.alternatives import alternatives
from millstream.optimizer.choice import Approach, Choices, choose
from millstream.optimizer.multi_way import multi_way
from millstream.optimizer.optimize import optimize
from millstream.physical.batch import NEVER, Batch, Columns
from millstream.physical.joins.areas.area import Probing
from millstream.physical.joins.areas.calendar import Closing
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.operator import Context, Pattern, PhysicalPlan, plain_rows
from millstream.runtime.graph import Graph, Receive, Vertex
from oracle.agreement import Bench, same_rows
from oracle.random_streams import Tape
from runtime.schedules import Arrival, Restart, schedule

Inputs = Mapping[str, Sequence[Element]]

# Their doubles depend on the order in which rows are added, in the last digits.
INEXACT = {"var_pop", "var_samp", "variance", "stddev", "stddev_pop", "stddev_samp", "std"}


# --- what flows on edges --------------------------------------------------------------------------


@dataclass
class Edge:
    """What an operator has given so far."""

    frontier: int = NEVER
    start: int = NEVER  # the largest
    end: int = NEVER


class WatchedGraph(Graph):
    """A graph that checks every batch on every edge. It reads no rows: that is for operators to
    do in time."""

    def __init__(
        self, plan: PhysicalPlan, context: Context, sink: Receive, edges: list[Edge] | None = None
    ) -> None:
        super().__init__(plan, context, sink)
        self.edges = edges or [Edge() for _ in self.vertices]
        self._edge_of = {
            id(vertex): edge for vertex, edge in zip(self.vertices, self.edges, strict=True)
        }

    def _pass_on(self, vertex: Vertex, batch: Batch) -> None:
        check_edge(vertex.node, self._edge_of[id(vertex)], batch)
        super()._pass_on(vertex, batch)


def check_edge(node: PhysicalPlan, edge: Edge, batch: Batch) -> None:
    where = type(node).__name__
    assert len(batch.columns) == len(node.types), where
    assert len(batch.start) == len(batch.end) == len(batch.weight), where
    if len(batch):
        if not is_final(node):
            assert batch.start.min() >= edge.frontier, f"{where}: before the frontier"
        assert (batch.start <= batch.end).all(), where
        if node.pattern is not Pattern.STRICT:
            assert batch.weight.min() > 0, f"{where}: {node.pattern} is positive"
        if node.pattern is Pattern.MONOTONIC:
            assert (batch.end == INFINITY).all(), f"{where}: MONOTONIC never ends"
        if node.pattern is Pattern.WEAKEST:
            starts, ends = [edge.start, *batch.start.tolist()], [edge.end, *batch.end.tolist()]
            assert starts == sorted(starts), f"{where}: WEAKEST starts in order"
            assert ends == sorted(ends), f"{where}: WEAKEST ends in order"
            edge.start, edge.end = starts[-1], ends[-1]
    edge.frontier = max(edge.frontier, batch.frontier)


def is_final(node: PhysicalPlan) -> bool:
    """Whether what it gives waited for its end: then it starts before the frontier."""
    if getattr(node, "final", False):
        return True
    return type(node).__name__ in ("Map", "Filter") and any(map(is_final, node.inputs))


def has_signed(node: PhysicalPlan) -> bool:
    return node.pattern is Pattern.STRICT or any(map(has_signed, node.inputs))


# --- a trial --------------------------------------------------------------------------------------


@dataclass
class Trial:
    """A form of a plan, and the tape from which its schedule is drawn."""

    tape: Tape
    approach: Approach = field(init=False)
    emit: str = field(init=False)
    ordered: bool | None = field(init=False)
    areas: AreaChoice = field(init=False)
    many: bool = field(init=False)  # trees of joins are one join
    optimized: bool = field(init=False)
    steps: int = field(init=False)  # to plans that might be cheaper

    def __post_init__(self) -> None:
        pick = self.tape.pick
        self.approach = pick(Approach.HYBRID, Approach.HYBRID, Approach.INTERVALS, Approach.SIGNED)
        self.emit = pick("FINAL", "CHANGES", "ELEMENTS")
        self.ordered = pick(True, True, False, None)  # None: the first of the streams
        usual = AreaChoice()
        unusual = AreaChoice(
            pick(Probing.HASH, Probing.LOOP),
            pick(Closing.KEYED, Closing.SCANNED),
            lazy=pick(0, 1, 3, 100),
            partitions=pick(64, 2, 3, 10),
            calendar=pick(False, True),
        )
        self.areas = pick(usual, unusual)
        self.many = pick(False, True)
        self.optimized = pick(True, True, False)
        self.steps = pick(0, 0, 1, 3)

    def chosen(self, plan: Plan, disordered: frozenset[str]) -> PhysicalPlan:
        plan = optimize(plan) if self.optimized else plan
        plan = wandered(plan, self.steps, Random(self.tape.content))
        chosen = choose(plan, self.emit, Choices(disordered, self.approach, self.areas))
        return multi_way(chosen) if self.many else chosen

    def ordered_streams(self, streams: Iterable[str]) -> frozenset[str]:
        names = sorted(streams)
        return frozenset(names if self.ordered else names[:1] if self.ordered is None else ())

    def __str__(self) -> str:
        used = self.tape.content[: self.tape.place]
        forms = f"{self.approach.name} {self.emit} {self.areas} many={self.many}"
        return f"{forms} optimized={self.optimized} steps={self.steps} Tape({used!r})"


def wandered(plan: Plan, steps: int, random: Random) -> Plan:
    """A plan that the optimizer may choose, if costs are so: some steps away."""
    for _ in range(steps):
        others = [other for _, other in islice(alternatives(plan), 20)]
        if others:
            plan = optimize(random.choice(others))
    return plan


@dataclass
class Outcome:
    """What a run gave."""

    given: list[Element] = field(default_factory=list)
    frontiers: list[int] = field(default_factory=list)  # of the batch of each element
    errors: dict[tuple[Row, str], None] = field(default_factory=dict)
    beginning: int = INFINITY
    refused: bool = False
    signed: bool = False  # whether elements were retracted on the way

    @property
    def answer(self) -> list[Element]:
        """In normal form, from the first input on."""
        cropped = (
            Element(e.row, max(e.start, self.beginning), max(e.end, self.beginning), e.weight)
            for e in self.given
        )
        return normal_form(cropped)


def run(plan: Plan, inputs: Inputs, trial: Trial) -> Outcome:
    """The plan under the trial's schedule."""
    sources = {node.stream: node for node in plan.walk() if isinstance(node, Source)}
    ordered = trial.ordered_streams(sources)
    starts = {name: [element.start for element in inputs[name]] for name in sorted(sources)}
    in_order = {n for n in ordered if sources[n].lifetime is Lifetime.INSTANT}
    feeds = {name: Feed(source, inputs[name]) for name, source in sources.items()}
    running = Running(trial.chosen(plan, frozenset(sources) - ordered))
    try:
        for step in schedule(trial.tape, starts, frozenset(in_order)):
            if isinstance(step, Restart):
                running.restart(step.anew)
            else:
                running.push(feeds[step.stream], step)
    except QueryError:
        running.outcome.refused = True
    return running.finished()


class Feed:
    """The rows of a stream as batches."""

    def __init__(self, source: Source, elements: Sequence[Element]) -> None:
        self.stream = source.stream
        columns = [
            to_arrow([e.row[i] for e in elements], column.type)
            for i, column in enumerate(source.columns)
        ]
        starts, ends, weights = (
            np.array([getattr(e, name) for e in elements], np.int64)
            for name in ("start", "end", "weight")
        )
        self._rows = Batch(Columns.of(columns), starts, ends, weights, NEVER)

    def batch(self, step: Arrival, arrival: bool) -> Batch:
        index = np.array(step.rows, np.int64)
        batch = self._rows.take(index).up_to(step.frontier)
        if arrival:
            batch.columns = batch.columns + Columns.of([pa.array(index)])
        return batch


class Running:
    """A plan that runs, and is stopped and started again."""

    def __init__(self, plan: PhysicalPlan) -> None:
        self.plan = plan
        self.outcome = Outcome(signed=any(map(has_signed, plan.inputs)))
        self.graph = WatchedGraph(plan, Context(), self.take)

    def push(self, feed: Feed, step: Arrival) -> None:
        for vertex in self.graph.sources[feed.stream]:
            assert hasattr(vertex.node, "arrival")
            self.graph.push(vertex, feed.batch(step, vertex.node.arrival))

    def restart(self, anew: bool) -> None:
        states = unpacked(packed(self.graph.save()))
        if anew:
            old = self.graph.context
            context = Context(beginning=old.beginning, errors=old.errors)
            self.graph = WatchedGraph(self.plan, context, self.take, self.graph.edges)
            self.graph.restore(states)

    def take(self, batch: Batch) -> None:
        for array, type in zip(batch.columns, self.plan.types, strict=True):
            assert ordinary_type(array.type) == type
            assert len(array) == len(batch)
        rows = plain_rows(batch.columns, self.plan.types, np.arange(len(batch)))
        times = (batch.start.tolist(), batch.end.tolist(), batch.weight.tolist())
        self.outcome.given += [Element(*each) for each in zip(rows, *times, strict=True)]
        self.outcome.frontiers += [batch.frontier] * len(rows)

    def finished(self) -> Outcome:
        self.outcome.errors = self.graph.context.errors
        self.outcome.beginning = self.graph.context.beginning
        if not self.outcome.refused:
            ends = {edge.frontier for edge in self.graph.edges}
            assert ends == {INFINITY}, "every operator comes to its end"
        return self.outcome


# --- agreement ------------------------------------------------------------------------------------


class Expected:
    """What the definition says about a plan over inputs."""

    def __init__(self, plan: Plan, inputs: Inputs) -> None:
        self.plan = plan
        self.inputs = inputs
        reference = Reference(plan, inputs)
        self.answer: list[Element] | None
        try:
            self.answer = reference.result()
        except QueryError:
            self.answer = None  # it never settles
        #: Those of the answer, and those of the inputs of operators at any instant.
        self.errors = {*reference.errors}
        self.possible_errors = self.errors | all_errors(reference)
        self.pairs = any(isinstance(node, Join) for node in plan.walk())

    def check(self, trial: Trial) -> None:
        """Require that a trial gives the same."""
        try:
            outcome = run(self.plan, self.inputs, trial)
            assert outcome.refused == (self.answer is None)
            if self.answer is None:
                return
            assert self.agrees(outcome.answer), difference(outcome.answer, self.answer)
            self.check_errors(outcome)
            if trial.emit == "CHANGES":
                check_changes(outcome)
        except Exception as error:
            raise AssertionError(f"{error!r}\n{trial}\n{plan_text(self.plan)}") from error

    def check_errors(self, outcome: Outcome) -> None:
        """A join that has keys does not look at all pairs; elements that are retracted are looked
        at, though they may hold at no instant."""
        errors = {*outcome.errors}
        if not outcome.signed:
            assert errors <= self.possible_errors, errors - self.possible_errors
        if not self.pairs:
            assert errors >= self.errors, self.errors - errors

    def agrees(self, answer: list[Element]) -> bool:
        assert self.answer is not None
        if answer == self.answer:
            return True
        return is_inexact(self.plan) and nearly_equal(answer, self.answer)


def all_errors(reference: Reference) -> set[tuple[Row, str]]:
    """What cannot be evaluated at any instant, also where no operator above asks for it."""
    for node in reference.plan.walk():
        try:
            instants = {reference.beginning, *reference.changes(node)}
        except QueryError:
            continue
        for instant in instants:
            if reference.beginning <= instant < INFINITY:
                reference.snapshot(node, instant)
    return {*reference.errors}


def expected_of(bench: Bench, text: str) -> Expected:
    """What the definition says about a query over the streams of a bench."""
    plan = bench.query(text).plan
    inputs = bench.session._origins.inputs(plan)
    return Expected(plan, {name: records.elements() for name, records in inputs.items()})


def is_inexact(plan: Plan) -> bool:
    return any(
        isinstance(part, AggregateCall) and part.function in INEXACT
        for node in plan.walk()
        for part in expressions(node)
    )


def nearly_equal(ours: Sequence[Element], theirs: Sequence[Element]) -> bool:
    """Equal at every instant, doubles within 1e-9."""
    instants = {t for element in (*ours, *theirs) for t in (element.start, element.end)}
    return all(same_rows(snapshot(ours, t), snapshot(theirs, t)) for t in instants)


def snapshot(elements: Iterable[Element], t: int) -> list[Row]:
    return [e.row for e in elements if e.start <= t < e.end for _ in range(e.weight)]


def check_changes(outcome: Outcome) -> None:
    """Each row and instant once, in order of time, when the frontier has passed it."""
    seen = Counter((e.row, e.start) for e in outcome.given)
    assert max(seen.values(), default=1) == 1
    times = [element.start for element in outcome.given]
    assert times == sorted(times)
    assert all(map(lambda time, frontier: time < frontier, times, outcome.frontiers))
    assert all(element.weight != 0 and element.end == INFINITY for element in outcome.given)
    assert all(time >= outcome.beginning for time in times)


def difference(ours: list[Element], theirs: list[Element]) -> str:
    left, right = Counter(map(str, ours)), Counter(map(str, theirs))
    return f"\n  too much: {list(left - right)}\n  missing:  {list(right - left)}"
