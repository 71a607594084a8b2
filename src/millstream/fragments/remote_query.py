"""A query as its tasks know it, and the routing of their messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from millstream.fragments.edges import LEAVES, Exchange, Fragment
from millstream.fragments.failures import failure_data
from millstream.fragments.messages import DRIVER, Kind, Message
from millstream.fragments.payload import encoded, split
from millstream.fragments.placement import shards_of
from millstream.fragments.plan_data import fragments_data, fragments_of_data
from millstream.logical.evaluate import UserAggregate, UserFunction
from millstream.model.codec import packed
from millstream.physical.batch import Batch
from millstream.physical.expressions import Draws
from millstream.physical.expressions.evaluation import Evaluation
from millstream.physical.operator import Context


@dataclass(frozen=True)
class RemoteQuery:
    """A query as its tasks know it."""

    fragments: tuple[Fragment, ...]
    shards: int
    places: int  # the number of tasks
    functions: Mapping[str, UserFunction]
    aggregates: Mapping[str, UserAggregate]
    seed: int
    discards: bool = False  # the answer is not needed: its rows are only counted

    def told(self) -> str:
        """As text, without the user functions, which are shipped separately."""
        own = [fragments_data(self.fragments), self.shards, self.places, self.seed, self.discards]
        return json.dumps(own)

    @staticmethod
    def of(
        told: str, functions: Mapping[str, UserFunction], aggregates: Mapping[str, UserAggregate]
    ) -> RemoteQuery:
        fragments, shards, places, seed, discards = _read(told)
        return RemoteQuery(fragments, shards, places, functions, aggregates, seed, discards)

    def __reduce__(self) -> tuple[Callable[..., RemoteQuery], tuple[Any, ...]]:
        """In a closure that Spark ships, the plan is data too."""
        return _shipped, (self.told(), self.functions, self.aggregates)

    @property
    def leaves(self) -> Fragment:
        return self.fragments[LEAVES]

    @property
    def last_level(self) -> int:
        return max(fragment.level for fragment in self.fragments)

    @property
    def answer_types(self) -> tuple[pa.DataType, ...]:
        """The types of the columns in the exchange to the driver."""
        answer = next(e for f in self.fragments for e in f.exchanges if e.consumer is None)
        return tuple(column.type for column in answer.schema)

    def context(self, number: int = 0) -> Context:
        return Context(self.functions, self.aggregates, draws=Draws((self.seed + number) % 2**64))

    def at(self, level: int) -> list[Fragment]:
        return [fragment for fragment in self.fragments if fragment.level == level]

    def place(self, fragment: Fragment, shard: int) -> int:
        """Fragments with one shard are distributed over the places too."""
        return (shard + fragment.number) % self.places

    def sent(self, exchange: Exchange, batch: Batch) -> Iterator[Message]:
        """The elements of a batch, for the shards they belong to."""
        if exchange.consumer is None:
            if self.discards:
                yield self.told_driver(Kind.DISCARDED, exchange.number, 0, len(batch))
            elif len(batch):
                level = self.last_level + 1
                yield Message(DRIVER, level, Kind.ELEMENTS, exchange.number, 0, encoded(batch))
            return
        consumer = self.fragments[exchange.consumer]
        if exchange.everywhere:
            if len(batch):
                payload = encoded(batch)
                for shard in range(consumer.shards(self.shards)):
                    yield self._elements(exchange, consumer, shard, payload)
            return
        keys = Evaluation(exchange.keys, exchange.schema, Context(self.functions))
        values, _ = keys.over(batch.columns, len(batch))
        shards = shards_of(list(values), len(batch), consumer.shards(self.shards))
        for shard, rows in split(batch, shards):
            yield self._elements(exchange, consumer, shard, encoded(rows))

    def _elements(
        self, exchange: Exchange, consumer: Fragment, shard: int, payload: bytes
    ) -> Message:
        place, level = self.place(consumer, shard), consumer.level
        return Message(place, level, Kind.ELEMENTS, exchange.number, shard, payload)

    def told_driver(self, kind: Kind, number: int, shard: int, told: object) -> Message:
        """A message to the driver, of plain values."""
        level = self.last_level + 1
        return Message(DRIVER, level, kind, number, shard, packed(told))

    def told_consumers(self, exchange: Exchange, shard: int, frontier: int) -> Iterator[Message]:
        """The frontier of a shard in an exchange."""
        if exchange.consumer is None:
            yield self.told_driver(Kind.FRONTIER, exchange.number, shard, frontier)
            return
        level, payload = self.fragments[exchange.consumer].level, packed(frontier)
        for place in range(self.places):
            yield Message(place, level, Kind.FRONTIER, exchange.number, shard, payload)

    def told_failure(self, error: Exception, after: int = 0) -> Iterator[Message]:
        """The error that ends the batch."""
        return self.told_everywhere(Kind.FAILURE, failure_data(error), after)

    def told_everywhere(self, kind: Kind, told: object, after: int = 0) -> Iterator[Message]:
        """A message to all tasks of the following levels, and to the driver."""
        payload = packed(told)
        for level in range(after + 1, self.last_level + 1):
            for place in range(self.places):
                yield Message(place, level, kind, 0, 0, payload)
        yield Message(DRIVER, self.last_level + 1, kind, 0, 0, payload)


@lru_cache(maxsize=16)
def _read(told: str) -> tuple[tuple[Fragment, ...], int, int, int, bool]:
    """Cached: a process may run many tasks of a query."""
    fragments, shards, places, seed, discards = json.loads(told)
    return fragments_of_data(fragments), shards, places, seed, discards


def _shipped(
    told: str, functions: Mapping[str, UserFunction], aggregates: Mapping[str, UserAggregate]
) -> RemoteQuery:
    return RemoteQuery.of(told, functions, aggregates)
