"""Elements that wait until the frontier has passed their start, to go on in order of start."""

from __future__ import annotations

import numpy as np

from millstream.physical.batch import Batch, State, merged


class Waiting:
    """It holds what lies ahead of the frontier: as much as the input is out of order."""

    def __init__(self) -> None:
        self._batch: Batch | None = None

    def __len__(self) -> int:
        return 0 if self._batch is None else len(self._batch)

    @property
    def nbytes(self) -> int:
        if self._batch is None:
            return 0
        return 24 * len(self) + sum(int(array.nbytes) for array in self._batch.columns)

    def released(self, batch: Batch) -> Batch:
        """What starts before the frontier of the batch, in order of start; the rest waits."""
        if self._batch is not None and len(self._batch):
            batch = merged([self._batch, batch])
        passed = batch.start < batch.frontier
        waiting = batch.where(~passed)
        self._batch = waiting if len(waiting) else None
        if self._batch is not None:
            self._batch.gathered()
        released = batch.where(passed)
        start = released.start
        if (start[1:] >= start[:-1]).all():
            return released
        return released.take(np.argsort(start, kind="stable"))

    def save(self) -> State:
        if self._batch is None:
            return {"batch": None}
        batch = self._batch
        return {
            "batch": [list(batch.columns), batch.start, batch.end, batch.weight, batch.frontier]
        }

    def restore(self, state: State) -> None:
        self._batch = None if state["batch"] is None else Batch.of(*state["batch"])
