"""Executors run the operators of a started query: in its thread, or remotely in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from millstream.checkpoint.files import Files
from millstream.model.metrics import Tally
from millstream.physical.batch import Batch
from millstream.physical.operator import Context, PhysicalPlan
from millstream.physical.operators.source import Source
from millstream.runtime.graph import Graph, Receive, Vertex
from millstream.runtime.position import Position


class Executor(Protocol):
    """The operators of one query. The worker pushes new rows, ends the round, and reports when its
    answers are delivered.

    `sources` are the source nodes of each stream. `checkpoint` is where state that must survive a
    crash is written, `folder` where the executor has its files, if any.
    """

    @property
    def context(self) -> Context: ...

    @property
    def sources(self) -> Mapping[str, Sequence[Source]]: ...

    @property
    def checkpoint(self) -> Files | None: ...

    @property
    def folder(self) -> Path | None: ...

    @property
    def frontier(self) -> int:
        """Every instant before it is final."""

    def push(self, source: Source, batch: Batch) -> None:
        """Process a batch of a source."""

    def follow(self, position: Position) -> None:
        """Save the position of the query with the state, and restore it from there."""

    def resume(self) -> bool:
        """Before the first round: emit answers again that may not have been delivered. Returns
        whether there are any."""

    def end_round(self) -> None:
        """Make sure that everything pushed is answered."""

    def delivered(self) -> None:
        """The answers of the round have been delivered."""

    def foreseen(self) -> Batch:
        """The output if no more input followed."""

    def tallies(self) -> list[Tally]:
        """The work and state of each operator, from the root down."""

    def close(self) -> None:
        """Nothing more will be pushed."""


OpenExecutor: TypeAlias = Callable[[PhysicalPlan, Context, Receive], Executor]


class InlineExecutor:
    """Runs the operators in the thread of the query; input is answered immediately."""

    checkpoint = None
    folder = None

    def __init__(self, plan: PhysicalPlan, context: Context, receive: Receive) -> None:
        self.context = context
        self._graph = Graph(plan, context, receive)
        self._vertices: dict[int, Vertex] = {}
        self.sources: dict[str, list[Source]] = {}
        for stream, vertices in self._graph.sources.items():
            for vertex in vertices:
                assert isinstance(vertex.node, Source)
                self._vertices[id(vertex.node)] = vertex
                self.sources.setdefault(stream, []).append(vertex.node)

    @property
    def frontier(self) -> int:
        return self._graph.root.frontier

    def push(self, source: Source, batch: Batch) -> None:
        self._graph.push(self._vertices[id(source)], batch)

    def follow(self, position: Position) -> None:
        """Nothing is saved: the state lives as long as the query."""

    def resume(self) -> bool:
        return False

    def end_round(self) -> None:
        """Everything is answered already."""

    def delivered(self) -> None:
        """Nothing to release."""

    def foreseen(self) -> Batch:
        return self._graph.foreseen()

    def tallies(self) -> list[Tally]:
        return self._graph.tallies()

    def close(self) -> None:
        """The graph is freed with its last reference."""
