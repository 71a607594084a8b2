"""The clock of running queries; tests use a manual one."""

from __future__ import annotations

import threading
import time


class Clock:
    """The time of day and a stopwatch, both in microseconds."""

    def now(self) -> int:
        """Since 1970-01-01 UTC: the time of rows without their own."""
        return time.time_ns() // 1000

    def ticks(self) -> int:
        """A monotonic stopwatch, for idle times and triggers."""
        return time.monotonic_ns() // 1000

    def wait(self, condition: threading.Condition, until: int | None) -> None:
        """Sleep on a condition, whose lock the caller holds, at most until the stopwatch shows
        `until`."""
        condition.wait(None if until is None else max(until - self.ticks(), 0) / 1e6)
