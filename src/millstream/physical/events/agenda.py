"""Future events: each has a time and some int64 words, and is due when the frontier passes it.

Two forms, depending on the update pattern of the input (G5 §5.3.2): a queue if events arrive in the
order in which they fall due, otherwise a calendar. Neither examines events that are not due: the
cost of a batch is proportional to its events and those that fall due.

>>> agenda = CalendarAgenda(words=1)
>>> agenda.add(np.array([25, 3, 12]), [np.array([1, 2, 3])])
>>> [part.tolist() for part in agenda.due(13)]
[[3, 12], [2, 3]]
>>> len(agenda)
1
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Ints, Mask, State
from millstream.physical.kernels.scans import ascends, greatest, least

_FEW = 256  # events


class Agenda(ABC):
    """`words` is the number of words per event besides its time."""

    def __init__(self, words: int) -> None:
        self.words = words
        self._looked_at = 0
        self._nothing: Ints = np.empty((words + 1, 0), np.int64)

    def _parts(self) -> Sequence[Agenda]:
        """Nested agendas that hold some of the events."""
        return ()

    @property
    def touched(self) -> int:
        """How many events were examined so far."""
        return self._looked_at + sum(part.touched for part in self._parts())

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def nbytes(self) -> int: ...

    @abstractmethod
    def add(self, times: Ints, words: Sequence[Ints]) -> None: ...

    @abstractmethod
    def due(self, frontier: int) -> Ints:
        """Remove and return the events before the frontier, in order of time, as rows: times, then
        words."""

    @abstractmethod
    def pending(self) -> list[Ints]:
        """All future events, as stored; changes to these arrays are kept."""

    def save(self) -> State:
        return {"events": np.concatenate([self._nothing, *self.pending()], axis=1)}

    def restore(self, state: State) -> None:
        events = state["events"]
        self.add(events[0], list(events[1:]))


class Queue(Agenda):
    """Events that arrive in order of time: the due ones are a prefix."""

    def __init__(self, words: int) -> None:
        super().__init__(words)
        self._events = np.empty((words + 1, 64), np.int64)
        self._head = self._tail = 0

    def __len__(self) -> int:
        return self._tail - self._head

    @property
    def nbytes(self) -> int:
        return self._events.nbytes

    def add(self, times: Ints, words: Sequence[Ints]) -> None:
        length = len(times)
        if self._tail + length > self._events.shape[1]:
            self._make_room(length)
        place = slice(self._tail, self._tail + length)
        self._events[0, place] = times
        for number, word in enumerate(words, 1):
            self._events[number, place] = word
        self._tail += length

    def _make_room(self, length: int) -> None:
        """Move to the front if that frees a third, otherwise to a larger buffer; to a smaller one
        after a burst."""
        live = len(self)
        capacity = self._events.shape[1]
        if not capacity // 4 <= live + length <= capacity * 2 // 3:
            capacity = max(64, (live + length) * 3 // 2)
        events = np.empty((self.words + 1, capacity), np.int64)
        events[:, :live] = self._events[:, self._head : self._tail]
        self._events, self._head, self._tail = events, 0, live

    def due(self, frontier: int) -> Ints:
        count = int(self._events[0, self._head : self._tail].searchsorted(frontier))
        if not count:
            return self._nothing
        taken = self._events[:, self._head : self._head + count].copy()
        self._head += count
        self._looked_at += count
        return taken

    def pending(self) -> list[Ints]:
        return [self._events[:, self._head : self._tail]]


class CalendarAgenda(Agenda):
    """Events in any order, in partitions of equal width that fall due one after the other. A batch
    that is later than everything in a queue is sorted and appended to it; other new events are
    placed into partitions once there are many.

    The width doubles when there are more than `partitions` partitions, so it adapts to how far
    ahead events are. More partitions mean less to sort at a time, and more pieces to keep (G5
    compares 10 and 50). A large partition that the frontier has entered becomes a nested calendar
    with narrower partitions, so that its events are not examined repeatedly.
    """

    def __init__(self, words: int, partitions: int = 64) -> None:
        super().__init__(words)
        self._width = 1
        self._most = partitions
        self._partitions: dict[int, list[Ints]] = {}
        self._first = INFINITY  # no event in a partition is due before
        self._near: CalendarAgenda | None = None  # the events before `near_until`
        self._near_until = NEVER
        self._queue = Queue(words)
        self._queued = NEVER  # the largest time in the queue
        self._arrived: list[Ints] = []  # not placed yet
        self._first_arrived = INFINITY
        self._arrivals = 0
        self._overdue: list[Ints] = []  # arrived after the frontier had passed them
        self._passed = NEVER + 1
        self._length = 0  # without the queue and `near`

    def _parts(self) -> Sequence[Agenda]:
        return [self._queue] if self._near is None else [self._queue, self._near]

    def __len__(self) -> int:
        return self._length + sum(map(len, self._parts()))

    @property
    def nbytes(self) -> int:
        pieces = (piece for pieces in self._partitions.values() for piece in pieces)
        own = sum(piece.nbytes for piece in (*pieces, *self._arrived, *self._overdue))
        return own + sum(part.nbytes for part in self._parts())

    def add(self, times: Ints, words: Sequence[Ints]) -> None:
        length = len(times)
        if not length:
            return
        first = least(times)
        if not len(self._queue) or first >= self._queued:
            if not ascends(times):
                order = np.argsort(times, kind="stable")
                times, words = times[order], [word[order] for word in words]
            self._queue.add(times, words)
            self._queued = int(times[-1])
            return
        if self._arrivals >= _FEW:
            self._overdue.append(self._arrivals_due(self._passed))
        self._arrived.append(np.array([times, *words]))
        self._first_arrived = min(self._first_arrived, first)
        self._arrivals += length
        self._length += length

    def _arrivals_due(self, frontier: int) -> Ints:
        """Remove and return the new events that are due; place the rest if there are many."""
        events = _joined(self._arrived)
        self._arrived, self._first_arrived, self._arrivals = [], INFINITY, 0
        is_due = events[0] < frontier
        if not is_due.all():
            left, events = _where(events, ~is_due), _where(events, is_due)
            if left.shape[1] >= _FEW:
                self._place(left)
            else:
                self._arrived, self._arrivals = [left], left.shape[1]
                self._first_arrived = least(left[0])
        self._looked_at += events.shape[1]
        return events

    def _place(self, events: Ints) -> None:
        if self._near is not None:
            near = events[0] < self._near_until
            self._add_near(_where(events, near))
            events = _where(events, ~near)
        if events.shape[1]:
            self._place_ahead(events)

    def _add_near(self, events: Ints) -> None:
        assert self._near is not None
        self._length -= events.shape[1]
        self._near.add(events[0], list(events[1:]))

    def _place_ahead(self, events: Ints) -> None:
        times = events[0]
        first, last = least(times), greatest(times)
        self._first = min(self._first, first)
        self._widen(first, last)
        numbers = times // self._width
        if numbers.min() == numbers.max():
            self._put(int(numbers[0]), events)
            return
        order = np.argsort(numbers, kind="stable")
        numbers, events = numbers[order], events[:, order]
        cuts = np.flatnonzero(np.diff(numbers)) + 1
        for number, piece in zip(
            numbers[np.concatenate([[0], cuts])].tolist(),
            np.split(events, cuts, axis=1),
            strict=True,
        ):
            self._put(number, piece.copy())

    def _put(self, number: int, piece: Ints) -> None:
        pieces = self._partitions.setdefault(number, [])
        if pieces and pieces[-1].shape[1] < _FEW:  # avoids many tiny pieces
            pieces[-1] = np.concatenate([pieces[-1], piece], axis=1)
        else:
            pieces.append(piece)

    def _widen(self, first: int, last: int) -> None:
        """Widen partitions until old and new events need few of them."""
        first = min([first // self._width, *self._partitions])
        last = max([last // self._width, *self._partitions])
        while last - first >= self._most:
            self._width, first, last = 2 * self._width, first // 2, last // 2
            halved: dict[int, list[Ints]] = {}
            for number, pieces in self._partitions.items():
                halved.setdefault(number // 2, []).extend(pieces)
            self._partitions = halved

    def due(self, frontier: int) -> Ints:
        self._passed = max(self._passed, frontier)
        if not self._length and self._near is None:
            return self._queue.due(frontier)
        taken, self._overdue = self._overdue, []
        if frontier > self._first_arrived or self._arrivals >= _FEW:
            taken.append(self._arrivals_due(frontier))
        if frontier > self._first:
            taken += self._due_partitions(frontier)
        self._length -= sum(events.shape[1] for events in taken)
        taken += [part.due(frontier) for part in self._parts()]
        taken = [events for events in taken if events.shape[1]]
        if not taken:
            return self._nothing
        events = _joined(taken)
        if ascends(events[0]):
            return events
        return events[:, np.argsort(events[0], kind="stable")]

    def _due_partitions(self, frontier: int) -> list[Ints]:
        """Remove and return the due events of partitions; the rest of a large one moves to
        `near`."""
        last = frontier // self._width
        taken, first = [], NEVER
        for number in [n for n in self._partitions if n <= last]:
            events = _joined(self._partitions.pop(number))
            self._looked_at += events.shape[1]
            if number == last:
                is_due = events[0] < frontier
                events, left = _where(events, is_due), _where(events, ~is_due)
                if left.shape[1] > max(_FEW, events.shape[1]):
                    self._open(left, (last + 1) * self._width)
                elif left.shape[1]:
                    self._partitions[number] = [left]
                    first = least(left[0])
            taken.append(events)
        self._first = max(first, min(self._partitions, default=INFINITY) * self._width)
        return taken

    def _open(self, events: Ints, until: int) -> None:
        self._near = self._near or CalendarAgenda(self.words, self._most)
        self._near_until = until
        self._add_near(events)

    def pending(self) -> list[Ints]:
        pieces = (piece for pieces in self._partitions.values() for piece in pieces)
        parts = (piece for part in self._parts() for piece in part.pending())
        return [*parts, *self._arrived, *self._overdue, *pieces]


def _joined(pieces: Sequence[Ints]) -> Ints:
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)


def _where(events: Ints, mask: Mask) -> Ints:
    taken: Ints = events.take(mask.nonzero()[0], axis=1)
    return taken
