"""What Spark's tasks do: the leaves, and the fragments of one level.

A batch is one job: the leaves, then level after level, with a shuffle before each. What is shuffled
are few and large rows: the elements for one shard as bytes, and messages that say how far the
sources and shards have come. A row that is meant for a later level is handed on.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Protocol

import pyarrow as pa

from millstream.checkpoint.manifest import ShardState
from millstream.checkpoint.records import Ref
from millstream.local.bounded import source_batch
from millstream.local.graph import Graph
from millstream.logical.evaluate import UserAggregate, UserFunction
from millstream.logical.time import INFINITY
from millstream.physical.batch import NEVER, Batch, merged
from millstream.physical.evaluation import Evaluation
from millstream.physical.expressions import Draws
from millstream.physical.operator import Context
from millstream.records import Records
from millstream.spark.fragments import ANSWER, LEAVES, Exchange, Fragment, OutputsOperator, received
from millstream.spark.payload import encoded, split
from millstream.spark.placement import shards_of
from millstream.spark.shard import Error, Present, Shard, ShardStep, leaf_frontiers

SCHEMA = "place int, level int, kind int, number int, shard int, payload binary"
_ARROW = pa.schema(
    [("place", pa.int32()), ("level", pa.int32()), ("kind", pa.int32()), ("number", pa.int32()),
     ("shard", pa.int32()), ("payload", pa.binary())]
)  # fmt: skip
Span = tuple[int, int, int]  # how many rows, their first and last start
DRIVER = 0  # the place of what the driver gets; any would do


class Kind(IntEnum):
    """What a message says; `number` and `shard` tell of which exchange and shard."""

    ELEMENTS = 0
    SOURCES = 1  # the span of what the leaves have read, by stream
    FRONTIER = 2  # how far a shard has come with an exchange
    ERRORS = 3
    STATE = 4  # where the state of a shard lies
    STAGED = 5  # where a part of the answer lies


@dataclass(frozen=True)
class Message:
    place: int
    level: int
    kind: Kind
    number: int
    shard: int
    payload: bytes


@dataclass(frozen=True)
class Work:
    """A query as its tasks know it."""

    fragments: tuple[Fragment, ...]
    shards: int
    places: int  # how many tasks share them
    functions: Mapping[str, UserFunction]
    aggregates: Mapping[str, UserAggregate]
    seed: int

    @property
    def leaves(self) -> Fragment:
        return self.fragments[LEAVES]

    @property
    def last_level(self) -> int:
        return max(fragment.level for fragment in self.fragments)

    @property
    def answer_types(self) -> tuple[pa.DataType, ...]:
        """Of the columns that the exchange to the driver brings."""
        answer = next(e for f in self.fragments for e in f.exchanges if e.consumer is None)
        return tuple(column.type for column in answer.schema)

    def context(self, number: int = 0) -> Context:
        return Context(self.functions, self.aggregates, draws=Draws((self.seed + number) % 2**64))

    def at(self, level: int) -> list[Fragment]:
        return [fragment for fragment in self.fragments if fragment.level == level]

    def place(self, fragment: Fragment, shard: int) -> int:
        """Fragments with one shard are spread, too."""
        return (shard + fragment.number) % self.places

    def sent(self, exchange: Exchange, batch: Batch) -> Iterator[Message]:
        """The elements of a batch, to the shards that they belong to."""
        if exchange.consumer is None:
            if len(batch):
                level = self.last_level + 1
                yield Message(DRIVER, level, Kind.ELEMENTS, exchange.number, 0, encoded(batch))
            return
        consumer = self.fragments[exchange.consumer]
        keys = Evaluation(exchange.keys, exchange.schema, Context(self.functions))
        values, _ = keys.over(batch.columns, len(batch))
        shards = shards_of(list(values), len(batch), consumer.shards(self.shards))
        for shard, rows in split(batch, shards):
            yield Message(
                self.place(consumer, shard),
                consumer.level,
                Kind.ELEMENTS,
                exchange.number,
                shard,
                encoded(rows),
            )

    def told_driver(self, kind: Kind, number: int, shard: int, told: object) -> Message:
        level = self.last_level + 1
        return Message(DRIVER, level, kind, number, shard, pickle.dumps(told))

    def told_consumers(self, exchange: Exchange, shard: int, frontier: int) -> Iterator[Message]:
        """How far a shard has come with an exchange."""
        if exchange.consumer is None:
            yield self.told_driver(Kind.FRONTIER, exchange.number, shard, frontier)
            return
        level, payload = self.fragments[exchange.consumer].level, pickle.dumps(frontier)
        for place in range(self.places):
            yield Message(place, level, Kind.FRONTIER, exchange.number, shard, payload)

    def told_everywhere(self, spans: Mapping[str, Span]) -> Iterator[Message]:
        """What was read of the sources; whoever moves time must know."""
        payload = pickle.dumps(dict(spans))
        yield self.told_driver(Kind.SOURCES, 0, 0, dict(spans))
        for level in range(1, self.last_level + 1):
            for place in range(self.places):
                yield Message(place, level, Kind.SOURCES, 0, 0, payload)


# --- messages as rows -----------------------------------------------------------------------------


def as_record(messages: Sequence[Message]) -> pa.RecordBatch:
    columns = [
        pa.array([getattr(message, field.name) for message in messages], field.type)
        for field in _ARROW
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def messages_in(record: pa.RecordBatch) -> Iterator[Message]:
    numbers = [record.column(index).to_pylist() for index in range(5)]
    for index, (place, level, kind, number, shard) in enumerate(zip(*numbers, strict=True)):
        payload = record.column(5)[index].as_buffer()
        yield Message(place, level, Kind(kind), number, shard, payload)


Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


# --- the leaves -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class LeafInput:
    """Rows of a stream, and the number of the first of them."""

    stream: str
    records: Records
    first: int


def leaf_messages(work: Work, inputs: Iterable[LeafInput]) -> Iterator[Message]:
    """What follows from some rows of the sources, and where it goes."""
    spans: dict[str, Span] = {}
    for input in inputs:
        spans[input.stream] = _wider(spans.get(input.stream), input.records)
        yield from _leaf(work, input)
    yield from work.told_everywhere(spans)


def _leaf(work: Work, input: LeafInput) -> Iterator[Message]:
    context = work.context(input.first)
    context.beginning = NEVER  # errors are told of all rows: none is from before the first
    graph = Graph(work.leaves.plan, context, lambda batch: None)
    for vertex in graph.sources.get(input.stream, []):
        graph.push(vertex, source_batch(vertex.node, input.records, input.first, NEVER))
    root = graph.root.operator
    assert isinstance(root, OutputsOperator)
    given = root.taken()
    for exchange in work.leaves.exchanges:
        if given[exchange.port]:
            yield from work.sent(exchange, merged(given[exchange.port]))
    if context.errors:
        yield work.told_driver(Kind.ERRORS, 0, 0, list(context.errors))


def _wider(span: Span | None, records: Records) -> Span:
    if not len(records):
        return span or (0, INFINITY, NEVER)
    rows, first, last = span or (0, INFINITY, NEVER)
    starts = records.start
    return rows + len(records), min(first, int(starts.min())), max(last, int(starts.max()))


def joined_spans(spans: Iterable[Mapping[str, Span]]) -> dict[str, Span]:
    joined: dict[str, Span] = {}
    for each in spans:
        for stream, (rows, first, last) in each.items():
            known = joined.get(stream, (0, INFINITY, NEVER))
            joined[stream] = known[0] + rows, min(known[1], first), max(known[2], last)
    return joined


# --- a level --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Advance:
    """How far a batch brings a source: as far as its rows say, less the delay; exactly to `least`
    where there is no delay, because the driver has decided that."""

    least: int
    delay: int | None = None

    def frontier(self, span: Span | None) -> int:
        if span is None or self.delay is None or not span[0]:
            return self.least
        return max(self.least, span[2] - self.delay)


@dataclass(frozen=True)
class Step:
    """What the driver knows before a batch: of each source, and when time began."""

    advances: Mapping[str, Advance]
    beginning: int

    def present(self, spans: Mapping[str, Span]) -> Present:
        """What is known after it."""
        beginning = min([self.beginning, *(first for _, first, _ in spans.values())])
        sources = {s: advance.frontier(spans.get(s)) for s, advance in self.advances.items()}
        return Present(beginning, sources)


class Inbox:
    """What a task of one level has received."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._elements: dict[tuple[int, int], list[bytes]] = defaultdict(list)
        self.spans: list[Mapping[str, Span]] = []
        self.frontiers: dict[int, int] = {}
        self.onward: list[Message] = []

    def take(self, message: Message) -> None:
        if message.level != self._level:
            self.onward.append(replace(message, payload=bytes(message.payload)))
        elif message.kind is Kind.ELEMENTS:
            self._elements[message.number, message.shard].append(message.payload)
        elif message.kind is Kind.SOURCES:
            self.spans.append(pickle.loads(message.payload))
        elif message.kind is Kind.FRONTIER:
            reached = pickle.loads(message.payload)
            known = self.frontiers.get(message.number, reached)
            self.frontiers[message.number] = min(reached, known)

    def step(self, work: Work, fragment: Fragment, shard: int, present: Present) -> ShardStep:
        """What has come for a shard."""
        frontiers = {**leaf_frontiers(work.leaves, present.sources), **self.frontiers}
        exchanges = [node.exchange for node in received(fragment)]
        return ShardStep(
            {e: self._elements[e, shard] for e in exchanges if (e, shard) in self._elements},
            {e: frontiers[e] for e in exchanges},
            present,
        )


@dataclass(frozen=True)
class Stepped:
    """What a shard gave, the rows it could not evaluate, and where its state lies now, if that is
    kept."""

    given: list[Batch]
    errors: list[Error]
    state: ShardState | None = None


class Runner(Protocol):
    """Who has the shards that are at one place."""

    def step(self, fragment: Fragment, shard: int, step: ShardStep) -> Stepped: ...

    def staged(self, payload: bytes) -> Ref | None:
        """Where a part of the answer lies until it is published; None: it goes to the driver."""


@dataclass(frozen=True)
class Transient:
    """Shards for one batch, which is all there is."""

    work: Work

    def step(self, fragment: Fragment, shard: int, step: ShardStep) -> Stepped:
        running = Shard(fragment, self.work.context())
        return Stepped(running.step(step), running.errors())

    def staged(self, payload: bytes) -> None:
        return None


def level_messages(
    work: Work, level: int, step: Step, messages: Iterable[Message], runner: Runner
) -> Iterator[Message]:
    """The fragments of a level: what follows for those of their shards that are at the place that
    the messages came to."""
    inbox = Inbox(level)
    place = None
    for message in messages:
        place = message.place
        inbox.take(message)
    yield from inbox.onward
    present = step.present(joined_spans(inbox.spans))
    for fragment in work.at(level):
        for shard in range(fragment.shards(work.shards)):
            if work.place(fragment, shard) == place:
                stepped = runner.step(fragment, shard, inbox.step(work, fragment, shard, present))
                for told in _told(work, fragment, shard, stepped):
                    yield _staged(told, runner)


def level_task(work: Work, level: int, step: Step, runner: Runner) -> Task:
    def task(records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        messages = (message for record in records for message in messages_in(record))
        for message in level_messages(work, level, step, messages, runner):
            yield as_record([message])

    return task


def _told(work: Work, fragment: Fragment, shard: int, stepped: Stepped) -> Iterator[Message]:
    for exchange, batch in zip(fragment.exchanges, stepped.given, strict=True):
        yield from work.sent(exchange, batch)
        yield from work.told_consumers(exchange, shard, batch.frontier)
    if stepped.errors:
        yield work.told_driver(Kind.ERRORS, fragment.number, shard, stepped.errors)
    if stepped.state is not None:
        yield work.told_driver(Kind.STATE, fragment.number, shard, stepped.state)


def _staged(message: Message, runner: Runner) -> Message:
    """An answer is told by where it lies, if it lies somewhere."""
    if message.kind is Kind.ELEMENTS and message.number == ANSWER:
        ref = runner.staged(message.payload)
        if ref is not None:
            return replace(message, kind=Kind.STAGED, payload=pickle.dumps(ref))
    return message
