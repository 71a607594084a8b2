"""Elements that wait until the frontier has passed their start, released in order of start."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from millstream.physical.batch import NEVER, Batch, Columns, State, merged
from millstream.physical.kernels.scans import ascends

_FEW = 1 << 10  # elements: smaller batches are merged


class Waiting:
    """Holds the elements ahead of the frontier: as many as the input is out of order, or ahead of
    another input. The cost of a batch is proportional to its elements and those released."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []  # in order of arrival, each sorted by start, none empty

    def __len__(self) -> int:
        return sum(map(len, self.batches))

    @property
    def latest(self) -> int:
        """The largest start."""
        return max((int(batch.start[-1]) for batch in self.batches), default=NEVER)

    @property
    def nbytes(self) -> int:
        arrays = (array for batch in self.batches for array in batch.columns)
        return 24 * len(self) + sum(int(array.nbytes) for array in arrays)

    def add(self, batch: Batch) -> None:
        """Add elements that must wait, whatever the frontier."""
        if not len(batch):
            return
        if self.batches and len(self.batches[-1]) < _FEW:
            batch = merged([self.batches.pop(), batch])
        self.batches.append(by_start(batch).gathered())

    def released(self, batch: Batch) -> Batch:
        """The elements that start before the frontier of the batch, in order of start; the rest
        waits."""
        return merged([*self.passed(batch), batch.head(0)])

    def passed(self, batch: Batch) -> list[Batch]:
        """The same in consecutive parts; equal starts are in one part."""
        frontier = batch.frontier
        parts = [_before(part, frontier) for part in self.batches if part.start[0] < frontier]
        rest = (_since(part, frontier) for part in self.batches)
        self.batches = [part for part in rest if len(part)]
        batch = by_start(batch)
        going = _before(batch, frontier)
        if len(going) < len(batch):
            self.add(batch.tail(len(going)))
        parts += [going] if len(going) else []
        return _one_after_the_other(parts)

    def emptied(self) -> list[Batch]:
        """Remove and return everything, in parts as from `passed`."""
        parts, self.batches = self.batches, []
        return _one_after_the_other(parts)

    def save(self) -> State:
        return {"batch": merged(self.batches).save() if self.batches else None}

    def restore(self, state: State) -> None:
        self.batches = []
        if state["batch"] is not None:
            self.add(Batch.restored(state["batch"]))


def _one_after_the_other(parts: list[Batch]) -> list[Batch]:
    if all(part.start[-1] < after.start[0] for part, after in pairwise(parts)):
        return parts
    return [by_start(merged(parts))]


def by_start(batch: Batch) -> Batch:
    """The elements in order of start (stable)."""
    start = batch.start
    return batch if ascends(start) else batch.take(np.argsort(start, kind="stable"))


def _before(batch: Batch, frontier: int) -> Batch:
    """The elements that start before the frontier, of a batch in order of start."""
    count = int(batch.start.searchsorted(frontier))
    return batch if count == len(batch) else batch.head(count)


def _since(batch: Batch, frontier: int) -> Batch:
    """The other elements, without a copy; all columns have been gathered."""
    count = int(batch.start.searchsorted(frontier))
    if not count:
        return batch
    columns = Columns.of(array.slice(count) for array in batch.columns)
    times = (batch.start[count:], batch.end[count:], batch.weight[count:])
    return Batch(columns, *times, batch.frontier)
