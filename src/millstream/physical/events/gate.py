"""Gates: rows that pass while their group is covered (semi-join), or while it is not (anti-join).

A row's group is its join key for an equality condition, or the row itself if each row has its own
partners. Rows are identified by number: a new one per element if ends are known; if elements may be
retracted, equal rows share one, so that additions and removals cancel out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.model.arrays import larger, with_room
from millstream.model.time import INFINITY
from millstream.physical.batch import Batch, Columns, Ints, Mask, State
from millstream.physical.events.timeline import Timeline
from millstream.physical.kernels.gate import (
    COUNT,
    COVER,
    END,
    FIRST,
    FOLLOWING,
    GROUP_WIDTH,
    LEADING,
    ROW_WIDTH,
    SIZE,
    swing,
)
from millstream.physical.state.keys import KeySpace
from millstream.physical.state.slots import Slots
from millstream.physical.state.store import RowStore


@dataclass(slots=True)
class Passed:
    """Changes in what passes: row number, time and change."""

    row: Ints
    time: Ints
    change: Ints


class Gate:
    """`shared`: equal rows share a number. `grouped`: groups are given; otherwise each row is its
    own group."""

    def __init__(
        self,
        types: Sequence[pa.DataType],
        *,
        shared: bool,
        grouped: bool,
        covered_passes: bool,
        ordered: Sequence[bool],
    ) -> None:
        self._shared = shared
        self._grouped = grouped
        self.covered_passes = covered_passes
        self._row_keys = KeySpace(types if shared else ())
        self._store = RowStore(types)
        self._timeline = Timeline(ordered, words=1)
        self._nodes = np.zeros((65, ROW_WIDTH), np.int64)  # of rows, after the sentinel
        self._groups = np.zeros((64, GROUP_WIDTH), np.int64)
        self._slots = Slots()  # unless shared: the unused numbers
        self._gone: Ints = np.empty(0, np.int64)  # freed once the last output has been read

    @property
    def size(self) -> int:
        return int(np.count_nonzero(self._rows[:, COUNT])) + len(self._timeline)

    @property
    def _rows(self) -> Ints:
        """Nodes by the number of their row."""
        return self._nodes[1:]

    @property
    def nbytes(self) -> int:
        parts = (self._store, self._timeline, self._row_keys, self._slots)
        return self._nodes.nbytes + self._groups.nbytes + sum(part.nbytes for part in parts)

    @property
    def touched(self) -> int:
        return self._timeline.touched

    # --- what comes ------------------------------------------------------------------------------

    def add(self, batch: Batch, groups: Ints | None = None) -> Ints:
        """Add elements, of these groups if grouped; returns the numbers of their rows."""
        rows = self._shared_numbers(batch) if self._shared else self._new_numbers(batch)
        group = rows if groups is None else groups
        self._know_groups(int(group.max(initial=-1)) + 1)
        self._timeline.add(0, group, batch, [rows])
        return rows

    def _new_numbers(self, batch: Batch) -> Ints:
        self._slots.release(self._gone)
        self._gone = np.empty(0, np.int64)
        if self._store.is_stale:
            self._store.vacuum(self._slots.in_use())
        lacking = self._slots.lacking(len(batch))
        if lacking:
            capacity = larger(len(self._rows), len(self._rows) + lacking)
            self._make_room(capacity)
            self._slots.grow(capacity)
        rows = self._slots.take(len(batch))
        self._store.put(rows, batch.columns)
        self._rows[rows, END] = batch.end
        return rows

    def _shared_numbers(self, batch: Batch) -> Ints:
        known = self._row_keys.count
        rows = self._row_keys.encode(batch.columns, len(batch))
        if self._row_keys.count > len(self._rows):
            self._make_room(larger(len(self._rows), self._row_keys.count))
        fresh = np.flatnonzero(rows >= known)
        self._store.put(rows[fresh], batch.columns.take(fresh))
        self._rows[rows, END] = INFINITY
        return rows

    def _make_room(self, rows: int) -> None:
        more = np.zeros((rows - len(self._rows), ROW_WIDTH), np.int64)
        self._nodes = np.append(self._nodes, more, axis=0)
        self._store.move(np.arange(self._store.capacity), rows)

    def _know_groups(self, groups: int) -> None:
        self._groups = with_room(self._groups, groups)

    def cover(self, groups: Ints, batch: Batch) -> None:
        """Each element covers its group while it is valid, with its weight."""
        self._know_groups(int(groups.max(initial=-1)) + 1)
        self._timeline.add(1, groups, batch, [np.zeros(len(batch), np.int64)])

    def begin_covered(self, groups: Ints) -> None:
        """Mark these groups, which have no rows yet, as covered."""
        self._know_groups(int(groups.max(initial=-1)) + 1)
        self._groups[groups, COVER] = 1

    # --- what passes -----------------------------------------------------------------------------

    def due(self, frontier: int) -> Passed:
        """All changes before the frontier."""
        steps = self._timeline.due(frontier)
        (ids,) = steps.words
        row, time, change, gone = swing(
            steps.code, steps.time, steps.port, steps.delta, ids, steps.bounds,
            self._groups, self._nodes, self.covered_passes,
        )  # fmt: skip
        if not self._shared:
            self._gone = np.concatenate([self._gone, gone])
        return Passed(row, time, change)

    def hybrid(self, passed: Passed, frontier: int) -> Batch:
        """Elements that are valid until their known end, unless they are retracted."""
        end = self._rows[passed.row, END]
        index = np.flatnonzero(passed.time < end)  # elements at their known end need no retraction
        rows = self.rows(passed.row[index])
        return Batch(rows, passed.time[index], end[index], passed.change[index], frontier)

    def rows(self, numbers: Ints) -> Columns:
        return self._store.rows(numbers)

    # --- forgetting ------------------------------------------------------------------------------

    def mark_live(self, groups: Mask, covered: bool = True) -> None:
        """Mark the groups that have rows or future events; with `covered`, also the covered
        ones."""
        known = self._groups[: len(groups)]
        groups[: len(known)] |= known[:, SIZE] != 0
        if covered:
            groups[: len(known)] |= known[:, COVER] != 0
        groups[self._timeline.live()] = True

    def renumber_groups(self, kept: Ints, renumbered: Ints) -> None:
        """Group kept[i] is now i; no other is live."""
        groups = np.zeros((len(kept) + 1024, GROUP_WIDTH), np.int64)
        known = kept < len(self._groups)
        groups[: len(kept)][known] = self._groups[kept[known]]
        self._groups = groups
        self._timeline.renumber(renumbered)

    def forget(self) -> Ints | None:
        """Drop the numbers of absent rows, if numbers are shared. Returns the new numbers by the
        old ones if any were dropped."""
        if not self._shared or not self._row_keys.is_stale:
            return None
        needed = np.zeros(self._row_keys.count, np.bool_)
        needed[self._timeline.live_words(0, 0)] = True
        if not self._grouped:
            needed[self._timeline.live()] = True
            covered = np.flatnonzero(self._groups[:, COVER])
            needed[covered[covered < len(needed)]] = True
        needed |= self._rows[: len(needed), COUNT] != 0
        kept = np.flatnonzero(needed)
        renumbered = self._row_keys.keep(kept)
        self._store.move(kept, len(kept) + 1024)
        self._store.vacuum(np.arange(len(kept)))
        nodes = np.zeros((self._store.capacity + 1, ROW_WIDTH), np.int64)
        nodes[1 : len(kept) + 1] = self._rows[kept]
        by_node = np.append(0, renumbered[:-1] + 1)
        for link in (FOLLOWING, LEADING):
            nodes[:, link] = by_node[nodes[:, link]]
        self._nodes = nodes
        self._groups[:, FIRST] = by_node[self._groups[:, FIRST]]
        self._timeline.renumber_words(0, 0, renumbered)
        if not self._grouped:
            self.renumber_groups(kept, renumbered)
        return renumbered

    def save(self) -> State:
        self._slots.release(self._gone)
        self._gone = np.empty(0, np.int64)
        used = np.arange(self._row_keys.count) if self._shared else self._slots.in_use()
        return {
            "row_keys": self._row_keys.save(),
            "used": used,
            "values": self._store.save(used),
            "timeline": self._timeline.save(),
            "nodes": self._nodes.copy(),
            "groups": self._groups.copy(),
        }

    def restore(self, state: State) -> None:
        self._row_keys.restore(state["row_keys"])
        self._nodes, self._groups = state["nodes"], state["groups"]
        self._store.move(np.arange(self._store.capacity), len(self._rows))
        self._store.restore(state["values"], state["used"])
        self._timeline.restore(state["timeline"])
        if not self._shared:
            self._slots.grow(len(self._rows))
            self._slots.occupy(state["used"])
