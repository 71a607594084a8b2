"""What tests of running queries share: a clock they move, sources that END, CRASH and PAUSE."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import millstream as ms
from millstream.runtime.clock import Clock

SOON = 20.0  # seconds: what does not happen by then does not happen

BID = {"t": "BIGINT", "k": "BIGINT", "price": "BIGINT"}


class HandClock(Clock):
    """Stands still until it is moved."""

    def __init__(self, now: int = 1_000_000) -> None:
        self._now = now
        self.sleeps = 0
        self._waiting: list[threading.Condition] = []

    def now(self) -> int:
        return self._now

    def ticks(self) -> int:
        return self._now

    def wait(self, condition: threading.Condition, until: int | None) -> None:
        self._waiting.append(condition)
        try:
            if until is None or self._now < until:
                self.sleeps += 1
                condition.wait()
        finally:
            self._waiting.remove(condition)

    def await_sleep(self, number: int) -> None:
        """Wait until somebody sleeps by this clock for the n-th time."""
        deadline = time.monotonic() + SOON
        while self.sleeps < number:
            assert time.monotonic() < deadline, "no thread sleeps"
            time.sleep(0.001)

    def pass_in_silence(self, microseconds: int) -> None:
        """Move once somebody sleeps by this clock: what happened before is over."""
        deadline = time.monotonic() + SOON
        while not self._waiting:
            assert time.monotonic() < deadline, "no thread sleeps"
            time.sleep(0.001)
        self.move(microseconds)

    def move(self, microseconds: int) -> None:
        self._now += microseconds
        for condition in list(self._waiting):
            with condition:
                condition.notify_all()


class Script:
    """A source that a test plays: it gives rows, pauses until there are more, ends or crashes."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.closed = threading.Event()
        self.connected = 0

    def give(self, *items: Any) -> None:
        for item in items:
            self._items.put(item)

    def end(self) -> None:
        self._items.put(StopIteration)

    def crash(self, error: Exception) -> None:
        self._items.put(error)

    def connect(self, *values: object, **options: object) -> Iterator[Any]:
        self.connected += 1
        return self._read()

    def _read(self) -> Iterator[Any]:
        try:
            while (item := self._items.get()) is not StopIteration:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.closed.set()


class Seen:
    """A sink that remembers, and lets a test wait for rows."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []
        self.batches: list[Any] = []
        self.threads: set[int] = set()
        self.ended = False
        self._changed = threading.Condition()

    def __call__(self, table: pa.Table, batch: Any) -> None:
        with self._changed:
            self.tables.append(table)
            self.batches.append(batch)
            self.threads.add(threading.get_ident())
            self._changed.notify_all()

    def close(self) -> None:
        self.ended = True

    def rows(self) -> list[dict[str, Any]]:
        with self._changed:
            return [row for table in self.tables for row in table.to_pylist()]

    def await_rows(self, count: int) -> list[dict[str, Any]]:
        with self._changed:
            enough = self._changed.wait_for(
                lambda: sum(table.num_rows for table in self.tables) >= count, SOON
            )
        assert enough, f"{count} rows expected, found {self.rows()}"
        return self.rows()

    def await_frontier(self, frontier: Any) -> None:
        def reached() -> bool:
            last = self.batches[-1].frontier if self.batches else None
            return last is not None and last >= frontier

        with self._changed:
            assert self._changed.wait_for(reached, SOON), self.batches[-1:]


def bid(t: int | None, k: int = 1, price: Any = 10) -> dict[str, Any]:
    return {"t": t, "k": k, "price": price}


def live_session(**options: Any) -> tuple[ms.Session, HandClock]:
    session = ms.Session(**options)
    clock = HandClock()
    session._workspace.clock = clock
    return session, clock


def bid_feed(session: ms.Session, name: str = "Bid", **options: Any) -> ms.Feed:
    return session.feed(name, BID, "t", **options)


def values(rows: list[dict[str, Any]], *names: str) -> list[Any]:
    """The values of some columns; of one column bare."""
    if len(names) == 1:
        return [row[names[0]] for row in rows]
    return [tuple(row[name] for name in names) for row in rows]
