"""One shard of a fragment: operators with their state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.fragments.edges import Fragment, Outputs, OutputsOperator, Received
from millstream.fragments.payload import decoded, part
from millstream.fragments.progress import SourceProgress
from millstream.fragments.remote_query import RemoteQuery
from millstream.model.elements import Row
from millstream.model.metrics import Tally
from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch, State, merged
from millstream.physical.operator import Context
from millstream.runtime.graph import Graph, Vertex

SLICE_ROWS = 16_384  # pushed at once: fits in the cache

Error = tuple[Row, str]


@dataclass(frozen=True)
class ShardStep:
    """The input of a shard in a batch: the elements of each exchange, as sent, their frontiers, and
    the progress of the sources."""

    inputs: Mapping[int, Sequence[bytes]]
    frontiers: Mapping[int, int]
    present: SourceProgress

    def told(self) -> list[Any]:
        """As plain values."""
        inputs = {exchange: list(payloads) for exchange, payloads in self.inputs.items()}
        return [inputs, dict(self.frontiers), self.present.told()]

    @staticmethod
    def of(told: Sequence[Any]) -> ShardStep:
        inputs, frontiers, present = told
        return ShardStep(inputs, frontiers, SourceProgress(*present))

    @property
    def size(self) -> int:
        """Bytes of elements."""
        return sum(len(payload) for payloads in self.inputs.values() for payload in payloads)


class Shard:
    def __init__(self, fragment: Fragment, context: Context) -> None:
        self._fragment = fragment
        self._context = context
        self._graph = fragment.graph(context)
        self._ports: dict[int, Vertex] = {
            vertex.node.exchange: vertex
            for vertex in self._graph.vertices
            if isinstance(vertex.node, Received)
        }
        self._frontiers = [NEVER] * len(fragment.exchanges)
        self._before: list[Tally] = []

    def step(self, step: ShardStep) -> list[Batch]:
        """The batches of each output."""
        self._before = self._graph.tallies()
        self._context.begin(step.present.beginning)
        self._context.sources[:] = step.present.sources.values()
        inputs = {e: merged([decoded(p) for p in payloads]) for e, payloads in step.inputs.items()}
        self._feed(inputs, step.frontiers)
        for exchange, vertex in self._ports.items():
            self._graph.push(vertex, Batch.empty(vertex.node.types, step.frontiers[exchange]))
        return self._given()

    def _feed(self, inputs: Mapping[int, Batch], frontiers: Mapping[int, int]) -> None:
        """Slice by slice in order of time, the input that is furthest behind first."""
        waiting = {exchange: _in_order(batch) for exchange, batch in inputs.items() if len(batch)}
        read = dict.fromkeys(waiting, 0)
        while waiting:
            exchange = min(waiting, key=lambda e: int(waiting[e].start[read[e]]))
            batch, first = waiting[exchange], read[exchange]
            stop = min(first + SLICE_ROWS, len(batch))
            reached = min(int(batch.start[stop - 1]), frontiers[exchange])
            self._graph.push(self._ports[exchange], part(batch, first, stop).up_to(reached))
            read[exchange] = stop
            if stop == len(batch):
                del waiting[exchange]

    def _given(self) -> list[Batch]:
        root = self._graph.root.operator
        assert isinstance(root, OutputsOperator)
        given = []
        for port, batches in enumerate(root.taken()):
            types = self._fragment.plan.sources[port].types
            nothing = Batch.empty(types, self._frontiers[port])
            batch = merged([nothing, *batches])
            self._frontiers[port] = max(self._frontiers[port], batch.frontier)
            given.append(batch)
        return given

    def errors(self) -> list[Error]:
        """The rows that failed since the last call."""
        found = list(self._context.errors)
        self._context.errors.clear()
        return found

    def tallies(self) -> list[Tally]:
        """The metrics of its operators in the last step, without those that only receive and
        send."""
        return worked(self._graph, self._before)

    def save(self) -> State:
        return {
            "graph": self._graph.save(),
            "frontiers": list(self._frontiers),
            "beginning": self._context.beginning,
            "sources": list(self._context.sources),
            "early": list(self._context.early),
        }

    def restore(self, state: State) -> None:
        self._context.beginning = state["beginning"]
        self._context.sources[:] = state["sources"]
        self._context.early = list(state.get("early", ()))
        self._graph.restore(state["graph"])
        self._frontiers = list(state["frontiers"])


def worked(graph: Graph, before: Sequence[Tally] = ()) -> list[Tally]:
    """The metrics of a fragment's operators, without those at its edges."""
    now = graph.tallies()
    done = [n.since(b) for n, b in zip(now, before, strict=True)] if before else now
    vertices = zip(graph.walk(), done, strict=True)
    return [tally for vertex, tally in vertices if not isinstance(vertex.node, Outputs | Received)]


def _in_order(batch: Batch) -> Batch:
    """By start, and by end if rows are not retracted: rows that enter a window together leave it in
    order of time, but several tasks have read them."""
    start, end = batch.start, batch.end
    follows = start[1:] > start[:-1]
    if (follows | ((start[1:] == start[:-1]) & (end[1:] >= end[:-1]))).all():
        return batch
    if batch.weight.min() < 0:
        return batch.take(np.argsort(start, kind="stable")).gathered()
    return batch.take(np.lexsort((end, start))).gathered()


def leaf_frontiers(work: RemoteQuery, sources: Mapping[str, int]) -> dict[int, int]:
    """The frontier of each exchange of the leaves, given those of the sources."""
    leaves = work.leaves
    graph = leaves.graph(work.context(leaves.number))
    for stream, vertices in graph.sources.items():
        for vertex in vertices:
            graph.push(vertex, Batch.empty(vertex.node.types, sources.get(stream, INFINITY)))
    root = graph.root.operator
    assert isinstance(root, OutputsOperator)
    given = root.taken()
    return {
        exchange.number: given[exchange.port][-1].frontier if given[exchange.port] else NEVER
        for exchange in leaves.exchanges
    }
