"""Fragments, and the edges between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from millstream.logical.expressions import Expression
from millstream.logical.plan import Schema
from millstream.physical.batch import Batch
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan
from millstream.physical.signature import Signatures
from millstream.runtime.graph import Graph

LEAVES = 0  # the number of the fragment of the sources
OUTPUTS = "outputs"  # in place of a signature: the root of a fragment is no node of the whole plan
ANSWER = 0  # the number of the exchange that sends the answer to the driver


@dataclass(frozen=True)
class Exchange:
    """A cut edge: the rows of output `port` of a fragment go to another one, placed by the values
    of `keys`; without keys all go to one shard, or to all shards (`everywhere`)."""

    number: int
    producer: int
    port: int
    consumer: int | None  # None: the driver
    keys: tuple[Expression, ...]
    schema: Schema
    everywhere: bool = False


@dataclass(frozen=True)
class Fragment:
    """Operators that run in one place. The outputs of its plan belong to its `exchanges`.
    `signatures` are those that its nodes have in the whole plan; what is received has that of the
    node that sends it."""

    number: int
    level: int
    plan: Outputs
    exchanges: tuple[Exchange, ...]
    keyed: bool
    signatures: tuple[str, ...]

    def graph(self, context: Context) -> Graph:
        return Graph(
            self.plan, context, lambda batch: None, Signatures.given(self.plan, self.signatures)
        )

    def shards(self, count: int) -> int:
        return count if self.keyed else 1


@dataclass(frozen=True)
class Received(PhysicalPlan):
    """The rows of an exchange: a leaf of a fragment's plan."""

    exchange: int
    columns: Schema
    arrives: Pattern

    input_names = ()

    @cached_property
    def schema(self) -> Schema:
        return self.columns

    @cached_property
    def pattern(self) -> Pattern:
        return self.arrives

    @property
    def told(self) -> dict[str, str]:
        return {"exchange": f"#{self.exchange}"}

    def open(self, context: Context) -> Operator:
        return ReceivedOperator()


class ReceivedOperator(Operator):
    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        return [batch]


@dataclass(frozen=True)
class Outputs(PhysicalPlan):
    """The root of a fragment's plan: it collects the output for other fragments."""

    sources: tuple[PhysicalPlan, ...]

    @property
    def inputs(self) -> tuple[PhysicalPlan, ...]:
        return self.sources

    @cached_property
    def schema(self) -> Schema:
        return ()

    @cached_property
    def pattern(self) -> Pattern:
        return Pattern.STRICT

    def open(self, context: Context) -> Operator:
        return OutputsOperator(self)


class OutputsOperator(Operator):
    def __init__(self, node: Outputs) -> None:
        self._given: list[list[Batch]] = [[] for _ in node.sources]

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._given[port].append(batch.gathered())
        return []

    def taken(self) -> list[list[Batch]]:
        """The batches of each input since the last call."""
        given, self._given = self._given, [[] for _ in self._given]
        return given


def received(fragment: Fragment) -> Iterator[Received]:
    """The inputs of a fragment, each exchange once."""
    seen: dict[int, Received] = {}
    ahead: list[PhysicalPlan] = [fragment.plan]
    while ahead:
        node = ahead.pop()
        if isinstance(node, Received):
            seen[node.exchange] = node
        ahead += node.inputs
    return iter(seen.values())
