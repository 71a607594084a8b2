"""A queue from the threads of running queries to the thread that writes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.model.modes import QueryState

if TYPE_CHECKING:
    from millstream.connectors.contracts import GivenBatch
    from millstream.runtime.running import Running


class Mailbox:
    """Passes the batches of several queries to one thread. A query continues when its batch has
    been processed, so only written batches count as delivered. Once the mailbox is closed, delivery
    fails, and the query with it."""

    def __init__(self) -> None:
        self._batches: queue.Queue[tuple[str, pa.Table, threading.Event]] = queue.Queue()
        self._closed = threading.Event()

    def sink(self, query: str) -> Callable[[pa.Table, GivenBatch], None]:
        def put(table: pa.Table, batch: GivenBatch) -> None:
            given = threading.Event()
            self._batches.put((query, table, given))
            while not given.wait(0.1):
                if self._closed.is_set():
                    raise EOFError("the reader is closed")

        return put

    def close(self) -> None:
        self._closed.set()

    def until_ended(
        self, running: list[Running], look: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[str, pa.Table]]:
        """The batches until all queries have ended, or one has failed; `look` is called
        periodically."""
        while True:
            ended = all(query.state is not QueryState.RUNNING for query in running)
            with suppress(queue.Empty):
                query, table, given = self._batches.get(timeout=0.001 if ended else 0.1)
                yield query, table
                given.set()
            for one in running:
                if one.exception is not None:
                    raise one.exception
            if ended:
                return
            look()
