"""Elements that wait until the frontier has passed their start, to go on in order of start."""

from __future__ import annotations

import numpy as np

from millstream.physical.batch import Batch, State, merged


class Waiting:
    """It holds what lies ahead of the frontier: as much as the input is out of order."""

    def __init__(self) -> None:
        self.batch: Batch | None = None

    def __len__(self) -> int:
        return 0 if self.batch is None else len(self.batch)

    @property
    def nbytes(self) -> int:
        if self.batch is None:
            return 0
        return 24 * len(self) + sum(int(array.nbytes) for array in self.batch.columns)

    def add(self, batch: Batch) -> None:
        """Take in what must not go on yet, wherever the frontier is."""
        parts = [batch] if self.batch is None else [self.batch, batch]
        self.batch = merged(parts).gathered()

    def released(self, batch: Batch) -> Batch:
        """What starts before the frontier of the batch, in order of start; the rest waits."""
        return merged([*self.passed(batch), batch.head(0)])

    def passed(self, batch: Batch) -> list[Batch]:
        """The same in one or two parts, one after the other; equal starts are in one of them."""
        parts = [batch] if self.batch is None else [self.batch, batch]
        both = [_split(_by_start(part), batch.frontier) for part in parts]
        rest = merged([waiting for _, waiting in both])
        self.batch = rest.gathered() if len(rest) else None
        passed = [part for part, _ in both if len(part)]
        if len(passed) == 2 and passed[0].start[-1] >= passed[1].start[0]:
            return [_by_start(merged(passed))]
        return passed

    def save(self) -> State:
        if self.batch is None:
            return {"batch": None}
        batch = self.batch
        return {
            "batch": [list(batch.columns), batch.start, batch.end, batch.weight, batch.frontier]
        }

    def restore(self, state: State) -> None:
        self.batch = None if state["batch"] is None else Batch.of(*state["batch"])


def _by_start(batch: Batch) -> Batch:
    start = batch.start
    in_order = (start[1:] >= start[:-1]).all()
    return batch if in_order else batch.take(np.argsort(start, kind="stable"))


def _split(batch: Batch, frontier: int) -> tuple[Batch, Batch]:
    """What starts before the frontier, and what does not, of a batch in order of start."""
    count = int(np.searchsorted(batch.start, frontier))
    if count == len(batch):
        return batch, batch.head(0)
    return batch.head(count), batch.take(np.arange(count, len(batch)))
