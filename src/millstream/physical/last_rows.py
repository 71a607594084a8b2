"""The sweep of the last rows of each key: what aggregates over count windows are made of.

As in a `Sweep`, a row that comes is an event of its key; but it goes when a number of others have
come after it, so its end is no event that lies ahead. Rows wait until the frontier has passed
them, since those of one instant come in an order of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from millstream.physical.arrays import larger, of_int64, view
from millstream.physical.batch import Batch, Columns, Ints, State, are_ones
from millstream.physical.kernels.count_window import slide_window, slide_windows
from millstream.physical.kernels.looks import climbs
from millstream.physical.kernels.steps import instants_by_key, order_by_key
from millstream.physical.ordering import one_by_one
from millstream.physical.slots import Slots
from millstream.physical.sweep import Exchanges, Steps
from millstream.physical.waiting import Waiting


class LastRows:
    """The last `rows` rows of each key, of which `words` are kept; `keyed` unless all have one key.
    The columns of its batches are what rows of one instant are ordered by."""

    def __init__(self, rows: int, words: int, keyed: bool) -> None:
        self._waiting = Waiting()
        self._width = words + 1  # the first word is the key
        self._queues: _Queues = (_QueueByKey if keyed else _OneQueue)(rows, self._width)
        self._nothing = Steps.none(words)
        self.touched = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._queues)

    @property
    def nbytes(self) -> int:
        return self._waiting.nbytes + self._queues.nbytes

    def add(self, code: Ints, batch: Batch, words: Sequence[Ints]) -> None:
        """Take in a batch of which nothing is due."""
        if len(batch):
            self._waiting.add(self._packed(code, batch, words))

    def swept(
        self, code: Ints, batch: Batch, words: Sequence[Ints], keys: int
    ) -> Steps | Exchanges:
        """Take in a batch, and take out the steps before its frontier; codes are below `keys`."""
        going = self._in_turn(batch)
        if going:
            waited = self._waiting.emptied()
            self._add_from(going, code, batch, words)
        else:
            packed = self._packed(code, batch, words) if len(batch) else batch
            waited = self._waiting.passed(packed)
        waited = [one_by_one(part, part.columns[self._width :]) for part in waited]
        times = [part.start for part in waited]
        parts = [[view(column) for column in part.columns[: self._width]] for part in waited]
        if going:
            times.append(batch.start[:going])
            parts.append([word[:going] for word in (code, *words)])
        if not parts:
            return self._nothing
        joined = times[0] if len(times) == 1 else np.concatenate(times)
        self.touched += len(joined)
        return self._queues.slide(joined, parts, keys)

    def _in_turn(self, batch: Batch) -> int:
        """How many rows go on as they stand, after all that wait: as a rule all but the last."""
        start = batch.start
        if not len(start) or self._waiting.latest >= start[0]:
            return 0
        if not climbs(start) or not are_ones(batch.weight):
            return 0
        return int(start.searchsorted(batch.frontier))

    def _add_from(self, first: int, code: Ints, batch: Batch, words: Sequence[Ints]) -> None:
        """Let the rows from one on wait."""
        if first < len(batch):
            rest = batch.take(np.arange(first, len(batch)))
            self.add(code[first:], rest, [word[first:] for word in words])

    def _packed(self, code: Ints, batch: Batch, words: Sequence[Ints]) -> Batch:
        own = Columns.of(map(of_int64, (code, *words)))
        return Batch(own + batch.columns, batch.start, batch.end, batch.weight, batch.frontier)

    def live(self) -> Ints:
        """The codes of rows that wait; those of the others have a row anyhow."""
        return np.concatenate([np.empty(0, np.int64), *(words[0] for words in self._held())])

    def renumber(self, renumbered: Ints) -> None:
        self._queues.renumber(renumbered)
        for waiting in self._waiting.batches:
            code = of_int64(renumbered[view(waiting.columns[0])])
            waiting.columns = Columns.of([code]) + waiting.columns[1:]

    def pending_words(self) -> Iterator[Ints]:
        """The words of the rows that are here, in pieces."""
        for words in self._held():
            yield words[1:]

    def _held(self) -> Iterator[Ints]:
        for waiting in self._waiting.batches:
            yield np.stack([view(column) for column in waiting.columns[: self._width]])
        yield self._queues.held()

    def save(self) -> State:
        return {"waiting": self._waiting.save(), "queues": self._queues.save()}

    def restore(self, state: State) -> None:
        self._waiting.restore(state["waiting"])
        self._queues.restore(state["queues"])


Words: TypeAlias = Sequence[Ints]  # of some rows; the first are their keys


class _Queues(ABC):
    """The words of the rows of the windows."""

    @abstractmethod
    def __init__(self, rows: int, width: int) -> None: ...

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def nbytes(self) -> int: ...

    @abstractmethod
    def slide(self, times: Ints, parts: Sequence[Words], keys: int) -> Steps | Exchanges:
        """Take in rows in order of time, whose words come in a few parts."""

    @abstractmethod
    def held(self) -> Ints: ...

    @abstractmethod
    def renumber(self, renumbered: Ints) -> None: ...

    @abstractmethod
    def save(self) -> State: ...

    @abstractmethod
    def restore(self, state: State) -> None: ...


class _OneQueue(_Queues):
    """Rows one after the other in an array, moved to its front when they have reached its end."""

    def __init__(self, rows: int, width: int) -> None:
        self._rows = rows
        self._words = np.zeros((width - 1, 64), np.int64)  # keys are all the same
        self._first = self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        return self._words.nbytes

    def slide(self, times: Ints, parts: Sequence[Words], keys: int) -> Steps | Exchanges:
        first, held = self._make_room(len(times)), self._count
        end = first + held
        for code, *words in parts:
            begin, end = end, end + len(code)
            for row, word in zip(self._words, words, strict=True):
                row[begin:end] = word
        self._count = min(held + len(times), self._rows)
        self._first = end - self._count
        if held == self._rows and climbs(times):
            came = self._words[:, first + held : end]
            return Exchanges(times, list(came), list(self._words[:, first : end - held]))
        place, time, delta, bounds = slide_window(times, first, held, self._rows)
        told = [row[place] for row in self._words]
        return Steps(np.zeros(len(place), np.int64), time, delta, told, bounds)

    def _make_room(self, count: int) -> int:
        """Gives the place of the first row."""
        if self._first + self._count + count > self._words.shape[1]:
            held = self._held()
            least = 2 * self._count + count  # so that moving is cheap in the long run
            if self._words.shape[1] < least:
                self._words = np.zeros((len(held), larger(self._words.shape[1], least)), np.int64)
            self._words[:, : self._count] = held
            self._first = 0
        return self._first

    def _held(self) -> Ints:
        return self._words[:, self._first : self._first + self._count].copy()

    def held(self) -> Ints:
        return np.vstack([np.zeros(self._count, np.int64), self._held()])

    def renumber(self, renumbered: Ints) -> None:
        assert len(renumbered) == 2, "there is one key"

    def save(self) -> State:
        return {"words": self._held()}

    def restore(self, state: State) -> None:
        self._words = state["words"].copy()
        self._first, self._count = 0, self._words.shape[1]


class _QueueByKey(_Queues):
    """A list of rows for each key: the next one of each row, by slot."""

    def __init__(self, rows: int, width: int) -> None:
        self._rows = rows
        self._slots = Slots()
        self._words = np.zeros((width, 64), np.int64)
        self._following = np.full(64, -1, np.int64)
        self._arrived, self._oldest_number = np.zeros((2, 64), np.int64)  # by key
        self._oldest, self._latest, self._unseen = np.full((3, 64), -1, np.int64)
        self._scratch = np.zeros(64, np.int64)

    def __len__(self) -> int:
        return self._slots.used

    @property
    def nbytes(self) -> int:
        own = self._words.nbytes + self._following.nbytes + 6 * self._arrived.nbytes
        return own + self._slots.nbytes

    def slide(self, times: Ints, parts: Sequence[Words], keys: int) -> Steps:
        self._make_room(len(times), keys)
        words = [np.concatenate(word) for word in zip(*parts, strict=True)]
        stored = self._slots.used
        slots = self._slots.take(len(times))
        for row, word in zip(self._words, words, strict=True):
            row[slots] = word
        order = order_by_key(words[0], self._scratch)
        slot, time, delta, freed = slide_windows(
            words[0][order], times[order], slots[order], stored, self._rows, 1,
            self._arrived, self._oldest, self._oldest_number, self._latest, self._unseen,
            self._following,
        )  # fmt: skip
        code, *told = (row[slot] for row in self._words)
        self._slots.release(freed)
        return Steps(code, time, delta, told, instants_by_key(code, time))

    def _make_room(self, count: int, keys: int) -> None:
        lacking = self._slots.lacking(count)
        if lacking:
            capacity = larger(self._slots.capacity, self._slots.capacity + lacking)
            more = capacity - self._slots.capacity
            self._words = np.pad(self._words, ((0, 0), (0, more)))
            self._following = np.append(self._following, np.full(more, -1))
            self._slots.grow(capacity)
        if len(self._arrived) < keys:
            self._move(np.arange(len(self._arrived)), larger(len(self._arrived), keys))

    def _move(self, old: Ints, capacity: int) -> None:
        """Key i was old[i]."""
        more = capacity - len(old)
        for name in _BY_KEY:
            nothing = 0 if name in ("_arrived", "_oldest_number") else -1
            setattr(self, name, np.append(getattr(self, name)[old], np.full(more, nothing)))
        self._scratch = np.zeros(capacity, np.int64)

    def held(self) -> Ints:
        return self._words[:, self._slots.in_use()]

    def renumber(self, renumbered: Ints) -> None:
        used = self._slots.in_use()
        self._words[0, used] = renumbered[self._words[0, used]]
        self._move(np.flatnonzero(renumbered >= 0), len(self._arrived))

    def save(self) -> State:
        used = self._slots.in_use()
        arrays = {name: getattr(self, name).copy() for name in (*_BY_KEY, "_following")}
        return {"used": used, "words": self._words[:, used], "arrays": arrays}

    def restore(self, state: State) -> None:
        for name, array in state["arrays"].items():
            setattr(self, name, array)
        self._scratch = np.zeros(len(self._arrived), np.int64)
        self._words = np.zeros((len(self._words), len(self._following)), np.int64)
        self._words[:, state["used"]] = state["words"]
        self._slots.grow(len(self._following))
        self._slots.occupy(state["used"])


_BY_KEY = ("_arrived", "_oldest_number", "_oldest", "_latest", "_unseen")
