"""The base classes of physical operators: a node of the plan, and the running operator it opens.

A node is immutable and says what is computed and how; an operator has the state. The engine passes
an operator the batches of its inputs (`process`); each call may advance the frontier of one input,
and returns the resulting batches. An operator with several inputs advances to the smallest of their
frontiers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from millstream.logical.evaluate import UserAggregate, UserFunction
from millstream.logical.plan import Schema
from millstream.model.elements import Row
from millstream.model.time import INFINITY
from millstream.model.values import to_plain
from millstream.physical.batch import NEVER, Batch, Columns, Ints, State
from millstream.physical.expressions import Draws


class Pattern(Enum):
    """The update pattern of the elements on an edge (G5 §3.1; K §12.3.4)."""

    MONOTONIC = "MONOTONIC"  # nothing ever expires
    WEAKEST = "WEAKEST"  # ordered by start, and equally by end
    WEAK = "WEAK"  # each end is known, in any order
    STRICT = "STRICT"  # some are retracted by negative elements

    @property
    def rank(self) -> int:
        return list(Pattern).index(self)


def weakest_of(least: Pattern, *others: Pattern) -> Pattern:
    """The most complex of several patterns."""
    return max((least, *others), key=lambda pattern: pattern.rank)


@dataclass
class Context:
    """What the operators of one query share while they run."""

    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    aggregates: Mapping[str, UserAggregate] = field(default_factory=dict)
    #: The smallest start accepted from any source: time begins there.
    beginning: int = INFINITY
    #: Rows that could not be evaluated, each with its message.
    errors: dict[tuple[Row, str], None] = field(default_factory=dict)
    draws: Draws = field(default_factory=Draws)
    #: The frontier of each source.
    sources: list[int] = field(default_factory=list)
    #: Whether rows may start before their source's frontier: for a stateless query no row is late.
    admits_late: bool = False
    #: Whether the answer is ordered by start.
    in_order: bool = False
    #: Rows that could not be evaluated and count only if time begins before their end.
    early: list[tuple[Row, str, int]] = field(default_factory=list)

    @property
    def has_begun(self) -> bool:
        """Whether no source can start earlier than `beginning` any more."""
        return min(self.sources, default=NEVER) >= self.beginning

    def begin(self, start: int) -> None:
        """Time begins at this start, unless it began earlier."""
        if start < self.beginning:
            self.beginning = start
            early, self.early = self.early, []
            for row, message, end in early:
                self.fail(row, message, end)

    def fail(self, row: Row, message: str, end: int = INFINITY) -> None:
        """A row that is valid until `end` could not be evaluated."""
        if end > self.beginning:
            self.report(row, message)
        elif not self.has_begun:
            self.early.append((row, message, end))

    def report(self, row: Row, message: str) -> None:
        self.errors[row, message] = None


class Operator(ABC):
    """A running operator. `process` takes a batch of the input `port`."""

    @abstractmethod
    def process(self, port: int, batch: Batch) -> Sequence[Batch]: ...

    def begin(self) -> Sequence[Batch]:
        """The batches held back until the beginning of time is known; called once, at that
        moment."""
        return ()

    @property
    def rows(self) -> int:
        """How many rows or events the state holds."""
        return 0

    @property
    def nbytes(self) -> int:
        """How many bytes of memory the state takes."""
        return 0

    @property
    def touched(self) -> int:
        """How many elements and events were examined so far, besides the input rows: a count of the
        work."""
        return 0

    def save(self) -> State:
        return {}

    def restore(self, state: State) -> None:
        """Restore a saved state right after the operator was opened."""
        assert not state


class PhysicalPlan(ABC):
    """A node of a physical plan; subclasses are frozen dataclasses."""

    input_names: ClassVar[tuple[str, ...]] = ("input",)

    @property
    def inputs(self) -> tuple[PhysicalPlan, ...]:
        return tuple(getattr(self, name) for name in self.input_names)

    def with_inputs(self, inputs: Sequence[PhysicalPlan]) -> PhysicalPlan:
        """The node over other inputs; itself if they are the same."""
        if all(new is old for new, old in zip(inputs, self.inputs, strict=True)):
            return self
        changes: dict[str, Any] = dict(zip(self.input_names, inputs, strict=False))
        if hasattr(self, "sources"):
            changes = {"sources": tuple(inputs)}
        return replace(self, **changes)  # type: ignore[type-var]

    @cached_property
    def schema(self) -> Schema:
        return self.inputs[0].schema

    @cached_property
    def types(self) -> tuple[pa.DataType, ...]:
        return tuple(column.type for column in self.schema)

    @cached_property
    @abstractmethod
    def pattern(self) -> Pattern: ...

    @property
    def state(self) -> str | None:
        """The kind of state the operator keeps, for display."""
        return None

    @property
    def told(self) -> dict[str, str]:
        """How a node of a kind unknown to `text` describes itself."""
        return {}

    @abstractmethod
    def open(self, context: Context) -> Operator: ...


class Frontiers:
    """The frontier of each input, and the smallest of them."""

    def __init__(self, count: int) -> None:
        self.each = [NEVER] * count

    @property
    def least(self) -> int:
        return min(self.each)

    def advance(self, port: int, frontier: int) -> int:
        """Returns the smallest frontier afterwards."""
        self.each[port] = max(self.each[port], frontier)
        return self.least

    def save(self) -> State:
        return {"frontiers": list(self.each)}

    def restore(self, state: State) -> None:
        self.each = list(state["frontiers"])


def plain_rows(columns: Columns, types: Sequence[pa.DataType], index: Ints) -> list[Row]:
    """A few rows as plain values, for messages."""
    taken = columns.take(index)
    plain = [to_plain(array, type) for array, type in zip(taken, types, strict=True)]
    return list(zip(*plain, strict=True)) if plain else [()] * len(index)
