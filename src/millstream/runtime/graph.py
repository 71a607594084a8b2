"""A running plan: operators that push batches to each other.

Each node of the plan is one operator, however many consumers it has. A batch passes through the
whole graph before the next one: depth first, each operator's output to all its consumers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TypeAlias

from millstream.model.long_texts import is_text
from millstream.model.metrics import Tally
from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch, State, merged, pieces
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan
from millstream.physical.operators.source import Source
from millstream.physical.signature import Signatures

Receive: TypeAlias = Callable[[Batch], None]  # takes the output of the root


@dataclass
class Vertex:
    """An operator in the graph, its consumers, and its counters."""

    node: PhysicalPlan
    signature: str
    operator: Operator
    consumers: list[tuple[Vertex, int]] = field(default_factory=list)
    frontier: int = NEVER
    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    texts: list[int] = field(init=False)  # the text columns of its output

    def __post_init__(self) -> None:
        self.texts = [place for place, type in enumerate(self.node.types) if is_text(type)]


class Graph:
    """The operators of a plan; the output of the root goes to `receive`.

    Nodes that compute the same are one vertex. In a fragment they are not, and `signatures` has
    those of the whole plan: equal nodes may get rows that are placed by different keys.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        context: Context,
        receive: Receive,
        signatures: Signatures | None = None,
    ) -> None:
        self.context = context
        self._receive = receive
        self._begun = False
        self._merges = signatures is None
        self._signatures = signatures or Signatures(context.functions, context.aggregates)
        self._vertices: dict[str | int, Vertex] = {}
        self.root = self._open(plan)
        context.in_order = plan.pattern is Pattern.WEAKEST
        self.sources: dict[str, list[Vertex]] = {}
        for vertex in self.vertices:
            if isinstance(vertex.node, Source):
                self.sources.setdefault(vertex.node.stream, []).append(vertex)

    def _open(self, node: PhysicalPlan) -> Vertex:
        signature = self._signatures[node]
        key = signature if self._merges else id(node)
        if key not in self._vertices:
            inputs = [self._open(child) for child in node.inputs]
            vertex = Vertex(node, signature, node.open(self.context))
            for port, child in enumerate(inputs):
                child.consumers.append((vertex, port))
            self._vertices[key] = vertex
        return self._vertices[key]

    @property
    def vertices(self) -> list[Vertex]:
        """All operators, inputs before their consumers."""
        return list(self._vertices.values())

    def push(self, vertex: Vertex, batch: Batch, port: int = 0) -> None:
        """Pass a batch through an operator and its consumers."""
        began = perf_counter()
        given = vertex.operator.process(port, batch)
        vertex.seconds += perf_counter() - began
        vertex.batches += 1
        vertex.rows_in += len(batch.start)
        if len(given) == 1 and not (vertex.texts and vertex.consumers):
            self._pass_on(vertex, given[0])
        elif given:
            self._give(vertex, given)
        if not self._begun and self.context.has_begun:
            self._begun = True
            for other in self.vertices:
                if given := other.operator.begin():
                    self._give(other, given)

    def _give(self, vertex: Vertex, given: Sequence[Batch]) -> None:
        if vertex.texts and vertex.consumers:
            given = [piece for batch in given for piece in pieces(batch, vertex.texts)]
        *others, last = given
        for out in others:  # only the last one carries the frontier
            self._pass_on(vertex, out.up_to(vertex.frontier))
        self._pass_on(vertex, last)

    def _pass_on(self, vertex: Vertex, batch: Batch) -> None:
        length = len(batch.start)
        if batch.frontier > vertex.frontier:
            vertex.frontier = batch.frontier
        elif not length:
            return
        vertex.rows_out += length
        if vertex is self.root:
            self._receive(batch)
        for consumer, port in vertex.consumers:
            self.push(consumer, batch, port)

    def bring_to(self, frontier: int) -> None:
        """Advance every source to the frontier."""
        for vertices in self.sources.values():
            for vertex in vertices:
                self.push(vertex, Batch.empty(vertex.node.types, frontier))

    def foreseen(self) -> Batch:
        """The output if no more input followed, computed by a copy that runs to its end."""
        given = [Batch.empty(self.root.node.types, NEVER)]
        plan, context = self.root.node, replace(self.context, sources=[])
        copy = Graph(plan, context, lambda batch: given.append(batch.gathered()))
        copy.restore(deepcopy(self.save()))  # shared data must not change
        copy.bring_to(INFINITY)
        return merged(given)

    def tallies(self) -> list[Tally]:
        """The work and state of each operator, from the root down."""
        return [
            Tally(
                vertex.signature,
                type(vertex.node).__name__,
                vertex.rows_in,
                vertex.rows_out,
                vertex.seconds,
                vertex.operator.rows,
                vertex.operator.nbytes,
                vertex.frontier,
            )
            for vertex in self.walk()
        ]

    def save(self) -> State:
        """Includes the frontier of each edge: a frontier that a consumer has seen is not passed on
        again."""
        return {
            "operators": [
                [vertex.signature, vertex.frontier, vertex.operator.save()]
                for vertex in self.vertices
            ],
            "begun": self._begun,
        }

    def restore(self, state: State) -> None:
        """Operators find their states by signature; equal ones in the order of the plan."""
        saved: dict[str, list[tuple[int, State]]] = {}
        for signature, frontier, own in state["operators"]:
            saved.setdefault(signature, []).append((frontier, own))
        for vertex in self.vertices:
            vertex.frontier, own = saved[vertex.signature].pop(0)
            vertex.operator.restore(own)
        assert not any(saved.values())
        self._begun = state["begun"]

    def walk(self) -> Iterator[Vertex]:
        """From the root down, each operator once."""
        yield from reversed(self.vertices)
