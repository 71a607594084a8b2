"""A plan whose operators run remotely: the input of a round is sent as one batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from millstream.checkpoint.files import LocalFiles
from millstream.checkpoint.identity import restoring
from millstream.connectors.intake.rows import joined
from millstream.fragments.outcome import Outcome
from millstream.fragments.pipeline import Pipeline
from millstream.fragments.progress import Advance, BatchStep
from millstream.fragments.remote_input import RemoteInput
from millstream.fragments.tasks import LeafInput
from millstream.model.arrays import int64
from millstream.model.metrics import Tally, together
from millstream.model.records import Records
from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch, State
from millstream.physical.operator import Context, PhysicalPlan
from millstream.physical.operators.source import Source
from millstream.runtime.graph import Receive
from millstream.runtime.position import Position
from millstream.runtime.running import has_state


class RemoteExecutor:
    """The operators run remotely; a round returns its answers."""

    def __init__(
        self,
        plan: PhysicalPlan,
        context: Context,
        receive: Receive,
        pipeline: Pipeline,
        files: LocalFiles,
        close: Callable[[], None],
    ) -> None:
        self.folder = files.root
        self.checkpoint = files if files.durable else None
        self.context = context
        self.frontier = NEVER
        self.sources = {name: [source] for name, source in _sources(plan).items()}
        self._receive = receive
        self._pipeline = pipeline
        self._files = files
        self._close = close
        self._position: Position | None = None
        self._pushed: dict[str, list[tuple[int, Records]]] = {name: [] for name in self.sources}
        self._frontiers = dict.fromkeys(self.sources, NEVER)
        self._moved = False
        self._has_late = has_state(plan)
        self._tallies: dict[tuple[int, int], list[Tally]] = {}

    def push(self, source: Source, batch: Batch) -> None:
        """Keep a batch of a source until the end of the round."""
        self._frontiers[source.stream] = max(self._frontiers[source.stream], batch.frontier)
        self._moved = True
        if len(batch):
            columns = list(batch.columns)
            first, number = 0, None
            if source.arrival:
                numbers = int64(columns.pop())
                first, number = int(numbers[0]), numbers if source.is_table else None
            records = Records(columns, batch.start, batch.end, batch.weight, number)
            self._pushed[source.stream].append((first, records))

    def end_round(self) -> None:
        frames = [f for input in self._remote if (f := input.frame(self._has_late)) is not None]
        if not self._moved and not frames:
            return
        self._moved = False
        advances = {s: Advance(f) for s, f in self._frontiers.items()}
        for frame in frames:
            stream = frame.reading.stream
            delay = stream.delay if stream.time else -1  # past the arrival time
            advances[stream.name] = Advance(self._frontiers[stream.name], delay)
        step = BatchStep(advances, self.context.beginning)
        outcome = self._pipeline.run(step, self._inputs(), frames, self._learned)
        for row, message in outcome.errors:
            self.context.report(row, message)
        self._answer(outcome.answer(self._files))

    @property
    def _remote(self) -> list[RemoteInput]:
        """The inputs whose rows are not in this process."""
        assert self._position is not None
        return [input for input in self._position.inputs if isinstance(input, RemoteInput)]

    def _learned(self, outcome: Outcome) -> State:
        """What a batch reports about the inputs, to be kept for a restart."""
        self._frontiers |= outcome.present.sources
        for input in self._remote:
            name = input.stream.name
            intakes = [intake for intake in outcome.intakes if intake.stream == name]
            input.learn(self._frontiers[name], intakes)
        self._know(outcome.present.beginning)
        self._add_tallies(outcome)
        assert self._position is not None
        return {"position": self._position.save(), "frontiers": self._frontiers}

    def _know(self, beginning: int) -> None:
        self.context.begin(beginning)
        self.context.sources[:] = self._frontiers.values()

    def _inputs(self) -> list[LeafInput]:
        """The pushed rows, each stream in one piece, even if it is empty."""
        inputs = []
        for stream, pieces in self._pushed.items():
            node = self.sources[stream][0]
            types = [field.type for field in node.schema[: len(node.schema) - node.arrival]]
            nothing = Batch.empty(types, NEVER)
            empty = Records(list(nothing.columns), nothing.start, nothing.end, nothing.weight)
            first = pieces[0][0] if pieces else 0
            inputs.append(LeafInput(stream, joined([empty, *(r for _, r in pieces)]), first))
            self._pushed[stream] = []
        return inputs

    def _answer(self, answer: Batch) -> None:
        self.frontier = max(self.frontier, answer.frontier)
        self._receive(answer)

    def follow(self, position: Position) -> None:
        self._position = position
        manifest = self._pipeline.manifest
        if manifest.driver is not None:
            told = manifest.driver.read_record(self._files)
            after = self._pipeline.published()
            with restoring(self._files, "the position"):
                position.restore(told["position"] if after is None else after)
                self._frontiers |= told["frontiers"]
            self._know(manifest.beginning)

    def resume(self) -> bool:
        self.frontier = self._pipeline.manifest.frontier
        if self._pipeline.manifest.driver is None or self._pipeline.published() is not None:
            return False
        self._answer(self._pipeline.answers())
        return True

    def delivered(self) -> None:
        assert self._position is not None
        self._pipeline.note_published(self._position.save())
        for input in self._position.inputs:
            input.let_go()

    def tallies(self) -> list[Tally]:
        """By fragment, the last one first; shards are combined."""
        by_fragment: dict[int, list[list[Tally]]] = defaultdict(list)
        for (fragment, _), tallies in self._tallies.items():
            by_fragment[fragment].append(tallies)
        return [
            together(shards)
            for fragment in sorted(by_fragment, reverse=True)
            for shards in zip(*by_fragment[fragment], strict=True)
        ]

    def _add_tallies(self, outcome: Outcome) -> None:
        for key, tasks in outcome.tallies.items():
            done = [together(operators) for operators in zip(*tasks, strict=True)]
            before = self._tallies.get(key)
            if before is not None:
                done = [new.after(old) for new, old in zip(done, before, strict=True)]
            self._tallies[key] = done

    def foreseen(self) -> Batch:
        step = BatchStep(dict.fromkeys(self._frontiers, Advance(INFINITY)), self.context.beginning)
        return self._pipeline.foreseen(step)

    def close(self) -> None:
        self._pipeline.close()
        self._close()


def _sources(plan: PhysicalPlan) -> Mapping[str, Source]:
    """The streams of a plan; a stream is ordered if one of its sources requires it."""
    found: dict[str, Source] = {}
    ahead = [plan]
    while ahead:
        node = ahead.pop()
        ahead += node.inputs
        if isinstance(node, Source) and not (node.stream in found and found[node.stream].arrival):
            found[node.stream] = node
    return found
