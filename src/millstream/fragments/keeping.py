"""Shards that stay in memory between batches, and their state in the checkpoint.

After each batch a shard's state is the previous state plus its input, so the input is written as a
*log* record. When the logs since the last snapshot are as long as the snapshot, the next record is
a snapshot of the whole state instead. So the cost of writing is proportional to the batches, not to
the window, and recovery reads at most twice the state. Tasks may be retried, also elsewhere: if the
shard in memory is not at the record that the manifest names, it is rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.checkpoint.files import Files
from millstream.checkpoint.identity import restoring
from millstream.checkpoint.manifest import ShardState
from millstream.checkpoint.records import Ref, Writer
from millstream.fragments.edges import Fragment
from millstream.fragments.messages import Message
from millstream.fragments.progress import BatchStep
from millstream.fragments.remote_query import RemoteQuery
from millstream.fragments.shard import Shard, ShardStep
from millstream.fragments.tasks import Stepped, level_messages
from millstream.model.codec import packed
from millstream.model.errors import MillstreamError

FOLDER = "state"
LEAST = 1 << 18  # bytes of logs below which there is no snapshot
MOST_LOGS = 64  # more are merged


@dataclass(frozen=True)
class Order:
    """The driver's order for a batch: its number, and the state of each shard before it. `attempt`
    makes its file names unique."""

    batch: int
    step: BatchStep
    states: Mapping[tuple[int, int], ShardState]
    attempt: str

    def told(self) -> list[Any]:
        """As plain values."""
        states = [[*key, *state.told()] for key, state in self.states.items()]
        return [self.batch, self.step.told(), states, self.attempt]

    @staticmethod
    def of(told: Sequence[Any]) -> Order:
        batch, step, states, attempt = told
        known = {(fragment, shard): ShardState.of(state) for fragment, shard, *state in states}
        return Order(batch, BatchStep.of(step), known, attempt)


class Keeper:
    """The shards of a query in this process."""

    def __init__(self, work: RemoteQuery, files: Files) -> None:
        self._work = work
        self._files = files
        self._shards: dict[tuple[int, int], tuple[Ref | None, Shard]] = {}

    def level(self, order: Order, level: int, messages: Sequence[Message]) -> Iterator[Message]:
        """The output of a level for the messages sent to its place."""
        place = messages[0].place
        name = f"{FOLDER}/{order.batch:010d}-{level}-{place}-{order.attempt}"
        writer = Writer(self._files, name)
        runner = _Runner(self, order, writer)
        yield from level_messages(self._work, level, order.step, messages, runner)
        try:
            writer.close()
        except MillstreamError as error:  # a retry would not help
            yield from self._work.told_failure(error, level)
            return
        self._shards |= runner.stepped

    def at(self, fragment: Fragment, shard: int, state: ShardState) -> Shard:
        """The shard in this state; it is removed from memory, since the caller changes it."""
        version, kept = self._shards.pop((fragment.number, shard), (None, None))
        if kept is not None and version == state.version:
            return kept
        return made_anew(self._work, self._files, fragment, state)


def made_anew(work: RemoteQuery, files: Files, fragment: Fragment, state: ShardState) -> Shard:
    """A shard restored from the checkpoint."""
    shard = Shard(fragment, work.context())
    if state.snapshot is not None:
        saved = state.snapshot.read_record(files)
        with restoring(files, "a state"):
            shard.restore(saved)
    for step in _steps(files, state.logs):
        shard.step(step)
        shard.errors()
    return shard


@dataclass(frozen=True)
class DryRun:
    """Runs shards through a trial batch: they are restored, and nothing is kept."""

    work: RemoteQuery
    files: Files
    states: Mapping[tuple[int, int], ShardState]

    def step(self, fragment: Fragment, shard: int, step: ShardStep) -> Stepped:
        state = self.states.get((fragment.number, shard), ShardState())
        return Stepped(made_anew(self.work, self.files, fragment, state).step(step), [], [])

    def staged(self, payload: bytes) -> None:
        return None


class _Runner:
    """The shards of one place, for one batch."""

    def __init__(self, keeper: Keeper, order: Order, writer: Writer) -> None:
        self.stepped: dict[tuple[int, int], tuple[Ref | None, Shard]] = {}
        self._keeper = keeper
        self._order = order
        self._writer = writer

    def step(self, fragment: Fragment, shard: int, step: ShardStep) -> Stepped:
        key = fragment.number, shard
        before = self._order.states.get(key, ShardState())
        running = self._keeper.at(fragment, shard, before)
        given = running.step(step)
        state = self._written(before, running, step)
        self.stepped[key] = state.version, running
        return Stepped(given, running.errors(), running.tallies(), state)

    def _written(self, before: ShardState, shard: Shard, step: ShardStep) -> ShardState:
        size = 0 if before.snapshot is None else before.snapshot.length
        if before.logged + step.size > max(size, LEAST):
            return ShardState(self._writer.add(packed(shard.save())))
        logs, steps = before.logs, [step]
        if len(logs) == MOST_LOGS:
            logs, steps = (), [*_steps(self._keeper._files, before.logs), step]
        log = self._writer.add(packed([step.told() for step in steps]))
        return ShardState(before.snapshot, (*logs, log))

    def staged(self, payload: bytes) -> Ref:
        return self._writer.add(bytes(payload))


def _steps(files: Files, logs: Iterable[Ref]) -> Iterator[ShardStep]:
    for log in logs:
        told = log.read_record(files)
        with restoring(files, "a log"):
            steps = [ShardStep.of(each) for each in told]
        yield from steps
