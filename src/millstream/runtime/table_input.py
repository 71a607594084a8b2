"""A table as one query sees it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from millstream.connectors.tables.table_source import TableTrouble
from millstream.model.records import Records
from millstream.model.time import ALWAYS, INFINITY
from millstream.physical.batch import NEVER
from millstream.physical.operators.source import Source
from millstream.runtime.inbox import Inlet
from millstream.runtime.inputs import Pusher, QueuedInput


class TableOrigin(Pusher, Protocol):
    """A table that sends its queries every change. `gate` is held while it accepts one; `trouble`
    says why it cannot be read at present."""

    gate: threading.Lock
    trouble: TableTrouble | None

    @property
    def is_fixed(self) -> bool:
        """Whether it never changes while queries run."""

    @property
    def latest(self) -> int:
        """When the last accepted change takes effect."""


class TableInput(QueuedInput):
    """A table as one query sees it. It advances with the streams of the query: its changes take
    effect then at the earliest. A table that does not change is complete from the start."""

    def __init__(self, sources: Sequence[Source], origin: TableOrigin, inlet: Inlet) -> None:
        super().__init__(sources, origin, inlet)
        self.gate = origin.gate
        self._origin = origin
        self.latest = NEVER  # when the last change took effect
        self.by_clock = False  # whether a change without a time takes effect now

    def begin(self, now: int) -> None:
        """Called after a restart too: a fixed table must be unchanged, and stay so."""
        super().begin(now)
        if self.ended and self.is_fixed:
            self.origin.attach(self._inlet, self.received)

    @property
    def trouble(self) -> str | None:
        return None if self._origin.trouble is None else self._origin.trouble.message

    @property
    def is_fixed(self) -> bool:
        return self._origin.is_fixed

    @property
    def is_ahead(self) -> bool:
        """Whether it has a change at an instant that is not final yet."""
        return max(self.latest, self._origin.latest) >= self.frontier

    def timed(self, records: Records, now: int) -> Records:
        if self.is_fixed:
            return records
        start = np.maximum(records.start, self.frontier)
        if self.by_clock and self.frontier > NEVER:
            moment = max(now, self.frontier, self.latest)
            start = np.where(records.start == ALWAYS, moment, start)
        self.latest = max(self.latest, int(start.max(initial=NEVER)))
        return replace(records, start=start).in_order()

    def split_late(self, records: Records) -> tuple[Records, Records | None]:
        return records, None

    def advance(self, records: Records, promised: int | None) -> bool:
        return False

    def reach(self, frontier: int) -> bool:
        """Advance to the streams; returns whether it moved."""
        frontier = INFINITY if self.is_fixed else frontier
        moved = frontier > self.frontier
        self.frontier = max(self.frontier, frontier)
        self.ended = self.frontier == INFINITY
        return moved
