"""The net change in the multiplicity of every row at each instant.

The changes of an instant are known once the frontier has passed it. The state is only the future
events and their rows. Which rows are equal matters only where several events share an instant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.model.arrays import larger
from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch, Columns, Ints, State
from millstream.physical.canonical_values import canonical, has_floating
from millstream.physical.events.timeline import Timeline
from millstream.physical.kernels.net_changes import last_events, net_changes, tied_events
from millstream.physical.kernels.scans import ascends, greatest, least
from millstream.physical.operator import Operator, Pattern, PhysicalPlan
from millstream.physical.state.keys import KeySpace
from millstream.physical.state.slots import Slots
from millstream.physical.state.store import RowStore
from millstream.physical.state.waiting import by_start


class NetChanges:
    """`ordered`: elements arrive in order of start and of end. `net`: no two equal rows start at
    the same instant."""

    def __init__(self, types: Sequence[pa.DataType], ordered: bool, net: bool = False) -> None:
        self._is_net = net
        self._has_floating = any(map(has_floating, types))
        self._timeline = Timeline([ordered])
        self._slots = Slots()
        self._rows = RowStore(types, self._slots.capacity)
        self._ahead = np.zeros(self._slots.capacity, np.int8)  # by slot: future events
        self._gone: Ints = np.empty(0, np.int64)  # slots to free once they have been read
        self._alike = KeySpace(types)  # finds equal rows of a batch
        self._scratch = np.zeros(64, np.int64)

    def __len__(self) -> int:
        return self._slots.used - len(self._gone) + len(self._timeline)

    @property
    def nbytes(self) -> int:
        parts = (self._timeline, self._slots, self._rows, self._ahead, self._alike, self._scratch)
        return sum(part.nbytes for part in parts)

    @property
    def touched(self) -> int:
        return self._timeline.touched

    def add(self, batch: Batch) -> None:
        """Add elements with all their events in the future."""
        self._forget()
        if not len(batch):
            return
        lacking = self._slots.lacking(len(batch))
        if lacking:
            self._make_room(larger(self._slots.capacity, self._slots.capacity + lacking))
        slots = self._slots.take(len(batch))
        self._rows.put(slots, self._in_one_form(batch.columns))
        self._ahead[slots] = 1 + (batch.end < INFINITY)
        self._timeline.add(0, slots, batch)

    def _in_one_form(self, columns: Columns) -> Columns:
        """A removed row must be found among the added ones even by bitwise comparison: of equal
        rows that cancel out, either may remain."""
        if not self._has_floating:
            return columns
        return Columns.of(map(canonical, columns))

    def _make_room(self, capacity: int) -> None:
        self._rows.move(np.arange(self._rows.capacity), capacity)
        self._ahead = np.append(self._ahead, np.zeros(capacity - len(self._ahead), np.int8))
        self._slots.grow(capacity)

    def _forget(self) -> None:
        """Forget rows without future events. Rows returned before must have been read."""
        if len(self._gone):
            self._slots.release(self._gone)
            self._gone = self._gone[:0]
        if self._slots.capacity > 4 * (self._slots.used + 1024):  # after a burst
            self._shrink()
        elif self._rows.is_stale:
            self._rows.vacuum(self._slots.in_use())

    def _shrink(self) -> None:
        used = self._slots.in_use()
        slots = np.arange(len(used))
        renumbered = np.full(self._slots.capacity, -1)
        renumbered[used] = slots
        self._timeline.renumber(renumbered)
        capacity = len(used) * 3 // 2 + 1024
        self._rows.move(used, capacity)
        self._rows.vacuum(slots)
        self._ahead = np.append(self._ahead[used], np.zeros(capacity - len(used), np.int8))
        self._slots = Slots(capacity)
        self._slots.occupy(slots)

    def due(self, batch: Batch, floor: int = NEVER) -> tuple[Columns, Ints, Ints]:
        """Add elements; returns the rows that change before the frontier of the batch, the times
        and the changes, in order of time. Events before the floor count as if they happened at the
        floor."""
        if not len(self._timeline) and _has_passed(batch):
            return self._passed(batch, floor)
        self.add(batch)
        steps = self._timeline.due(batch.frontier, floor)
        self._gone = last_events(steps.code, self._ahead)
        return self._net(self._rows.rows(steps.code), steps.time, steps.delta)

    def _passed(self, batch: Batch, floor: int) -> tuple[Columns, Ints, Ints]:
        """Elements that the frontier has passed need not be kept."""
        if self._is_net and least(batch.start) >= floor:
            batch = by_start(batch)
            return batch.columns, batch.start, batch.weight
        columns = self._in_one_form(batch.columns)
        times, weight = np.maximum(batch.start, floor), batch.weight
        if not ascends(times):
            order = times.argsort(kind="stable")
            times, weight, columns = times[order], weight[order], columns.take(order)
        return self._net(columns, times, weight)

    def _net(self, rows: Columns, times: Ints, deltas: Ints) -> tuple[Columns, Ints, Ints]:
        """Events in order of time, summed over equal rows at an instant, removals first."""
        tied = tied_events(times)
        if not len(tied):
            return rows, times, deltas
        codes = self._codes(rows, len(times), tied)
        index, net = net_changes(codes, times, deltas, self._scratch)
        return rows.take(index), times[index], net

    def _codes(self, rows: Columns, length: int, tied: Ints) -> Ints:
        """Codes that equal rows of one instant share."""
        if self._alike.is_stale or self._alike.room > 8 * (len(tied) + 1024):
            self._alike = KeySpace(self._alike.types)
        if len(tied) == length:
            codes = self._alike.encode(rows, length)
        else:
            codes = np.zeros(length, np.int64)
            codes[tied] = self._alike.encode(rows.take(tied), len(tied))
        if len(self._scratch) < self._alike.count:
            self._scratch = np.zeros(larger(len(self._scratch), self._alike.count), np.int64)
        return codes

    def save(self) -> State:
        self._forget()
        used = self._slots.in_use()
        return {
            "used": used,
            "rows": self._rows.save(used),
            "ahead": self._ahead[used],
            "timeline": self._timeline.save(),
        }

    def restore(self, state: State) -> None:
        used = state["used"]
        self._make_room(max(self._slots.capacity, int(used.max(initial=-1)) + 1))
        self._slots.occupy(used)
        self._rows.restore(state["rows"], used)
        self._ahead[used] = state["ahead"]
        self._timeline.restore(state["timeline"])


class NetOperator(Operator):
    """The base of operators that output the changes of their input."""

    def __init__(self, plan: PhysicalPlan, net: bool = False) -> None:
        ordered = plan.inputs[0].pattern is Pattern.WEAKEST
        self._net = NetChanges(plan.types, ordered, net)
        self._frontier = NEVER

    @property
    def rows(self) -> int:
        return len(self._net)

    @property
    def nbytes(self) -> int:
        return self._net.nbytes

    @property
    def touched(self) -> int:
        return self._net.touched

    def save(self) -> State:
        return {"net": self._net.save(), "frontier": self._frontier}

    def restore(self, state: State) -> None:
        self._net.restore(state["net"])
        self._frontier = state["frontier"]


def _has_passed(batch: Batch) -> bool:
    """Whether all elements start before the frontier and never end."""
    if not len(batch):
        return False
    return greatest(batch.start) < batch.frontier and least(batch.end) == INFINITY
