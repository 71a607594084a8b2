"""From the threads of running queries to the one that writes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from millstream.connectors.contracts import GivenBatch
    from millstream.runtime.running import Running


class Mailbox:
    """The batches of several queries, taken by the thread that asked for it. A query goes on when
    its batch has been taken and dealt with, so none counts as given that was not; once the mailbox
    is closed that cannot be, and the query fails."""

    def __init__(self) -> None:
        self._batches: queue.Queue[tuple[str, pa.Table, threading.Event]] = queue.Queue()
        self._closed = threading.Event()

    def sink(self, query: str) -> Callable[[pa.Table, GivenBatch], None]:
        def put(table: pa.Table, batch: GivenBatch) -> None:
            given = threading.Event()
            self._batches.put((query, table, given))
            while not given.wait(0.1):
                if self._closed.is_set():
                    raise EOFError("nobody reads any more")

        return put

    def close(self) -> None:
        self._closed.set()

    def until_ended(
        self, running: list[Running], look: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[str, pa.Table]]:
        """What comes until all queries have ended, or one has failed; `look` is called now and
        then."""
        while True:
            ended = all(query.state != "running" for query in running)
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
