"""Rows that pull queries read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from millstream.model.records import Records
from millstream.sql.pulls import Read


class Readable(Protocol):
    """Rows that pull queries read."""

    @property
    def lock(self) -> threading.RLock:
        """Nothing changes while it is held."""

    def read(self, read: Read) -> Callable[[], Records]:
        """A function that returns the rows as of now, also after the lock is released;
        FileNotFoundError if some of them are no longer stored by then."""
