"""Timelines: the future events of one or more inputs, in order of time.

The weight of a row is added to its key at its start and subtracted at its end. Events wait until
the frontier has passed them; due events are returned as steps, one per instant and key. So no
operator ever sees a partial instant, and signed and positive elements are treated alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch, Ints, State
from millstream.physical.events.agenda import CalendarAgenda
from millstream.physical.kernels.timeline import in_order


@dataclass(slots=True)
class TimeSteps:
    """Due events, sorted by time and key; step j is the events from bounds[j] to bounds[j + 1]."""

    code: Ints
    time: Ints
    delta: Ints
    port: Ints  # the input of an event
    words: Sequence[Ints]
    bounds: Ints

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def step_code(self) -> Ints:
        return self.code[self.bounds[:-1]]

    @property
    def step_time(self) -> Ints:
        return self.time[self.bounds[:-1]]


class EventQueue:
    """Events that arrive in order of time, 12 bytes each: the due ones are a prefix. Words are the
    code of the key and others of at most 4 bytes; changes are stored only after the first unusual
    one.

    >>> queue = EventQueue(usual=1, words=1)
    >>> queue.add(np.array([3, 12]), [np.array([7, 8]), np.array([1, 1])])
    >>> [np.atleast_1d(part).tolist() for part in queue.due(10)]
    [[3], [7], [1]]
    """

    def __init__(self, usual: int, words: int) -> None:
        self._usual = np.array(usual)
        self._times = np.empty(64, np.int64)
        self._words = np.empty((words, 64), np.int32)
        self._changes: Ints | None = None
        self._head = self._tail = 0
        self.touched = 0  # events examined so far

    def __len__(self) -> int:
        return self._tail - self._head

    @property
    def nbytes(self) -> int:
        changes = 0 if self._changes is None else self._changes.nbytes
        return self._times.nbytes + self._words.nbytes + changes

    def add(self, times: Ints, words: Sequence[Ints]) -> None:
        """Words are the code, the change, and others."""
        code, change, *others = words
        if self._tail + len(times) > len(self._times):
            self._make_room(len(times))
        place = slice(self._tail, self._tail + len(times))
        self._times[place] = times
        for number, word in enumerate((code, *others)):
            self._words[number, place] = word
        if self._changes is None and (change != self._usual).any():
            self._changes = np.full(len(self._times), self._usual, np.int64)
        if self._changes is not None:
            self._changes[place] = change
        self._tail += len(times)

    def _make_room(self, length: int) -> None:
        """Move to the front, or to another buffer if that frees too little or after a burst."""
        wanted = len(self) + length
        capacity = len(self._times)
        if not wanted + wanted // 16 <= capacity <= 4 * wanted:
            capacity = max(64, wanted + wanted // 8)
        self._times = self._moved(self._times, capacity)
        self._words = self._moved(self._words, capacity)
        if self._changes is not None:
            self._changes = self._moved(self._changes, capacity)
        self._head, self._tail = 0, len(self)

    def _moved(self, array: NDArray[Any], capacity: int) -> NDArray[Any]:
        live = array[..., self._head : self._tail]
        if array.shape[-1] != capacity:
            array = np.empty((*array.shape[:-1], capacity), array.dtype)
        array[..., : len(self)] = live
        return array

    def due(self, frontier: int) -> Sequence[NDArray[Any]]:
        """Remove and return the events before the frontier: times, then words, valid until the next
        change."""
        count = int(self._times[self._head : self._tail].searchsorted(frontier))
        taken = self._events(count)
        self._head += count
        self.touched += count
        return taken

    def _events(self, count: int) -> Sequence[NDArray[Any]]:
        """The next events, as stored; a single change for all if it is the usual one."""
        place = slice(self._head, self._head + count)
        change = self._usual if self._changes is None else self._changes[place]
        code, *others = self._words[:, place]
        return [self._times[place], code, change, *others]

    def pending(self, number: int) -> NDArray[np.int32]:
        """A word of the future events, the code or another one, for modification."""
        return self._words[number, self._head : self._tail]

    def save(self) -> State:
        events = np.empty((2 + len(self._words), len(self)), np.int64)
        for row, part in zip(events, self._events(len(self)), strict=True):
            row[:] = part
        return {"events": events}

    def restore(self, state: State) -> None:
        events = state["events"]
        self.add(events[0], list(events[1:]))


class Timeline:
    """`ordered` says per input whether its elements arrive in order of start and of end: then
    queues hold its events, otherwise a calendar. Further words may distinguish rows of one key;
    they are returned with each event."""

    def __init__(self, ordered: Sequence[bool], words: int = 0) -> None:
        self._words = words
        self._agendas: list[list[EventQueue | CalendarAgenda]] = [
            [EventQueue(1, words + 1), EventQueue(-1, words + 1)]
            if queue
            else [CalendarAgenda(words + 2)]
            for queue in ordered
        ]

    def _each(self) -> Iterator[EventQueue | CalendarAgenda]:
        return (agenda for agendas in self._agendas for agenda in agendas)

    def __len__(self) -> int:
        return sum(map(len, self._each()))

    @property
    def nbytes(self) -> int:
        return sum(agenda.nbytes for agenda in self._each())

    @property
    def touched(self) -> int:
        """How many events were examined so far."""
        return sum(agenda.touched for agenda in self._each())

    def add(self, port: int, code: Ints, batch: Batch, words: Sequence[Ints] = ()) -> None:
        """The events of a batch whose rows have these keys."""
        if not len(code):
            return
        starts, ends = self._agendas[port][0], self._agendas[port][-1]
        starts.add(batch.start, [code, batch.weight, *words])
        finite = batch.end < INFINITY
        if finite.all():
            ends.add(batch.end, [code, -batch.weight, *words])
        elif finite.any():
            kept = [code[finite], -batch.weight[finite], *(word[finite] for word in words)]
            ends.add(batch.end[finite], kept)

    def due(self, frontier: int, floor: int = NEVER) -> TimeSteps:
        """Remove and return the steps before the frontier, in order of time, then key. Events
        before the floor count as if they happened at the floor."""
        taken = [
            (port, piece)
            for port, agendas in enumerate(self._agendas)
            for agenda in agendas
            if len((piece := agenda.due(frontier))[0])
        ]
        bounds = np.cumsum([0, *(len(piece[0]) for _, piece in taken)])
        events = np.empty((4 + self._words, bounds[-1]), np.int64)
        for (port, piece), first, last in zip(taken, bounds[:-1], bounds[1:], strict=True):
            time, code, change, *words = piece
            for row, values in enumerate((time, code, change, port, *words)):
                events[row, first:last] = values
        if floor > NEVER:
            np.maximum(events[0], floor, out=events[0])
        (time, code, delta, ports, *words), steps = in_order(events, bounds)
        return TimeSteps(code, time, delta, ports, words, steps)

    def _pending(
        self, agendas: Sequence[EventQueue | CalendarAgenda], number: int
    ) -> list[NDArray[Any]]:
        """A word of the events, in pieces: number 0 is the code."""
        place = 3 + number - 1 if number else 1
        pieces: list[NDArray[Any]] = []
        for agenda in agendas:
            if isinstance(agenda, EventQueue):
                pieces.append(agenda.pending(number))
            else:
                pieces += [piece[place] for piece in agenda.pending()]
        return pieces

    def live(self) -> Ints:
        """The codes of future events."""
        return np.concatenate([np.empty(0, np.int64), *self._pending(list(self._each()), 0)])

    def renumber(self, renumbered: Ints) -> None:
        for codes in self._pending(list(self._each()), 0):
            codes[:] = renumbered[codes]

    def live_words(self, port: int, word: int) -> Ints:
        """A word of the future events of one input."""
        pieces = self._pending(self._agendas[port], word + 1)
        return np.concatenate([np.empty(0, np.int64), *pieces])

    def renumber_words(self, port: int, word: int, renumbered: Ints) -> None:
        for words in self._pending(self._agendas[port], word + 1):
            words[:] = renumbered[words]

    def save(self) -> State:
        return {"agendas": [agenda.save() for agenda in self._each()]}

    def restore(self, state: State) -> None:
        for agenda, saved in zip(self._each(), state["agendas"], strict=True):
            agenda.restore(saved)
