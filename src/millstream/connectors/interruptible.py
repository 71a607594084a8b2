"""Items that come in their time, and a way to wake whoever waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any


class InterruptibleItems(Iterator[Any]):
    """Whoever waits for the next item is woken by `close`: what makes the items is handed an event
    to wait on, and ends when that is set."""

    def __init__(self, make: Callable[[threading.Event], Iterator[Any]]) -> None:
        self._closed = threading.Event()
        self._items = make(self._closed)

    def __next__(self) -> Any:
        return next(self._items)

    def close(self) -> None:
        self._closed.set()
