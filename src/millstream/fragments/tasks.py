"""The tasks of a batch: the leaves, then the fragments level by level.

Messages are exchanged between levels. A message for a later level is passed on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from millstream.checkpoint.manifest import ShardState
from millstream.checkpoint.records import Ref
from millstream.fragments.edges import ANSWER, LEAVES, Fragment, OutputsOperator, received
from millstream.fragments.messages import Kind, Message
from millstream.fragments.progress import BatchStep, SourceProgress, Span, joined_spans, wider
from millstream.fragments.remote_query import RemoteQuery
from millstream.fragments.shard import Error, Shard, ShardStep, leaf_frontiers, worked
from millstream.model.codec import packed, unpacked
from millstream.model.errors import MillstreamError
from millstream.model.metrics import Tally
from millstream.model.records import Records
from millstream.physical.batch import NEVER, Batch, merged
from millstream.physical.operators.source import sources_of
from millstream.runtime.bounded import source_batch

# --- the leaves -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class LeafInput:
    """Rows of a stream, and the number of the first of them."""

    stream: str
    records: Records
    first: int


def leaf_messages(work: RemoteQuery, inputs: Iterable[LeafInput]) -> Iterator[Message]:
    """The messages for some rows of the sources."""
    spans: dict[str, Span] = {}
    sources = sources_of(work.leaves.plan)
    for input in inputs:
        begins = all(source.begins for source in sources if source.stream == input.stream)
        spans[input.stream] = wider(spans.get(input.stream), input.records, begins)
        yield from _leaf(work, input)
    yield from work.told_everywhere(Kind.SOURCES, spans)


def _leaf(work: RemoteQuery, input: LeafInput) -> Iterator[Message]:
    context = work.context(input.first)
    context.beginning = NEVER  # report errors of all rows: none precedes the first
    graph = work.leaves.graph(context)
    for vertex in graph.sources.get(input.stream, []):
        graph.push(vertex, source_batch(vertex.node, input.records, input.first, NEVER))
    root = graph.root.operator
    assert isinstance(root, OutputsOperator)
    given = root.taken()
    for exchange in work.leaves.exchanges:
        if given[exchange.port]:
            yield from work.sent(exchange, merged(given[exchange.port]))
    yield work.told_driver(Kind.TALLIES, LEAVES, 0, [tally.told() for tally in worked(graph)])
    if context.errors:
        yield work.told_driver(Kind.ERRORS, LEAVES, 0, list(context.errors))


# --- a level --------------------------------------------------------------------------------------


class TaskInput:
    """The messages that a task of one level has received."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._elements: dict[tuple[int, int], list[bytes]] = defaultdict(list)
        self.spans: list[Mapping[str, Span]] = []
        self.frontiers: dict[int, int] = {}
        self.onward: list[Message] = []
        self.failed = False

    def take(self, message: Message) -> None:
        if message.level != self._level:
            self.onward.append(replace(message, payload=bytes(message.payload)))
        elif message.kind is Kind.ELEMENTS:
            self._elements[message.number, message.shard].append(message.payload)
        elif message.kind is Kind.SOURCES:
            self.spans.append(unpacked(message.payload))
        elif message.kind is Kind.FRONTIER:
            reached = unpacked(message.payload)
            known = self.frontiers.get(message.number, reached)
            self.frontiers[message.number] = min(reached, known)
        elif message.kind is Kind.FAILURE:
            self.failed = True

    def step(self, fragment: Fragment, shard: int, present: SourceProgress) -> ShardStep:
        """The input of a shard."""
        exchanges = [node.exchange for node in received(fragment)]
        return ShardStep(
            {e: self._elements[e, shard] for e in exchanges if (e, shard) in self._elements},
            {e: self.frontiers[e] for e in exchanges},
            present,
        )


@dataclass(frozen=True)
class Stepped:
    """The output of a shard, the rows that failed, the metrics of its operators, and where its
    state is stored, if it is kept."""

    given: list[Batch]
    errors: list[Error]
    tallies: list[Tally]
    state: ShardState | None = None


class Runner(Protocol):
    """Holds the shards of one place."""

    def step(self, fragment: Fragment, shard: int, step: ShardStep) -> Stepped: ...

    def staged(self, payload: bytes) -> Ref | None:
        """Store a part of the answer until it is published; None: it goes to the driver."""


@dataclass(frozen=True)
class Transient:
    """Shards for a single batch."""

    work: RemoteQuery

    def step(self, fragment: Fragment, shard: int, step: ShardStep) -> Stepped:
        running = Shard(fragment, self.work.context())
        return Stepped(running.step(step), running.errors(), running.tallies())

    def staged(self, payload: bytes) -> None:
        return None


def level_messages(
    work: RemoteQuery, level: int, step: BatchStep, messages: Iterable[Message], runner: Runner
) -> Iterator[Message]:
    """The output of a level's fragments, for the shards at the place that received the messages."""
    inbox = TaskInput(level)
    place = None
    for message in messages:
        place = message.place
        inbox.take(message)
    yield from inbox.onward
    if inbox.failed:
        return
    present = step.present(joined_spans(inbox.spans))
    inbox.frontiers |= leaf_frontiers(work, present.sources)
    for fragment in work.at(level):
        for shard in range(fragment.shards(work.shards)):
            if work.place(fragment, shard) == place:
                try:
                    taken = inbox.step(fragment, shard, present)
                    stepped = runner.step(fragment, shard, taken)
                except MillstreamError as error:  # a retry would not help
                    yield from work.told_failure(error, level)
                    return
                for told in _told(work, fragment, shard, stepped):
                    yield _staged(told, runner)


def _told(work: RemoteQuery, fragment: Fragment, shard: int, stepped: Stepped) -> Iterator[Message]:
    for exchange, batch in zip(fragment.exchanges, stepped.given, strict=True):
        yield from work.sent(exchange, batch)
        yield from work.told_consumers(exchange, shard, batch.frontier)
    yield work.told_driver(
        Kind.TALLIES, fragment.number, shard, [t.told() for t in stepped.tallies]
    )
    if stepped.errors:
        yield work.told_driver(Kind.ERRORS, fragment.number, shard, stepped.errors)
    if stepped.state is not None:
        yield work.told_driver(Kind.STATE, fragment.number, shard, stepped.state.told())


def _staged(message: Message, runner: Runner) -> Message:
    """Replaces an answer by its reference, if it is stored."""
    if message.kind is Kind.ELEMENTS and message.number == ANSWER:
        ref = runner.staged(message.payload)
        if ref is not None:
            return replace(message, kind=Kind.STAGED, payload=packed(ref.told()))
    return message
