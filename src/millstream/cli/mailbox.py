"""From the threads of running queries to the one that writes."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from millstream.local.running import Running
    from millstream.local.sinks import GivenBatch

_BATCHES = 100  # that may wait before the queries do


class Mailbox:
    """The batches of several queries, taken by the thread that asked for it. A query whose batches
    nobody takes waits; once the mailbox is closed they are thrown away, so that it can end."""

    def __init__(self) -> None:
        self._batches: queue.Queue[tuple[str, pa.Table, GivenBatch]] = queue.Queue(_BATCHES)
        self._closed = False

    def sink(self, query: str) -> Callable[[pa.Table, GivenBatch], None]:
        def put(table: pa.Table, batch: GivenBatch) -> None:
            while not self._closed:
                with suppress(queue.Full):
                    self._batches.put((query, table, batch), timeout=0.1)
                    break

        return put

    def close(self) -> None:
        self._closed = True

    def take(self, timeout: float) -> tuple[str, pa.Table, GivenBatch] | None:
        try:
            return self._batches.get(timeout=timeout)
        except queue.Empty:
            return None

    def until_ended(
        self, running: list[Running], seconds: float | None = None
    ) -> Iterator[tuple[str, pa.Table, GivenBatch]]:
        """What comes until all queries have ended, or the time is over; a query that failed ends
        the others."""
        over = None if seconds is None else time.monotonic() + seconds
        while over is None or time.monotonic() < over:
            ended = all(query.state != "running" for query in running)
            taken = self.take(0 if ended else 0.1)
            if taken is not None:
                yield taken
            elif ended:
                break
            for query in running:
                if query.exception is not None:
                    raise query.exception
