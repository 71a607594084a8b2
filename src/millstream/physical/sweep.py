"""The sweep of a step function: what every operator that is not linear is made of.

Elements are taken as events: at its start the weight of a row is added to its key, at its end
taken away. Events wait until the frontier has passed them; those that are due come out as *steps*,
one for each key and instant at which something happened, key after key in order of time. So no
operator ever sees half an instant, and signed and positive elements are all the same to it.

Rows of one key may be told apart by further words, which come back with each of their events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from millstream.logical.time import INFINITY
from millstream.physical.agenda import Agenda, Calendar, Queue
from millstream.physical.arrays import larger
from millstream.physical.batch import NEVER, Batch, Ints, State
from millstream.physical.kernels.steps import ordered_steps


@dataclass(slots=True)
class Steps:
    """Due events, sorted by key and time; step j is the events from bounds[j] to bounds[j + 1]."""

    code: Ints
    time: Ints
    delta: Ints
    port: Ints  # the input that an event is of
    words: Sequence[Ints]
    bounds: Ints

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @staticmethod
    def none(words: int) -> Steps:
        nothing = np.empty(0, np.int64)
        return Steps(nothing, nothing, nothing, nothing, [nothing] * words, np.zeros(1, np.int64))

    @property
    def step_code(self) -> Ints:
        return self.code[self.bounds[:-1]]

    @property
    def step_time(self) -> Ints:
        return self.time[self.bounds[:-1]]


class Sweep:
    """The events of one or more inputs. `ordered` says of each whether its elements come in order
    of start and of end: then queues hold its events, and else calendars."""

    def __init__(self, ordered: Sequence[bool], words: int = 0) -> None:
        forms = [Queue if queue else Calendar for queue in ordered]
        self._agendas = [(form(words + 2), form(words + 2)) for form in forms]  # starts, ends
        self._nothing = Steps.none(words)
        self._scratch = np.zeros(64, np.int64)

    def _each(self) -> Iterator[Agenda]:
        return chain.from_iterable(self._agendas)

    def __len__(self) -> int:
        return sum(map(len, self._each()))

    @property
    def nbytes(self) -> int:
        return sum(agenda.nbytes for agenda in self._each()) + self._scratch.nbytes

    @property
    def touched(self) -> int:
        """How many events were looked at so far."""
        return sum(agenda.touched for agenda in self._each())

    def add(self, port: int, code: Ints, batch: Batch, words: Sequence[Ints] = ()) -> None:
        """The events of a batch whose rows have these keys."""
        if not len(code):
            return
        starts, ends = self._agendas[port]
        starts.add(batch.start, [code, batch.weight, *words])
        finite = (batch.end < INFINITY).nonzero()[0]
        if len(finite) == len(code):
            ends.add(batch.end, [code, -batch.weight, *words])
        elif len(finite):
            kept = [code[finite], -batch.weight[finite], *(word[finite] for word in words)]
            ends.add(batch.end[finite], kept)

    def due(self, frontier: int, keys: int, floor: int = NEVER) -> Steps:
        """Take out the steps before the frontier; codes are below `keys`. What happened before the
        floor counts as if it happened then."""
        found = [
            (number, events)
            for number, agendas in enumerate(self._agendas)
            for agenda in agendas
            if (events := agenda.due(frontier)).shape[1]
        ]
        if not found:
            return self._nothing
        pieces = [events for _, events in found]
        events = pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)
        if floor > NEVER:
            np.maximum(events[0], floor, out=events[0])
        if len(self._scratch) < keys:
            self._scratch = np.zeros(larger(len(self._scratch), keys), np.int64)
        order, bounds = ordered_steps(events[1], events[0], self._scratch)
        time, code, delta, *words = events.take(order, axis=1)
        port = np.zeros(len(order), np.int64)
        if len(self._agendas) > 1:
            numbers = [number for number, _ in found]
            port = np.repeat(numbers, [piece.shape[1] for piece in pieces])[order]
        return Steps(code, time, delta, port, words, bounds)

    def live(self) -> Ints:
        """The codes of events that lie ahead."""
        pieces = [piece[1] for agenda in self._each() for piece in agenda.pending()]
        return np.concatenate([np.empty(0, np.int64), *pieces])

    def renumber(self, renumbered: Ints) -> None:
        for agenda in self._each():
            for piece in agenda.pending():
                piece[1] = renumbered[piece[1]]

    def pending_words(self) -> Iterator[Ints]:
        """The words of the events that lie ahead, in pieces."""
        for agenda in self._each():
            for piece in agenda.pending():
                yield piece[3:]

    def live_words(self, port: int, word: int) -> Ints:
        """A word of the events of one input that lie ahead."""
        pieces = [p[3 + word] for agenda in self._agendas[port] for p in agenda.pending()]
        return np.concatenate([np.empty(0, np.int64), *pieces])

    def renumber_words(self, port: int, word: int, renumbered: Ints) -> None:
        for agenda in self._agendas[port]:
            for piece in agenda.pending():
                piece[3 + word] = renumbered[piece[3 + word]]

    def save(self) -> State:
        return {"agendas": [agenda.save() for agenda in self._each()]}

    def restore(self, state: State) -> None:
        for agenda, saved in zip(self._each(), state["agendas"], strict=True):
            agenda.restore(saved)
