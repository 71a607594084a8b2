"""Queues between the producers of streams and the thread of a query that reads them.

Each input of a query has its own queue; all share one lock. A producer wakes the query and blocks
while its queue is full. The query's next batch is everything that has arrived.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from millstream.checkpoint.spool import Spool
from millstream.connectors.intake.rows import joined, nothing, typed_rows
from millstream.logical.catalog import Stream
from millstream.model.records import BadRow, Checked, Records

# How much a queue holds before producers block. A heartbeat counts as a row.
CAPACITY = 1_000_000  # rows
CAPACITY_BYTES = 1 << 28

BATCH_BYTES = 1 << 27  # taken from a queue at once, approximately
LIST_ROWS = 16_384  # converted together


@dataclass(frozen=True)
class Beat:
    """No row before this instant will follow."""

    frontier: int


@dataclass(frozen=True)
class End:
    """The source has ended; `failure` is the error that ended it, if any. `for_now`: a later run
    may find more."""

    failure: Exception | None = None
    for_now: bool = False


Entry: TypeAlias = "Checked | Beat | End | list[Any]"  # a list: unconverted rows


@dataclass
class Queued:
    """An entry of a queue and its size."""

    entry: Entry
    rows: int = 0
    nbytes: int = 0

    @property
    def load(self) -> int:
        """In rows; entries without rows count as one."""
        return self.rows or 1

    @staticmethod
    def of(entry: Checked | Beat | End) -> Queued:
        if isinstance(entry, Checked):
            return Queued(entry, len(entry), entry.nbytes)
        return Queued(entry)


def row_bytes(row: object) -> int:
    """The approximate memory of the texts of an unconverted row."""
    values = row.values() if isinstance(row, dict) else row if isinstance(row, tuple | list) else ()
    return sum(len(value) for value in values if isinstance(value, str | bytes))


@dataclass
class Arrival:
    """What a query takes from a queue at once. The first `known` rows were read before a restart:
    the stream is replayed from its beginning."""

    records: Records
    bad: list[BadRow] = field(default_factory=list)
    frontier: int | None = None
    end: End | None = None
    known: int = 0

    def without(self, known: int) -> Arrival:
        """The arrival without its first rows, which are known."""
        bad = [BadRow(r.number - known, r.message, r.help) for r in self.bad if r.number > known]
        read = known - (len(self.bad) - len(bad))
        records = self.records.slice(read, len(self.records))
        return Arrival(records, bad, self.frontier, self.end, known)


class Inbox:
    """The lock and the conditions of one query's queues."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.work = threading.Condition(self.lock)  # something arrived, or the query must end
        self.room = threading.Condition(self.lock)  # something was taken
        self.stopping = False
        self.owner: threading.Thread | None = None


class Inlet:
    """One queue. After the query has ended, `offer` returns False."""

    def __init__(self, stream: Stream, inbox: Inbox, capacity: int = CAPACITY) -> None:
        self.stream = stream
        self.queued = 0  # rows
        self._load = 0  # rows and heartbeats
        self._bytes = 0
        self._inbox = inbox
        self._capacity = capacity
        self._entries: deque[Queued] = deque()
        self._nothing = nothing(stream)
        self.closed = False

    def __len__(self) -> int:
        return len(self._entries)

    def recover(self, received: int) -> int:
        """Called before anything is offered. Returns how many rows received before a restart will
        be offered again."""
        return received

    def await_room(self) -> None:
        """For producers that must not block in `offer`, because others wait for them."""
        with self._inbox.lock:
            self._has_room()

    def offer(self, entry: Checked | Beat | End, wait: bool = True) -> bool:
        """Append an entry to the queue, once there is room or, without `wait`, immediately."""
        with self._inbox.lock:
            if self.closed or (wait and not self._has_room()):
                return False
            self._put(entry)
        return True

    def _put(self, entry: Checked | Beat | End) -> None:
        """The caller holds the lock."""
        last = self._entries[-1].entry if self._entries else None
        if isinstance(entry, Beat) and isinstance(last, Beat):
            self._entries[-1].entry = Beat(max(last.frontier, entry.frontier))
        else:
            self._append(Queued.of(entry))
        self.closed = self.closed or isinstance(entry, End)
        self._inbox.work.notify()

    def _append(self, queued: Queued) -> None:
        self._entries.append(queued)
        self.queued += queued.rows
        self._load += queued.load
        self._bytes += queued.nbytes

    def offer_row(self, row: object) -> bool:
        """Append an unconverted row; many of them are converted together."""
        size = row_bytes(row)
        with self._inbox.lock:
            if not self._has_room():
                return False
            last = self._entries[-1] if self._entries else None
            if last is None or not isinstance(last.entry, list) or _is_full(last):
                self._append(Queued([row], 1, size))
            else:
                last.entry.append(row)
                last.rows += 1
                last.nbytes += size
                self.queued += 1
                self._load += 1
                self._bytes += size
            self._inbox.work.notify()
        return True

    def _has_room(self) -> bool:
        """Wait for room; False if the query has ended. The query itself never waits, since it alone
        makes room; neither does a producer before the query has started."""
        while self._is_full and not self.closed:
            if self._inbox.owner in (threading.current_thread(), None):
                break
            self._inbox.room.wait()
        return not self.closed

    @property
    def _is_full(self) -> bool:
        return self._load >= self._capacity or self._bytes >= CAPACITY_BYTES

    def close(self) -> None:
        """Accept nothing more; queued entries stay. The caller holds the lock."""
        self.closed = True

    def forget(self, received: int) -> None:
        """The first `received` rows will never be needed again."""

    def part(self) -> None:
        """After closing: wait for offers in progress."""

    def take(self, limit: int) -> Arrival:
        """The entries that have arrived, up to approximate limits of rows and bytes."""
        with self._inbox.lock:
            entries = self._popped(limit)
            self._inbox.room.notify_all()
        arrival = Arrival(self._nothing)
        parts: list[Records] = []
        for entry in entries:
            match entry:
                case Beat(frontier):
                    arrival.frontier = max(frontier, arrival.frontier or frontier)
                case End():
                    arrival.end = entry
                case _:
                    self._add(entry, parts, arrival.bad)
        arrival.records = joined(parts) if parts else arrival.records
        return arrival

    def _add(self, entry: Checked | list[Any], parts: list[Records], bad: list[BadRow]) -> None:
        if isinstance(entry, list):
            entry = Checked(*typed_rows(self.stream, entry))
        if entry.bad:
            before = sum(map(len, parts)) + len(bad)
            bad += [BadRow(before + row.number, row.message, row.help) for row in entry.bad]
        parts.append(entry.records)

    def _popped(self, limit: int) -> list[Entry]:
        entries: list[Entry] = []
        rows = size = 0
        while self._entries and rows < limit and size < BATCH_BYTES:
            first = self._entries[0]
            if entries and (rows + first.rows > limit or size + first.nbytes > BATCH_BYTES):
                break
            self._entries.popleft()
            entries.append(first.entry)
            rows += first.rows
            size += first.nbytes
            self._load -= first.load
        self.queued -= rows
        self._bytes -= size
        return entries


def _is_full(queued: Queued) -> bool:
    return queued.rows >= LIST_ROWS or queued.nbytes >= BATCH_BYTES


class SpooledInlet(Inlet):
    """A queue whose rows are written to the query's checkpoint before they are queued: offered rows
    are answered even after a crash."""

    def __init__(self, stream: Stream, inbox: Inbox, capacity: int, spool: Spool) -> None:
        super().__init__(stream, inbox, capacity)
        self._spool = spool
        self._turn = threading.Lock()  # keeps the order of spool and queue; nothing after an end

    def recover(self, received: int) -> int:
        with self._inbox.lock:
            for rows in self._spool.load(received):
                self._put(rows)
        return 0

    def offer(self, entry: Checked | Beat | End, wait: bool = True) -> bool:
        with self._inbox.lock:
            if wait and not isinstance(entry, End) and not self._has_room():
                return False
        with self._turn:  # never wait for room while holding it: the query may need it
            if self.closed:
                return False
            if isinstance(entry, Checked):
                self._spool.add(entry)
            with self._inbox.lock:
                self._put(entry)
        return True

    def offer_row(self, row: object) -> bool:
        return self.offer(Checked(*typed_rows(self.stream, [row])))

    def forget(self, received: int) -> None:
        self._spool.forget(received)

    def part(self) -> None:
        with self._turn:
            pass
