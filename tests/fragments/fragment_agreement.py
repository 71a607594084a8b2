"""Whether a plan that is cut into fragments and shards gives the answer of the definition.

Messages go from task to task as they do in a Spark job, but in this process: so many schedules can
be tried. A trial is drawn from one tape: the form of the plan, the number of shards and of tasks,
how the rows of a batch are spread over the leaves, and the schedule.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from unittest import mock

import numpy as np

from millstream.fragments import keeping
from millstream.fragments.cutting import fragments_of
from millstream.fragments.keeping import Keeper, Order
from millstream.fragments.messages import Message, as_record, messages_in
from millstream.fragments.outcome import Outcome as BatchOutcome
from millstream.fragments.pipeline import Pipeline
from millstream.fragments.progress import Advance, BatchStep
from millstream.fragments.reading import RemoteRows
from millstream.fragments.remote_query import RemoteQuery
from millstream.fragments.tasks import LeafInput, leaf_messages
from millstream.logical.plan import Lifetime, Plan, Source
from millstream.logical.text import plan_text
from millstream.model.elements import Element
from millstream.model.errors import QueryError
from millstream.model.records import Records
from millstream.physical.batch import NEVER
from millstream.physical.operator import PhysicalPlan, plain_rows
from oracle.random_streams import Tape
from runtime.schedule_agreement import (
    Expected,
    Feed,
    Inputs,
    Outcome,
    Trial,
    check_changes,
    has_signed,
)
from runtime.schedules import Arrival, Restart, schedule


def carried(messages: Iterable[Message]) -> list[Message]:
    """Messages as they arrive: through rows of Arrow, in another order."""
    there = [copy for message in messages for copy in messages_in(as_record([message]))]
    return there[::-1]


class MemoryFiles:
    """Files that are as good as those of a disk, while this process lives."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def write(self, name: str, parts: Sequence[bytes]) -> None:
        self.publish(name, b"".join(map(bytes, parts)))

    def publish(self, name: str, data: bytes) -> None:
        if name in self.content:
            raise FileExistsError(name)
        self.content[name] = data

    def replace(self, name: str, data: bytes) -> None:
        self.content[name] = data

    def read(self, name: str, offset: int = 0, length: int = -1) -> bytes:
        if name not in self.content:
            raise FileNotFoundError(name)
        stop = None if length < 0 else offset + length
        return self.content[name][offset:stop]

    def names(self, folder: str) -> list[str]:
        return sorted(name for name in self.content if name.startswith(f"{folder}/"))

    def remove(self, name: str) -> None:
        self.content.pop(name, None)


class Tasks:
    """The tasks of a batch, which come and go: each place has a keeper, unless it was lost."""

    def __init__(self, work: RemoteQuery, files: MemoryFiles, tape: Tape) -> None:
        self._work = work
        self._files = files
        self._tape = tape
        self._keepers: dict[int, Keeper] = {}
        self.leaves: list[list[LeafInput]] = []

    def run(
        self, order: Order, inputs: Sequence[LeafInput], frames: Sequence[RemoteRows] = ()
    ) -> Iterable[Message]:
        messages = [m for task in self.leaves for m in carried(leaf_messages(self._work, task))]
        for level in range(1, self._work.last_level + 1):
            at: dict[int, list[Message]] = defaultdict(list)
            for message in messages:
                at[message.place].append(message)
            messages = [m for place in at for m in carried(self._done(order, level, at[place]))]
        return messages

    def _done(self, order: Order, level: int, messages: list[Message]) -> list[Message]:
        """What a task gives; a first try may be in vain, and the keeper lost."""
        place = messages[0].place
        if self._tape.pick(False, False, False, True):
            tried = replace(order, attempt="in-vain")
            list(self._keeper(place).level(tried, level, messages))
        if self._tape.pick(False, False, False, True):
            self._keepers.pop(place, None)
        return list(self._keeper(place).level(order, level, messages))

    def _keeper(self, place: int) -> Keeper:
        if place not in self._keepers:
            self._keepers[place] = Keeper(self._work, self._files)
        return self._keepers[place]

    def close(self) -> None:
        pass


class Cluster:
    """A query whose driver and tasks can be started again at any time."""

    def __init__(self, plan: PhysicalPlan, shards: int, places: int, tape: Tape) -> None:
        self.work = RemoteQuery(fragments_of(plan), shards, places, {}, {}, seed=1)
        self.files = MemoryFiles()
        self._tape = tape
        self.restart(places)

    def restart(self, places: int) -> None:
        """New processes take over the state; there may be more or fewer of them."""
        self.work = replace(pickle.loads(pickle.dumps(self.work)), places=places)
        self._tasks = Tasks(self.work, self.files, self._tape)
        self._pipeline = Pipeline(self.work, self.files, self._tasks)

    def run(self, step: BatchStep, leaves: list[list[LeafInput]]) -> BatchOutcome:
        self._tasks.leaves = leaves
        return self._pipeline.run(step, [], [], lambda _: b"")


def run(plan: Plan, inputs: Inputs, trial: Trial) -> Outcome:
    """The plan in fragments, under the trial's schedule."""
    sources = {node.stream: node for node in plan.walk() if isinstance(node, Source)}
    ordered = trial.ordered_streams(sources)
    in_order = frozenset(n for n in ordered if sources[n].lifetime is Lifetime.INSTANT)
    pick = trial.tape.pick
    chosen = trial.chosen(plan, frozenset(sources) - ordered)
    cluster = Cluster(chosen, pick(1, 2, 3, 5), pick(1, 2, 3), trial.tape)
    running = _Running(cluster, sources, inputs, trial.tape)
    running.outcome.signed = any(map(has_signed, chosen.inputs))
    starts = {name: [element.start for element in inputs[name]] for name in sorted(sources)}
    sizes = {"LEAST": pick(1 << 18, 1000, 0), "MOST_LOGS": pick(64, 1, 3)}
    try:
        with mock.patch.multiple(keeping, **sizes):
            for step in schedule(trial.tape, starts, in_order):
                if isinstance(step, Restart):
                    running.cluster.restart(pick(1, 2, 3))
                else:
                    running.push(step)
    except QueryError:
        running.outcome.refused = True
    return running.outcome


class _Running:
    def __init__(
        self, cluster: Cluster, sources: Mapping[str, Source], inputs: Inputs, tape: Tape
    ) -> None:
        self.cluster = cluster
        self.outcome = Outcome()
        self._sources = sources
        self._feeds = {name: Feed(source, inputs[name]) for name, source in sources.items()}
        self._frontiers = dict.fromkeys(sources, NEVER)
        self._tape = tape

    def push(self, arrival: Arrival) -> None:
        self._frontiers[arrival.stream] = arrival.frontier
        advances = {name: Advance(frontier) for name, frontier in self._frontiers.items()}
        step = BatchStep(advances, self.outcome.beginning)
        given = self.cluster.run(step, self._leaves(arrival))
        self.outcome.beginning = given.present.beginning
        self.outcome.errors |= given.errors
        batch = given.answer(self.cluster.files)
        rows = plain_rows(batch.columns, self.cluster.work.answer_types, np.arange(len(batch)))
        times = (batch.start.tolist(), batch.end.tolist(), batch.weight.tolist())
        self.outcome.given += [Element(*each) for each in zip(rows, *times, strict=True)]
        self.outcome.frontiers += [batch.frontier] * len(rows)

    def _leaves(self, arrival: Arrival) -> list[list[LeafInput]]:
        """The rows of a batch over one task or two; each row knows its number."""
        tasks: list[list[LeafInput]] = [[], []] if self._tape.pick(False, True) else [[]]
        feed = self._feeds[arrival.stream]
        for number, row in enumerate(arrival.rows):
            one = feed.batch(Arrival(arrival.stream, (row,), NEVER), arrival=False)
            records = Records(list(one.columns), one.start, one.end, np.sign(one.weight))
            copies = [LeafInput(arrival.stream, records, row)] * abs(int(one.weight[0]))
            tasks[number % len(tasks)] += copies
        return tasks


def check(expected: Expected, trial: Trial) -> None:
    """Require that the fragments of a trial give the answer of the definition."""
    try:
        outcome = run(expected.plan, expected.inputs, trial)
        assert outcome.refused == (expected.answer is None)
        if expected.answer is not None:
            assert expected.agrees(outcome.answer), (outcome.answer, expected.answer)
            expected.check_errors(outcome)
            if trial.emit == "CHANGES":
                check_changes(outcome)
    except Exception as error:
        raise AssertionError(f"{error!r}\n{trial}\n{plan_text(expected.plan)}") from error
