"""Rows held until the frontier has passed them, and then released in the stream's order.

If a query needs the position of each row in its stream (by time, then arrival), rows out of order
wait until no row can precede them.
"""

from __future__ import annotations

import numpy as np

from millstream.connectors.intake.rows import joined
from millstream.model.records import Records
from millstream.physical.batch import State


class HeldRows:
    """Sorted runs, older arrivals first, each at least twice as long as the next: a row is merged
    about as often as the logarithm of their number."""

    def __init__(self) -> None:
        self._runs: list[Records] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def released(self, records: Records, frontier: int) -> Records:
        """Add rows; returns all that start before the frontier, in order."""
        self._add(records)
        parts = []
        for place, run in enumerate(self._runs):
            count = int(np.searchsorted(run.start, frontier))
            parts.append(run.slice(0, count))
            self._runs[place] = run.slice(count, len(run))
        self._runs = [run for run in self._runs if len(run)]
        return joined([*parts, records.slice(0, 0)]).in_order()

    def save(self) -> State:
        return {"runs": [run.save() for run in self._runs]}

    def restore(self, state: State) -> None:
        self._runs = [Records.restored(run) for run in state["runs"]]

    def _add(self, records: Records) -> None:
        if not len(records):
            return
        self._runs.append(records.in_order())
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            newer, older = self._runs.pop(), self._runs.pop()
            self._runs.append(joined([older, newer]).in_order())
