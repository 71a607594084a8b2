"""What changes at each instant: of every row, how much more often or less often it is there.

The changes of an instant are known once the frontier has passed it. The state is the future alone:
the events that lie ahead, and their rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.logical.time import INFINITY
from millstream.physical.arrays import larger
from millstream.physical.batch import NEVER, Batch, Columns, Ints, State
from millstream.physical.kernels.looks import ascends, greatest, least
from millstream.physical.kernels.net_changes import net_changes
from millstream.physical.key_rows import KeyRows
from millstream.physical.keys import KeySpace
from millstream.physical.timeline import Timeline
from millstream.physical.waiting import by_start


class NetChanges:
    """`ordered`: elements come in order of start and of end. `net`: no row that starts at an
    instant is equal to another one that does."""

    def __init__(self, types: Sequence[pa.DataType], ordered: bool, net: bool = False) -> None:
        self._is_net = net
        self._keys = KeySpace(types)  # of the events that lie ahead
        self._rows = KeyRows(self._keys)
        self._timeline = Timeline([ordered])
        self._alike = KeySpace(types)  # tells which rows of a batch are equal
        self._scratch = np.zeros(64, np.int64)

    def __len__(self) -> int:
        return self._keys.count + len(self._timeline)

    @property
    def nbytes(self) -> int:
        parts = (self._keys, self._rows, self._timeline, self._alike, self._scratch)
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
        index, net = self._net(self._keys, steps.code, steps.time, steps.delta)
        return self._rows.rows(steps.code[index]), steps.time[index], net

    def _passed(self, batch: Batch, floor: int) -> tuple[Columns, Ints, Ints]:
        """Of elements that the frontier has passed, nothing needs to be kept."""
        if self._is_net and least(batch.start) >= floor:
            batch = by_start(batch)
            return batch.columns, batch.start, batch.weight
        if self._alike.is_stale:
            self._alike.keep(np.empty(0, np.int64))
        codes = self._alike.encode(batch.columns, len(batch))
        times, weight, columns = np.maximum(batch.start, floor), batch.weight, batch.columns
        if not ascends(times):
            order = times.argsort(kind="stable")
            codes, times, weight = codes[order], times[order], weight[order]
            columns = columns.take(order)
        index, net = self._net(self._alike, codes, times, weight)
        if len(index) < len(times):
            times, columns = times[index], columns.take(index)
        return columns, times, net

    def _net(self, keys: KeySpace, codes: Ints, times: Ints, deltas: Ints) -> tuple[Ints, Ints]:
        if len(self._scratch) < keys.count:
            self._scratch = np.zeros(larger(len(self._scratch), keys.count), np.int64)
        index, net = net_changes(codes, times, deltas, self._scratch)
        return index, net

    def _forget(self) -> None:
        """Forget rows that have no future. Those given before must have been read."""
        if not self._keys.is_stale:
            return
        live = np.zeros(self._keys.count, np.bool_)
        live[self._timeline.live()] = True
        kept = np.flatnonzero(live)
        self._timeline.renumber(self._keys.keep(kept))
        self._rows.move(kept, len(kept) * 3 // 2 + 1024)  # as many as there will be the next time
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
    return greatest(batch.start) < batch.frontier and least(batch.end) == INFINITY
