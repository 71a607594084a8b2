"""Whether a plan that is cut into fragments and shards gives the answer of the definition.

Messages go from task to task as they do in a Spark job, but in this process: so many schedules can
be tried. A trial is drawn from one tape: the form of the plan, the number of shards and of tasks,
how the rows of a batch are spread over the leaves, and the schedule.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from local.schedule_agreement import Expected, Feed, Inputs, Outcome, Trial, has_signed
from local.schedules import Arrival, Restart, schedule
from millstream.errors import QueryError
from millstream.logical.elements import Element
from millstream.logical.plan import Lifetime, Plan, Source
from millstream.logical.text import plan_text
from millstream.physical.batch import NEVER
from millstream.physical.operator import PhysicalPlan, plain_rows
from millstream.records import Records
from millstream.spark.fragments import Fragment, fragments_of
from millstream.spark.job import Outcome as BatchOutcome
from millstream.spark.shard import Shard
from millstream.spark.tasks import (
    Advance,
    LeafInput,
    Message,
    Step,
    Work,
    as_record,
    leaf_messages,
    level_messages,
    messages_in,
)
from oracle.random_streams import Tape


def carried(messages: Iterable[Message]) -> list[Message]:
    """Messages as they arrive: through rows of Arrow, in another order."""
    there = [copy for message in messages for copy in messages_in(as_record([message]))]
    return there[::-1]


class Cluster:
    """The shards of a query, and batches that go through them."""

    def __init__(self, plan: PhysicalPlan, shards: int, places: int) -> None:
        self.work = Work(fragments_of(plan), shards, places, {}, {}, seed=1)
        self.work = pickle.loads(pickle.dumps(self.work))
        self.shards: dict[tuple[int, int], Shard] = {}

    def shard_of(self, fragment: Fragment, shard: int) -> Shard:
        key = fragment.number, shard
        if key not in self.shards:
            self.shards[key] = Shard(fragment, self.work.context())
        return self.shards[key]

    def run(self, step: Step, leaves: Sequence[Sequence[LeafInput]]) -> BatchOutcome:
        messages = [m for inputs in leaves for m in carried(leaf_messages(self.work, inputs))]
        for level in range(1, self.work.last_level + 1):
            at: dict[int, list[Message]] = defaultdict(list)
            for message in messages:
                at[message.place].append(message)
            messages = [
                answer
                for there in at.values()
                for answer in carried(level_messages(self.work, level, step, there, self.shard_of))
            ]
        return BatchOutcome(self.work, step, messages)

    def restart(self, places: int) -> None:
        """New processes take over the state; there may be more or fewer of them."""
        states = {key: pickle.loads(pickle.dumps(s.save())) for key, s in self.shards.items()}
        self.shards.clear()
        fragments = {fragment.number: fragment for fragment in self.work.fragments}
        self.work = Work(self.work.fragments, self.work.shards, places, {}, {}, seed=1)
        for (number, shard), state in states.items():
            self.shard_of(fragments[number], shard).restore(state)


def run(plan: Plan, inputs: Inputs, trial: Trial) -> Outcome:
    """The plan in fragments, under the trial's schedule."""
    sources = {node.stream: node for node in plan.walk() if isinstance(node, Source)}
    ordered = trial.ordered_streams(sources)
    in_order = frozenset(n for n in ordered if sources[n].lifetime is Lifetime.INSTANT)
    pick = trial.tape.pick
    chosen = trial.chosen(plan, ordered)
    running = _Running(
        Cluster(chosen, pick(1, 2, 3, 5), pick(1, 2, 3)), sources, inputs, trial.tape
    )
    running.outcome.signed = any(map(has_signed, chosen.inputs))
    starts = {name: [element.start for element in inputs[name]] for name in sorted(sources)}
    try:
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
        step = Step(advances, self.outcome.beginning)
        given = self.cluster.run(step, self._leaves(arrival))
        self.outcome.beginning = given.present.beginning
        self.outcome.errors |= given.errors
        batch = given.answer
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
            records = Records(list(one.columns), one.start, one.end)
            tasks[number % len(tasks)].append(LeafInput(arrival.stream, records, row))
        return tasks


def check(expected: Expected, trial: Trial) -> None:
    """Require that the fragments of a trial give the answer of the definition."""
    try:
        outcome = run(expected.plan, expected.inputs, trial)
        assert outcome.refused == (expected.answer is None)
        if expected.answer is not None:
            assert expected.agrees(outcome.answer), (outcome.answer, expected.answer)
            expected.check_errors(outcome)
    except Exception as error:
        raise AssertionError(f"{error!r}\n{trial}\n{plan_text(expected.plan)}") from error
