"""Accumulators: incremental aggregates over the events of groups.

An event is a row that enters (delta > 0) or leaves (delta < 0) a group, |delta| times. An event
carries what the aggregate needs of its row as a few int64 *words*. All events of one group at one
instant are a *segment*; an accumulator returns the value of the aggregate after every segment.

For every segment the value is that of `logical.aggregates` over the present rows. Sums, averages
and variances of doubles too are equal to the last bit, whatever came and went before. The cost of a
step is proportional to its events, not to the rows held.

An accumulator is a subclass of `Accumulator`. `choose.py` selects those of built-in aggregates; a
user-defined aggregate may bring its own (`session.aggregate`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from millstream.physical.batch import Ints, Mask, State


@dataclass(slots=True)
class Answer:
    """The values after each segment; NULL, with a message, where the aggregate failed. `with_first`
    is preceded by the value before the first segment, if known."""

    values: pa.Array
    failed: Mask | None = None
    messages: dict[int, str] = field(default_factory=dict)
    with_first: pa.Array | None = None

    @staticmethod
    def after_the_first(values: pa.Array) -> Answer:
        return Answer(values.slice(1), with_first=values)


class Accumulator(ABC):
    """One aggregate over all groups, which are numbered from 0 up to the capacity."""

    width: int  # words per event
    one_form = False  # equal doubles have equal bits: no -0.0, and one NaN

    @abstractmethod
    def encode(
        self,
        arguments: Sequence[pa.Array],
        order: Sequence[pa.Array],
        included: Mask | None,
        length: int,
    ) -> list[Ints]:
        """The words of the rows of a batch. `included` is where the FILTER of the aggregate
        holds; None means everywhere."""

    @abstractmethod
    def step(self, group: Ints, words: Sequence[Ints], delta: Ints, bounds: Ints) -> Answer:
        """Process events sorted by group and time; segment j is those from bounds[j] to bounds[j +
        1].

        Within a segment events are in any order, so counts may be negative, but not after it. Every
        removal has the words of an earlier addition.
        """

    def exchange(self, came: Sequence[Ints], went: Sequence[Ints], length: int) -> Answer:
        """As `step`, for a single group: each segment adds one row and removes one."""
        events = 2 * length
        words = [np.stack(pair, axis=1).ravel() for pair in zip(came, went, strict=True)]
        delta = np.tile(np.array([1, -1]), length)
        return self.step(np.zeros(events, np.int64), words, delta, np.arange(0, events + 1, 2))

    @abstractmethod
    def grow(self, capacity: int) -> None:
        """Make room for groups below `capacity`; new groups are empty."""

    @abstractmethod
    def remap(self, old: Ints, capacity: int) -> None:
        """Renumber: group i was old[i]. All other groups are dropped."""

    @abstractmethod
    def forget(self, groups: Ints) -> None:
        """Empty groups, so that their numbers can be reused."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The memory that the state takes."""

    @abstractmethod
    def save(self) -> State:
        """The state as plain values and arrays, which `model.codec` can pack."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Take over a state that `save` gave; the accumulator is new."""

    @property
    def crowded(self) -> bool:
        """Whether `retain` is worth its cost now."""
        return False

    def retain(self, words: Sequence[Sequence[Ints]]) -> None:  # noqa: B027 - most have nothing
        """Drop data that only past events used. `words` are those of all future events, in any
        number of pieces."""


def grown(room: int, capacity: int) -> int:
    """How many groups to allocate, so that repeated growth is amortized."""
    return max(capacity, room * 3 // 2)


class GroupTable:
    """Numbers per group: an array with one row per group, initially zero."""

    def __init__(self, columns: int) -> None:
        self.rows: Ints = np.zeros((0, columns), np.int64)

    def grow(self, capacity: int) -> None:
        if capacity > len(self.rows):
            room = len(self.rows)
            self.remap(np.arange(room), grown(room, capacity))

    def remap(self, old: Ints, capacity: int) -> None:
        rows = np.zeros((capacity, self.rows.shape[1]), np.int64)
        rows[: len(old)] = self.rows[old]
        self.rows = rows


class TableAccumulator(Accumulator):
    """An accumulator whose whole state is a few numbers per group."""

    def __init__(self, columns: int) -> None:
        self._table = GroupTable(columns)

    def grow(self, capacity: int) -> None:
        self._table.grow(capacity)

    def remap(self, old: Ints, capacity: int) -> None:
        self._table.remap(old, capacity)

    def forget(self, groups: Ints) -> None:
        self._table.rows[groups] = 0

    @property
    def nbytes(self) -> int:
        return self._table.rows.nbytes

    def save(self) -> State:
        return {"rows": self._table.rows.copy()}

    def restore(self, state: State) -> None:
        self._table.rows = state["rows"].copy()
