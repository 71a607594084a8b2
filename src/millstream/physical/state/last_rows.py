"""The sweep over the last rows of each key, for aggregates over count windows.

As in a `Sweep`, a new row is an event of its key; but it leaves when a number of others have come
after it, so its end is not a future event. Rows wait until the frontier has passed them, since
those of one instant have an order of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from millstream.model.arrays import larger, of_int64, view
from millstream.physical.batch import Batch, Columns, Ints, State, are_ones
from millstream.physical.events.sweep import Exchanges, KeySteps
from millstream.physical.kernels.count_window import slide_window, slide_windows
from millstream.physical.kernels.scans import climbs
from millstream.physical.kernels.steps import instants_by_key, order_by_key
from millstream.physical.ordering import one_by_one
from millstream.physical.state.slots import Slots
from millstream.physical.state.waiting import Waiting


class LastRows:
    """The last `rows` rows of each key, with their `words`; `keyed` unless there is a single key.
    The columns of its batches are the sort columns of rows of one instant."""

    def __init__(self, rows: int, words: int, keyed: bool) -> None:
        self._waiting = Waiting()  # columns: words, then sort columns
        self._rest: _Rest | None = None  # of the last batch, if no others wait
        self._width = words + 1  # the first word is the key
        self._queues: _Queues = (_QueueByKey if keyed else _OneQueue)(rows, self._width)
        self._nothing = KeySteps.none(words)
        self.touched = 0

    def __len__(self) -> int:
        rest = 0 if self._rest is None else len(self._rest.rows)
        return len(self._waiting) + rest + len(self._queues)

    @property
    def nbytes(self) -> int:
        rest = 0 if self._rest is None else self._rest.nbytes
        return self._waiting.nbytes + rest + self._queues.nbytes

    def add(self, code: Ints, batch: Batch, words: Sequence[Ints]) -> None:
        """Add a batch without due rows."""
        if len(batch):
            self._packed_rest().add(_packed(batch, (code, *words)))

    def swept(
        self, code: Ints, batch: Batch, words: Sequence[Ints], keys: int
    ) -> KeySteps | Exchanges:
        """Add a batch, and return the steps before its frontier; codes are below `keys`."""
        going = self._in_turn(batch)
        if going:
            parts = self._parts_that_waited()
            parts.append(_Part(batch.start[:going], [word[:going] for word in (code, *words)]))
            self._rest = _Rest.of(batch, (code, *words), going)
        else:
            packed = _packed(batch, (code, *words)) if len(batch) else batch
            parts = self._parts(self._packed_rest().passed(packed))
        if not parts:
            return self._nothing
        steps = self._queues.slide(parts, keys)
        self.touched += sum(len(part.times) for part in parts)
        return steps

    def _in_turn(self, batch: Batch) -> int:
        """How many rows pass directly, after all that wait: usually all but the last."""
        start = batch.start
        latest = self._waiting.latest if self._rest is None else self._rest.rows.start[-1]
        if not len(start) or latest >= start[0]:
            return 0
        if not climbs(start) or not are_ones(batch.weight):
            return 0
        return int(start.searchsorted(batch.frontier))

    def _parts_that_waited(self) -> list[_Part]:
        """Remove and return all waiting rows."""
        if self._rest is None:
            return self._parts(self._waiting.emptied())
        rest, self._rest = self._rest, None
        return [_Part(rest.rows.start, rest.words)]

    def _parts(self, waited: Sequence[Batch]) -> list[_Part]:
        ordered = (one_by_one(batch, batch.columns[self._width :]) for batch in waited)
        return [
            _Part(batch.start, [view(column) for column in batch.columns[: self._width]])
            for batch in ordered
        ]

    def _packed_rest(self) -> Waiting:
        """All waiting rows, moved to where they are examined one by one."""
        if self._rest is not None:
            rest, self._rest = self._rest, None
            self._waiting.add(_packed(rest.rows, rest.words))
        return self._waiting

    def live(self) -> Ints:
        """The codes of waiting rows; the others have a row in a window anyway."""
        return np.concatenate([np.empty(0, np.int64), *(words[0] for words in self._held())])

    def renumber(self, renumbered: Ints) -> None:
        self._queues.renumber(renumbered)
        for waiting in self._packed_rest().batches:
            code = of_int64(renumbered[view(waiting.columns[0])])
            waiting.columns = Columns.of([code]) + waiting.columns[1:]

    def pending_words(self) -> Iterator[Ints]:
        """The words of all rows held, in pieces."""
        for words in self._held():
            yield words[1:]

    def _held(self) -> Iterator[Ints]:
        for waiting in self._packed_rest().batches:
            yield np.stack([view(column) for column in waiting.columns[: self._width]])
        yield self._queues.held()

    def save(self) -> State:
        return {"waiting": self._packed_rest().save(), "queues": self._queues.save()}

    def restore(self, state: State) -> None:
        self._rest = None
        self._waiting.restore(state["waiting"])
        self._queues.restore(state["queues"])


def _packed(batch: Batch, words: Sequence[Ints]) -> Batch:
    """The words as columns before the others."""
    own = Columns.of(map(of_int64, words))
    return Batch(own + batch.columns, batch.start, batch.end, batch.weight, batch.frontier)


@dataclass(slots=True)
class _Rest:
    """Some rows with distinct times, and their words."""

    rows: Batch
    words: Sequence[Ints]

    @property
    def nbytes(self) -> int:
        columns = sum(int(array.nbytes) for array in self.rows.columns)
        return 8 * len(self.rows) * (3 + len(self.words)) + columns

    @staticmethod
    def of(batch: Batch, words: Sequence[Ints], first: int) -> _Rest | None:
        """The rows from `first` on, without keeping the others in memory; None if there are
        none."""
        if first == len(batch):
            return None
        return _Rest(batch.tail(first).gathered(), [word[first:].copy() for word in words])


@dataclass(slots=True)
class _Part:
    """Rows in order of time; the first of their words are their keys."""

    times: Ints
    words: Sequence[Ints]


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
    def slide(self, parts: Sequence[_Part], keys: int) -> KeySteps | Exchanges:
        """Add rows, part by part."""

    @abstractmethod
    def held(self) -> Ints: ...

    @abstractmethod
    def renumber(self, renumbered: Ints) -> None: ...

    @abstractmethod
    def save(self) -> State: ...

    @abstractmethod
    def restore(self, state: State) -> None: ...


_ROOM = np.zeros(1, np.int64)


class _OneQueue(_Queues):
    """Rows in an array, moved to its front when they reach its end."""

    def __init__(self, rows: int, width: int) -> None:
        self._rows = rows
        self._words = np.zeros((width - 1, 64), np.int64)  # there is only one key
        self._first = self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        return self._words.nbytes

    def slide(self, parts: Sequence[_Part], keys: int) -> KeySteps | Exchanges:
        times = np.concatenate([_ROOM, *(part.times for part in parts)])
        count, held = len(times) - 1, self._count
        first = self._make_room(count)
        end = first + held
        for part in parts:
            begin, end = end, end + len(part.times)
            for row, word in zip(self._words, part.words[1:], strict=True):
                row[begin:end] = word
        self._count = min(held + count, self._rows)
        self._first = end - self._count
        if held == self._rows and climbs(times[1:]):
            came = self._words[:, first + held : end]
            return Exchanges(times, list(came), list(self._words[:, first : end - held]))
        place, time, delta, bounds = slide_window(times[1:], first, held, self._rows)
        told = [row[place] for row in self._words]
        return KeySteps(np.zeros(len(place), np.int64), time, delta, told, bounds)

    def _make_room(self, count: int) -> int:
        """Returns the place of the first new row."""
        if self._first + self._count + count > self._words.shape[1]:
            held = self._held()
            least = 2 * self._count + count  # amortizes moving
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
    """A linked list of rows per key: the next row, by slot."""

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

    def slide(self, parts: Sequence[_Part], keys: int) -> KeySteps:
        times = np.concatenate([part.times for part in parts])
        self._make_room(len(times), keys)
        words = [np.concatenate(word) for word in zip(*(part.words for part in parts), strict=True)]
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
        return KeySteps(code, time, delta, told, instants_by_key(code, time))

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
        arrays = {name: getattr(self, f"_{name}").copy() for name in _SAVED}
        return {"used": used, "words": self._words[:, used], "arrays": arrays}

    def restore(self, state: State) -> None:
        for name in _SAVED:
            setattr(self, f"_{name}", state["arrays"][name])
        self._scratch = np.zeros(len(self._arrived), np.int64)
        self._words = np.zeros((len(self._words), len(self._following)), np.int64)
        self._words[:, state["used"]] = state["words"]
        self._slots.grow(len(self._following))
        self._slots.occupy(state["used"])


_BY_KEY = ("_arrived", "_oldest_number", "_oldest", "_latest", "_unseen")

# Arrays by key and by slot, as a checkpoint names them.
_SAVED = ("arrived", "oldest_number", "oldest", "latest", "unseen", "following")
