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
        """What gives the rows as they are now, also when the lock is let go; FileNotFoundError, if
        some of them are no longer kept by then."""
