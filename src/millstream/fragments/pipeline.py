"""The batches of a query: each is run, then committed by its manifest."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Protocol

from millstream.checkpoint.files import CheckpointError, Files
from millstream.checkpoint.manifest import Manifest, collect_garbage, last_manifest
from millstream.checkpoint.records import Writer, read_record, sealed_record
from millstream.fragments.keeping import FOLDER, DryRun, Keeper, Order
from millstream.fragments.messages import Message
from millstream.fragments.outcome import Outcome
from millstream.fragments.payload import gathered
from millstream.fragments.progress import BatchStep
from millstream.fragments.reading import RemoteRows, read_messages
from millstream.fragments.remote_query import RemoteQuery
from millstream.fragments.tasks import LeafInput, leaf_messages, level_messages
from millstream.model.codec import packed
from millstream.physical.batch import Batch, State

_PUBLISHED = "published"


class TaskRunner(Protocol):
    """Runs the tasks of a batch."""

    def run(
        self, order: Order, inputs: Sequence[LeafInput], frames: Sequence[RemoteRows] = ()
    ) -> Iterable[Message]:
        """All messages to the driver."""

    def close(self) -> None: ...


@dataclass
class InProcess:
    """Runs all tasks in this process, one after the other; a frame is Arrow record batches."""

    work: RemoteQuery
    files: Files

    def __post_init__(self) -> None:
        self._keeper = Keeper(self.work, self.files)

    def run(
        self, order: Order, inputs: Sequence[LeafInput], frames: Sequence[RemoteRows] = ()
    ) -> Iterable[Message]:
        messages: Iterable[Message] = leaf_messages(self.work, inputs)
        for number, frame in enumerate(frames):
            read = read_messages(self.work, frame.reading, frame.rows, number << 32)
            messages = chain(messages, read)
        return _in_levels(self.work, messages, partial(self._keeper.level, order))

    def close(self) -> None:
        pass


class Pipeline:
    """The batches of a query, continuing from its checkpoint."""

    def __init__(self, work: RemoteQuery, files: Files, runner: TaskRunner) -> None:
        self.manifest = last_manifest(files) or Manifest(-1)
        _check_published(files, self.manifest)
        self._before = self.manifest
        self._work = work
        self._files = files
        self._runner = runner
        self._token = secrets.token_hex(4)

    def run(
        self,
        step: BatchStep,
        inputs: Sequence[LeafInput],
        frames: Sequence[RemoteRows],
        learn: Callable[[Outcome], State],
    ) -> Outcome:
        """Run and commit the next batch. `learn` returns the driver's state for the checkpoint."""
        batch = self.manifest.batch + 1
        order = Order(batch, step, self.manifest.shards, self._token)
        outcome = Outcome(self._work, step, self._runner.run(order, inputs, frames))
        writer = Writer(self._files, f"{FOLDER}/{batch:010d}-driver-{self._token}")
        kept = writer.add(packed(learn(outcome)))
        answers = [*outcome.staged, *(writer.add(payload) for payload in outcome.inline)]
        writer.close()
        shards = {**self.manifest.shards, **outcome.states}
        beginning, frontier = outcome.present.beginning, outcome.frontier
        self._commit(Manifest(batch, beginning, frontier, shards, kept, tuple(answers)))
        return outcome

    def foreseen(self, step: BatchStep) -> Batch:
        """The output of a batch without rows that only advances the sources."""
        runner = DryRun(self._work, self._files, self.manifest.shards)

        def run(level: int, messages: Sequence[Message]) -> Iterator[Message]:
            return level_messages(self._work, level, step, messages, runner)

        messages = _in_levels(self._work, leaf_messages(self._work, []), run)
        return Outcome(self._work, step, messages).answer()

    def answers(self) -> Batch:
        """The answers of the last batch."""
        payloads = [ref.read(self._files) for ref in self.manifest.answers]
        return gathered(self._work.answer_types, payloads, self.manifest.frontier)

    def note_published(self, told: State) -> None:
        """Record that the answers of the last batch were delivered."""
        self._files.replace(_PUBLISHED, sealed_record([self.manifest.batch, told]))

    def published(self) -> State | None:
        """The note made when the answers of the last batch were published, if they were."""
        batch, told = _published(self._files)
        return told if batch == self.manifest.batch else None

    def _commit(self, manifest: Manifest) -> None:
        manifest.write(self._files)
        self._before, self.manifest = self.manifest, manifest
        kept = [m for m in (self._before, self.manifest) if m.batch >= 0]
        collect_garbage(self._files, kept, (FOLDER,))

    def close(self) -> None:
        self._runner.close()


def _in_levels(
    work: RemoteQuery,
    messages: Iterable[Message],
    run: Callable[[int, Sequence[Message]], Iterator[Message]],
) -> Iterable[Message]:
    """Pass messages through all levels, calling `run` at each place."""
    for level in range(1, work.last_level + 1):
        at: dict[int, list[Message]] = defaultdict(list)
        for message in messages:
            at[message.place].append(message)
        messages = [message for there in at.values() for message in run(level, there)]
    return messages


def _published(files: Files) -> tuple[int, Any]:
    """The batch whose answers were published last, and its note."""
    try:
        data = files.read(_PUBLISHED)
    except FileNotFoundError:
        return -1, None
    batch, told = read_record(_PUBLISHED, data)
    return batch, told


def _check_published(files: Files, manifest: Manifest) -> None:
    batch, _ = _published(files)
    if batch > manifest.batch:
        raise CheckpointError(
            f"the manifest of batch {batch}, whose answers were published, is missing",
            help="restore the checkpoint's folder, or start the query with a new one",
        )
