"""An iterator whose waiting consumer can be woken."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any


class InterruptibleItems(Iterator[Any]):
    """`close` wakes a consumer that waits for the next item: the producer of the items gets an
    event to wait on, and ends when it is set."""

    def __init__(self, make: Callable[[threading.Event], Iterator[Any]]) -> None:
        self._closed = threading.Event()
        self._items = make(self._closed)

    def __next__(self) -> Any:
        return next(self._items)

    def close(self) -> None:
        self._closed.set()
