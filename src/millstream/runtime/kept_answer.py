"""The answers that a running query keeps: all of them, or the current and future ones."""

from __future__ import annotations

import numpy as np

from millstream.physical.batch import NEVER, Batch, merged
from millstream.physical.operator import PhysicalPlan
from millstream.runtime.normal_form import normal_form

_SMALL = 4096


class KeptAnswer:
    """The emitted elements. `all` keeps everything; otherwise elements that ended before the
    horizon are dropped, each time their number has doubled: the memory is twice that of the current
    and future elements, and every element is copied about once."""

    def __init__(self, plan: PhysicalPlan, *, all: bool, changes: bool) -> None:
        self.all = all
        self.horizon = NEVER  # no instant before it can be queried
        self._changes = changes
        self._batches = [Batch.empty(plan.types, NEVER)]
        self._rows = 0
        self._limit = _SMALL

    def add(self, batch: Batch) -> None:
        if len(batch):
            self._batches.append(batch)
            self._rows += len(batch)

    def forget(self, horizon: int) -> None:
        """No instant before the horizon will be queried."""
        if self.all or self._rows < self._limit:
            return
        self.horizon = max(self.horizon, horizon)
        batch = self.batch()
        if self._changes:
            batch = normal_form(batch)
        batch = batch.where(batch.end > self.horizon)
        list(batch.columns)
        self._batches = [batch]
        self._rows = len(batch)
        self._limit = max(_SMALL, 2 * self._rows)

    def batch(self) -> Batch:
        """All kept elements as one batch."""
        self._batches = [merged(self._batches)]
        return self._batches[0]

    def since(self, count: int) -> Batch:
        """All but the first elements, which the caller has."""
        parts = [self._batches[0].head(0)]
        for batch in self._batches:
            if count < len(batch):
                parts.append(batch.take(np.arange(count, len(batch))))
            count = max(count - len(batch), 0)
        return merged(parts)

    def holding(self, at: int) -> Batch:
        batch = self.batch()
        return batch.where((batch.start <= at) & (at < batch.end))
