"""The sweep over the step functions of many keys, on which aggregates are built.

Elements become events: the weight of a row is added to its key at its start and subtracted at its
end. Events wait until the frontier has passed them; due events are returned as *steps*, one per key
and instant, key by key in order of time. So no operator ever sees a partial instant, and signed and
positive elements are treated alike.

Further words may distinguish rows of one key; they are returned with each event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from millstream.model.arrays import larger
from millstream.model.time import INFINITY
from millstream.physical.batch import Batch, Ints, State
from millstream.physical.events.agenda import Agenda, CalendarAgenda, Queue
from millstream.physical.kernels.scans import ascends, greatest, least
from millstream.physical.kernels.steps import instants, ordered_steps


@dataclass(slots=True)
class KeySteps:
    """Due events, sorted by key and time; step j is the events from bounds[j] to bounds[j + 1]."""

    code: Ints
    time: Ints
    delta: Ints
    words: Sequence[Ints]
    bounds: Ints

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @staticmethod
    def none(words: int) -> KeySteps:
        nothing = np.empty(0, np.int64)
        return KeySteps(nothing, nothing, nothing, [nothing] * words, np.zeros(1, np.int64))

    @property
    def step_code(self) -> Ints:
        return self.code[self.bounds[:-1]]

    @property
    def step_time(self) -> Ints:
        return self.time[self.bounds[:-1]]

    def times_before(self, first: int) -> Ints:
        """The time of the previous step, for a single key; `first` is that of the first step."""
        return np.concatenate([[first], self.time[self.bounds[:-2]]])


@dataclass(slots=True)
class Exchanges:
    """Steps of a single key, each of which adds one row and removes one."""

    times: Ints  # of the steps, after room for one
    came: Sequence[Ints]  # words
    went: Sequence[Ints]

    def __len__(self) -> int:
        return len(self.times) - 1

    @property
    def step_time(self) -> Ints:
        return self.times[1:]

    def times_before(self, first: int) -> Ints:
        """The time of the previous step; `first` is that of the first step."""
        self.times[0] = first
        return self.times[:-1]


class Sweep:
    """`ordered`: elements arrive in order of start and of end; then queues hold their events,
    otherwise calendars. An event has `words` besides its time, its key and its weight."""

    def __init__(self, ordered: bool, words: int = 0) -> None:
        form = Queue if ordered else CalendarAgenda
        self._starts: Agenda = form(words + 2)
        self._ends: Agenda = form(words + 2)
        self._agendas = self._starts, self._ends
        self._nothing = KeySteps.none(words)
        self._scratch = np.zeros(64, np.int64)
        self._at_once = 0  # events that did not wait

    def __len__(self) -> int:
        return sum(map(len, self._agendas))

    @property
    def nbytes(self) -> int:
        return sum(agenda.nbytes for agenda in self._agendas) + self._scratch.nbytes

    @property
    def touched(self) -> int:
        """How many events were examined so far."""
        return self._at_once + sum(agenda.touched for agenda in self._agendas)

    def add(self, code: Ints, batch: Batch, words: Sequence[Ints] = ()) -> None:
        """The events of a batch whose rows have these keys."""
        if not len(code):
            return
        self._starts.add(batch.start, [code, batch.weight, *words])
        if greatest(batch.end) < INFINITY:
            self._ends.add(batch.end, [code, -batch.weight, *words])
            return
        finite = (batch.end < INFINITY).nonzero()[0]
        if len(finite):
            kept = [code[finite], -batch.weight[finite], *(word[finite] for word in words)]
            self._ends.add(batch.end[finite], kept)

    def swept(self, code: Ints, batch: Batch, words: Sequence[Ints], keys: int) -> KeySteps:
        """Add a batch, and return the steps before its frontier; codes are below `keys`."""
        if keys == 1 and not len(self) and _is_over(batch):
            self._at_once += len(batch)
            return KeySteps(code, batch.start, batch.weight, words, instants(batch.start))
        self.add(code, batch, words)
        return self.due(batch.frontier, keys)

    def due(self, frontier: int, keys: int) -> KeySteps:
        """Remove and return the steps before the frontier; codes are below `keys`."""
        pieces = [taken for agenda in self._agendas if (taken := agenda.due(frontier)).shape[1]]
        if not pieces:
            return self._nothing
        events = pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)
        if len(pieces) == keys == 1:  # sorted already
            time, code, delta, *words = events
            return KeySteps(code, time, delta, words, instants(time))
        if len(self._scratch) < keys:
            self._scratch = np.zeros(larger(len(self._scratch), keys), np.int64)
        order, bounds = ordered_steps(events[1], events[0], self._scratch)
        time, code, delta, *words = events.take(order, axis=1)
        return KeySteps(code, time, delta, words, bounds)

    def live(self) -> Ints:
        """The codes of future events."""
        pieces = [piece[1] for agenda in self._agendas for piece in agenda.pending()]
        return np.concatenate([np.empty(0, np.int64), *pieces])

    def renumber(self, renumbered: Ints) -> None:
        for agenda in self._agendas:
            for piece in agenda.pending():
                piece[1] = renumbered[piece[1]]

    def pending_words(self) -> Iterator[Ints]:
        """The words of future events, in pieces."""
        for agenda in self._agendas:
            for piece in agenda.pending():
                yield piece[3:]

    def save(self) -> State:
        return {"agendas": [agenda.save() for agenda in self._agendas]}

    def restore(self, state: State) -> None:
        for agenda, saved in zip(self._agendas, state["agendas"], strict=True):
            agenda.restore(saved)


def _is_over(batch: Batch) -> bool:
    """Whether all events are before the frontier and in order of time, without ends."""
    start = batch.start
    if not len(start) or start[-1] >= batch.frontier or least(batch.end) < INFINITY:
        return False
    return ascends(start)
