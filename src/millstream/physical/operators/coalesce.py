"""Coalesce: merges equal rows with adjacent intervals into one element.

*Meaning*: for every t, out(t) = in(t). Elements are merged as long as they do not become longer
than `longest`; elements that are longer already are unchanged.
*State*: the elements that may still grow: until the frontier has passed their end, or they have
their maximum length. They hold the frontier back by less than `longest`.
*Pattern*: WEAK; MONOTONIC if nothing expires. Not for input that may be retracted.
*Cost*: one lookup per element. *Source*: K §11.7.2, algorithm 17. K merges anything that follows an
element shorter than l_max, and so creates longer ones; here the bound in K's text holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from millstream.model.arrays import with_room
from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch, Ints, State
from millstream.physical.events.agenda import CalendarAgenda
from millstream.physical.kernels.coalesce import extend_pieces, first_growing
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan
from millstream.physical.state.keys import KeySpace
from millstream.physical.state.store import RowStore
from millstream.physical.state.waiting import Waiting


@dataclass(frozen=True)
class Coalesce(PhysicalPlan):
    """`longest` is K's l_max, in chronons."""

    input: PhysicalPlan
    longest: int

    def __post_init__(self) -> None:
        assert self.input.pattern is not Pattern.STRICT, "settle it first"
        assert 0 < self.longest < INFINITY, "it would wait forever"

    @cached_property
    def pattern(self) -> Pattern:
        monotonic = self.input.pattern is Pattern.MONOTONIC
        return Pattern.MONOTONIC if monotonic else Pattern.WEAK

    @property
    def state(self) -> str:
        return "ring"

    def open(self, context: Context) -> Operator:
        return CoalesceOperator(self)


class CoalesceOperator(Operator):
    def __init__(self, node: Coalesce) -> None:
        self._longest = node.longest
        self._types = node.types
        self._ordered = node.input.pattern is Pattern.WEAKEST
        self._waiting = Waiting()
        self._frontier = NEVER
        self._agenda = CalendarAgenda(words=1)  # the ends of pieces, with their numbers
        self._clear()

    def _clear(self) -> None:
        """No pieces."""
        self._keys = KeySpace([*self._types, pa.int64()])  # rows and their weight
        self._newest = np.full(64, -1, np.int64)  # number of the newest piece, by code
        self._base = self._stop = 0  # numbers of the first piece and one past the last
        self._since, self._until, self._weight, self._older = np.zeros((4, 64), np.int64)
        self._growing = np.zeros(64, np.bool_)
        self._rows = RowStore(self._types)

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._forget()
        self._frontier = max(self._frontier, batch.frontier)
        if not self._ordered:
            batch = self._waiting.released(batch)
        complete = np.concatenate([self._grown(batch), self._ended()])
        mask = len(self._since) - 1
        self._base = first_growing(self._base, self._stop, mask, self._growing)
        frontier = self._frontier
        if self._base < self._stop:
            frontier = min(frontier, int(self._since[self._base & mask]))
        return [self._pieces(complete, frontier)]

    def _grown(self, batch: Batch) -> Ints:
        """Add elements; returns the pieces that have reached their maximum length."""
        if not len(batch):
            return np.empty(0, np.int64)
        self._make_room(len(batch))
        key = [*batch.columns, pa.array(batch.weight)]
        codes = self._keys.encode(key, len(batch))
        self._newest = with_room(self._newest, self._keys.count, -1)
        mask = len(self._since) - 1
        numbers = extend_pieces(
            codes, batch.start, batch.end, self._longest, self._base, self._stop, mask,
            self._since, self._until, self._growing, self._older, self._newest,
        )  # fmt: skip
        before = np.maximum.accumulate(np.append(self._stop - 1, numbers))[:-1]
        opened = np.flatnonzero(numbers > before)
        self._stop += len(opened)
        places = numbers[opened] & mask
        self._weight[places] = batch.weight[opened]
        self._rows.put(places, batch.columns.take(opened))
        growing = self._growing[numbers & mask]
        self._agenda.add(batch.end[growing], [numbers[growing]])
        return np.unique(numbers[~growing])

    def _ended(self) -> Ints:
        """The pieces that nothing can follow any more."""
        times, numbers = self._agenda.due(self._frontier)
        places = numbers & (len(self._since) - 1)
        last = (numbers >= self._base) & self._growing[places] & (self._until[places] == times)
        ended = np.unique(numbers[last])
        self._growing[ended & (len(self._since) - 1)] = False
        return ended

    def _pieces(self, numbers: Ints, frontier: int) -> Batch:
        places = numbers & (len(self._since) - 1)
        times = self._since[places], self._until[places], self._weight[places]
        return Batch(self._rows.rows(places), *times, frontier)

    def _make_room(self, count: int) -> None:
        """Pieces keep their numbers; the next places are free."""
        live, old = self._stop - self._base, len(self._since)
        if live + count <= old:
            return
        capacity = 1 << (2 * (live + count) - 1).bit_length()
        numbers = np.arange(self._base, self._stop)
        for name in ("_since", "_until", "_weight", "_older", "_growing"):
            array = getattr(self, name)
            larger = np.zeros(capacity, array.dtype)
            larger[numbers & (capacity - 1)] = array[numbers & (old - 1)]
            setattr(self, name, larger)
        places = np.zeros(capacity, np.int64)
        places[numbers & (capacity - 1)] = numbers & (old - 1)
        self._rows.move(places, capacity)
        self._rows.vacuum(numbers & (capacity - 1))

    def _forget(self) -> None:
        """Rebuild with the pieces that may still grow, once most keys belong to others."""
        if self._keys.count > 2 * (self._stop - self._base) + 1024:
            pieces = self._save_pieces()
            self._clear()
            self._restore_pieces(pieces)

    @property
    def rows(self) -> int:
        return self._stop - self._base + len(self._waiting)

    @property
    def nbytes(self) -> int:
        own = 4 * self._since.nbytes + self._growing.nbytes + self._newest.nbytes
        kept = self._rows.nbytes + self._keys.nbytes + self._agenda.nbytes
        return own + kept + self._waiting.nbytes

    def _save_pieces(self) -> State:
        numbers = np.arange(self._base, self._stop)
        numbers = numbers[self._growing[numbers & (len(self._since) - 1)]]
        pieces = self._pieces(numbers, NEVER)
        return {"pieces": pieces.save()}

    def _restore_pieces(self, state: State) -> None:
        self._agenda = CalendarAgenda(words=1)
        self._grown(Batch.restored(state["pieces"]))

    def save(self) -> State:
        pieces = self._save_pieces()
        return pieces | {"waiting": self._waiting.save(), "frontier": self._frontier}

    def restore(self, state: State) -> None:
        self._restore_pieces(state)
        self._waiting.restore(state["waiting"])
        self._frontier = state["frontier"]
