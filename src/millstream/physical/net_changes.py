"""What changes at each instant: of every row, how much more often or less often it is there.

The changes of an instant are known once the frontier has passed it. The state is the future alone:
the events that lie ahead, and their rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.logical.time import INFINITY
from millstream.physical.batch import NEVER, Batch, Columns, Ints, State
from millstream.physical.kernels.timeline import order_by_time_and_key, step_bounds
from millstream.physical.key_rows import KeyRows
from millstream.physical.keys import KeySpace
from millstream.physical.timeline import Timeline


class NetChanges:
    """`ordered`: elements come in order of start and of end."""

    def __init__(self, types: Sequence[pa.DataType], ordered: bool) -> None:
        self._keys = KeySpace(types)  # of the events that lie ahead
        self._rows = KeyRows(self._keys)
        self._timeline = Timeline([ordered])
        self._alike = KeySpace(types)  # tells which rows of a batch are equal

    def __len__(self) -> int:
        return self._keys.count + len(self._timeline)

    @property
    def nbytes(self) -> int:
        parts = (self._keys, self._rows, self._timeline, self._alike)
        return sum(part.nbytes for part in parts)

    @property
    def touched(self) -> int:
        return self._timeline.touched

    def add(self, batch: Batch) -> None:
        """Take in elements, of which all events lie ahead as far as is known."""
        self._forget()
        known = self._keys.count
        codes = self._keys.encode(batch.columns, len(batch))
        if self._keys.count > known:
            fresh = (codes >= known).nonzero()[0]
            self._rows.grow(self._keys.count)
            self._rows.put(codes[fresh], batch.columns.take(fresh))
        self._timeline.add(0, codes, batch)

    def due(self, batch: Batch, floor: int = NEVER) -> tuple[Columns, Ints, Ints]:
        """Take in elements; gives the rows that change before the frontier of the batch, when, and
        by how much, in order of time. What happened before the floor counts as if it happened
        then."""
        if not len(self._timeline) and _has_passed(batch):
            return self._passed(batch, floor)
        self.add(batch)
        steps = self._timeline.due(batch.frontier, floor)
        net, index = _net(steps.delta, steps.bounds)
        event = steps.bounds[index]
        return self._rows.rows(steps.code[event]), steps.time[event], net

    def _passed(self, batch: Batch, floor: int) -> tuple[Columns, Ints, Ints]:
        """Of elements that the frontier has passed, nothing needs to be kept."""
        if self._alike.is_stale:
            self._alike.keep(np.empty(0, np.int64))
        codes = self._alike.encode(batch.columns, len(batch))
        times = np.maximum(batch.start, floor)
        order = times.argsort(kind="stable")
        times, codes = times[order], codes[order]
        by_key = order_by_time_and_key(times, codes, np.array([0, len(codes)]))
        order, times = order[by_key], times[by_key]
        bounds = step_bounds(times, codes[by_key])
        net, index = _net(batch.weight[order], bounds)
        event = bounds[index]
        return batch.columns.take(order[event]), times[event], net

    def _forget(self) -> None:
        """Forget rows that have no future. Those given before must have been read."""
        if not self._keys.is_stale:
            return
        kept = np.unique(self._timeline.live())
        self._timeline.renumber(self._keys.keep(kept))
        self._rows.move(kept, len(kept) + 1024)
        self._rows.vacuum(np.arange(len(kept)))

    def save(self) -> State:
        return {
            "keys": self._keys.save(),
            "rows": self._rows.save(self._keys.count),
            "timeline": self._timeline.save(),
        }

    def restore(self, state: State) -> None:
        self._keys.restore(state["keys"])
        self._rows.restore(state["rows"], self._keys.count)
        self._timeline.restore(state["timeline"])


def _has_passed(batch: Batch) -> bool:
    """Whether all elements start before the frontier and never end."""
    if not len(batch):
        return False
    return bool(batch.start.max() < batch.frontier and batch.end.min() == INFINITY)


def _net(deltas: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    """The sums of steps that are not zero, and the numbers of these steps."""
    if not len(deltas):
        return deltas, deltas
    net = np.add.reduceat(deltas, bounds[:-1])
    index = net.nonzero()[0]
    return net[index], index
