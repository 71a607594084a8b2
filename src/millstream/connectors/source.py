"""What a built-in connector is to those who read it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol


class Source(Protocol):
    """Gives items: rows, tables, `Checked` rows, heartbeats.

    `replays`: whether reading again gives the same rows in the same order.
    """

    replays: bool

    def available(self) -> Any:
        """What is there now; it ends."""

    def live(self) -> Any:
        """What is there and what comes."""


class Live(Iterator[Any]):
    """Items that come in their time. Whoever waits for the next one is woken by `close`: what makes
    the items is handed an event to wait on, and ends when that is set."""

    def __init__(self, make: Callable[[threading.Event], Iterator[Any]]) -> None:
        self._closed = threading.Event()
        self._items = make(self._closed)

    def __next__(self) -> Any:
        return next(self._items)

    def close(self) -> None:
        self._closed.set()
