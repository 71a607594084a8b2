"""Cut: cuts elements into pieces of a maximum length.

*Meaning*: for every t, out(t) = in(t), as pieces of `length` chronons from the start of each
element, the last one shorter.
*State*: the elements with future pieces: the first piece is emitted with the element, the others
when the frontier has passed their start. Elements without an end become one last piece when the
input has ended.
*Pattern*: WEAK, also where K's table 12.1 says that the order of ends is retained: [0, 8) and [5,
20) in pieces of 7 are [0, 7), [5, 12), [7, 8), …. Not for input that may be retracted.
*Cost*: constant per piece. *Source*: K §11.7.1, algorithm 15. `Split` cuts at the instants of a
grid, for windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch, Ints, State, merged
from millstream.physical.events.agenda import CalendarAgenda
from millstream.physical.instants import plus
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan
from millstream.physical.pieces import check_pieces
from millstream.physical.state.slots import Slots
from millstream.physical.state.store import RowStore


@dataclass(frozen=True)
class Cut(PhysicalPlan):
    """`length` is K's l_out, in chronons."""

    input: PhysicalPlan
    length: int

    def __post_init__(self) -> None:
        assert self.input.pattern is not Pattern.STRICT, "settle it first"
        assert self.length > 0

    @cached_property
    def pattern(self) -> Pattern:
        return Pattern.WEAK

    @property
    def state(self) -> str:
        return "calendar"

    def open(self, context: Context) -> Operator:
        return CutOperator(self)


class CutOperator(Operator):
    def __init__(self, node: Cut) -> None:
        self._length = node.length
        self._agenda = CalendarAgenda(words=3)  # starts of the next pieces; ends, weights and slots
        self._slots = Slots()
        self._rows = RowStore(node.types)
        self._gone: Ints = np.empty(0, np.int64)  # slots to free once they have been read
        self._frontier = NEVER

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._slots.release(self._gone)
        if self._rows.is_stale:
            self._rows.vacuum(self._slots.in_use())
        self._frontier = max(self._frontier, batch.frontier)
        start, end, weight, slot = self._agenda.due(self._frontier)
        later = Batch(self._rows.rows(slot), start, end, weight, self._frontier)
        due, rest = self._pieces(later)
        self._gone = slot[rest == INFINITY]
        self._wait(rest, end, weight, slot)
        first, rest = self._pieces(batch.up_to(self._frontier))
        self._keep(batch, rest)
        return [merged([due, first])]

    def _pieces(self, batch: Batch) -> tuple[Batch, Ints]:
        """The pieces of elements up to the frontier, at least the first of each; and the start of
        each next piece, INFINITY if there is none."""
        begin, end = batch.start, batch.end
        stop = np.minimum(end, self._frontier)
        whole = end == INFINITY if self._frontier == INFINITY else np.zeros(len(batch), np.bool_)
        reach = np.where(stop > begin, stop - np.minimum(begin, stop), 1)
        count = np.where(whole, 1, -(-reach // self._length))
        check_pieces(count, self._length)
        index = np.repeat(np.arange(len(batch)), count)
        number = np.arange(len(index)) - np.repeat(np.cumsum(count) - count, count)
        start = begin[index] + number * self._length
        until = np.where(whole[index], INFINITY, np.minimum(plus(start, self._length), end[index]))
        following = np.where(whole, INFINITY, begin + (count - 1) * self._length)
        following = np.where(whole, INFINITY, plus(following, self._length))
        following = np.where(following >= end, INFINITY, following)
        return batch.take(index).timed(start, until), following

    def _keep(self, batch: Batch, rest: Ints) -> None:
        """Keep the elements with future pieces."""
        index = np.flatnonzero(rest < INFINITY)
        if not len(index):
            return
        lacking = self._slots.lacking(len(index))
        if lacking:
            self._slots.grow(max(2 * self._slots.capacity, self._slots.capacity + lacking))
            self._rows.grow(self._slots.capacity)
        slots = self._slots.take(len(index))
        kept = batch.take(index)
        self._rows.put(slots, kept.columns)
        self._wait(rest[index], kept.end, kept.weight, slots)

    def _wait(self, start: Ints, end: Ints, weight: Ints, slot: Ints) -> None:
        ahead = start < INFINITY
        self._agenda.add(start[ahead], [end[ahead], weight[ahead], slot[ahead]])

    @property
    def rows(self) -> int:
        return len(self._agenda)

    @property
    def nbytes(self) -> int:
        return self._agenda.nbytes + self._rows.nbytes

    def save(self) -> State:
        agenda = self._agenda.save()
        slots = agenda["events"][3]
        return {
            "agenda": agenda,
            "rows": self._rows.save(slots),
            "frontier": self._frontier,
        }

    def restore(self, state: State) -> None:
        events = state["agenda"]["events"].copy()
        count = events.shape[1]
        lacking = self._slots.lacking(count)
        if lacking:
            self._slots.grow(self._slots.capacity + lacking)
            self._rows.grow(self._slots.capacity)
        events[3] = self._slots.take(count)
        self._rows.restore(state["rows"], events[3])
        self._agenda.restore({"events": events})
        self._frontier = state["frontier"]
