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
        parts = [batch] if self._batch is None else [self._batch, batch]
        passed, waiting = zip(*(_split(part, batch.frontier) for part in parts), strict=True)
        rest = merged(waiting)
        self._batch = rest.gathered() if len(rest) else None
        released = merged(passed)
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


def _split(batch: Batch, frontier: int) -> tuple[Batch, Batch]:
    """What starts before the frontier, and what does not."""
    passed = batch.start < frontier
    count = int(np.count_nonzero(passed))
    is_head = bool(passed[:count].all())
    return batch.head(count) if is_head else batch.where(passed), batch.where(~passed)
