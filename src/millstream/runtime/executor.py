"""Where the operators of a started query run: in its thread, or elsewhere in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from millstream.checkpoint.files import Files
from millstream.physical.batch import Batch
from millstream.physical.operator import Context, PhysicalPlan
from millstream.physical.operators.source import Source
from millstream.runtime.graph import Graph, Receive, Vertex
from millstream.runtime.position import Position
from millstream.runtime.tally import Tally


class Executor(Protocol):
    """The operators of one query. The worker pushes what has arrived, ends the round, and says when
    its answers are delivered.

    `sources` are the nodes of each stream that wants its batches. `checkpoint` is where that is
    written which must outlast a crash, `folder` where the executor has its files, if it has any.
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
        """Take a batch of a source in."""

    def follow(self, position: Position) -> None:
        """Keep the position of the query with the state; bring it to where that is."""

    def resume(self) -> bool:
        """Before the first round: give again what may not have been delivered, if something is."""

    def end_round(self) -> None:
        """See to it that all that was pushed is answered."""

    def delivered(self) -> None:
        """The answers of the round are where they belong."""

    def foreseen(self) -> Batch:
        """What would be given if nothing more came."""

    def tallies(self) -> list[Tally]:
        """What each operator has done and keeps, from the root down."""

    def close(self) -> None:
        """Nothing more will be pushed."""


OpenExecutor: TypeAlias = Callable[[PhysicalPlan, Context, Receive], Executor]


class InlineExecutor:
    """The operators in the thread of the query; whatever is pushed is answered at once."""

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
        """It begins with the query and ends with it."""

    def resume(self) -> bool:
        return False

    def end_round(self) -> None:
        """All is answered already."""

    def delivered(self) -> None:
        """Nothing is kept for it."""

    def foreseen(self) -> Batch:
        return self._graph.foreseen()

    def tallies(self) -> list[Tally]:
        return self._graph.tallies()

    def close(self) -> None:
        """The graph goes with its last reference."""
