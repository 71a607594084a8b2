"""Gates: rows that pass while their group is covered (semi-join), or while it is not (anti-join).

A row's group is its join key, where equality decides, or the row itself, where each row has its own
partners. Rows are told apart by number: a new one for each element where ends are known; where
elements may be retracted, equal rows share one, so that what comes and goes cancels out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.logical.time import INFINITY
from millstream.physical.arrays import larger
from millstream.physical.batch import Batch, Columns, Ints, State
from millstream.physical.kernels.gate import swing
from millstream.physical.keys import KeySpace
from millstream.physical.slots import Slots
from millstream.physical.store import RowStore
from millstream.physical.sweep import Sweep


@dataclass(slots=True)
class Passed:
    """Changes of what passes: rows by number, when, by how much; and until when it is known."""

    row: Ints
    time: Ints
    change: Ints
    end: Ints


class Gate:
    """`shared`: equal rows have one number. `grouped`: groups are given, else each row is one."""

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
        self._rows = RowStore(types)
        self._sweep = Sweep(ordered, words=1)
        self._count, self._following, self._leading, self._end = np.zeros((4, 64), np.int64)
        self._cover = np.zeros(64, np.int64)
        self._first = np.full(64, -1, np.int64)
        self._size = np.zeros(64, np.int64)
        self._slots = Slots()  # unless shared: the numbers not in use
        self._gone: Ints = np.empty(0, np.int64)  # free once what was given has been read

    @property
    def size(self) -> int:
        return int(np.count_nonzero(self._count)) + len(self._sweep)

    @property
    def nbytes(self) -> int:
        own = 4 * self._count.nbytes + 3 * self._cover.nbytes
        parts = (self._rows, self._sweep, self._row_keys, self._slots)
        return own + sum(part.nbytes for part in parts)

    @property
    def touched(self) -> int:
        return self._sweep.touched

    # --- what comes ------------------------------------------------------------------------------

    def add(self, batch: Batch, groups: Ints | None = None) -> Ints:
        """Take in elements, of these groups if grouped; gives the numbers of their rows."""
        rows = self._shared_numbers(batch) if self._shared else self._new_numbers(batch)
        group = rows if groups is None else groups
        self._know_groups(int(group.max(initial=-1)) + 1)
        self._sweep.add(0, group, batch, [rows])
        return rows

    def _new_numbers(self, batch: Batch) -> Ints:
        self._slots.release(self._gone)
        self._gone = np.empty(0, np.int64)
        if self._rows.is_stale:
            self._rows.vacuum(self._slots.in_use())
        lacking = self._slots.lacking(len(batch))
        if lacking:
            capacity = larger(len(self._count), len(self._count) + lacking)
            self._make_room(capacity)
            self._slots.grow(capacity)
        rows = self._slots.take(len(batch))
        self._rows.put(rows, batch.columns)
        self._end[rows] = batch.end
        return rows

    def _shared_numbers(self, batch: Batch) -> Ints:
        known = self._row_keys.count
        rows = self._row_keys.encode(batch.columns, len(batch))
        if self._row_keys.count > len(self._count):
            self._make_room(larger(len(self._count), self._row_keys.count))
        fresh = np.flatnonzero(rows >= known)
        self._rows.put(rows[fresh], batch.columns.take(fresh))
        self._end[rows] = INFINITY
        return rows

    def _make_room(self, rows: int) -> None:
        for name in ("_count", "_following", "_leading", "_end"):
            array = getattr(self, name)
            setattr(self, name, np.append(array, np.zeros(rows - len(array), np.int64)))
        self._rows.move(np.arange(self._rows.capacity), rows)

    def _know_groups(self, groups: int) -> None:
        if len(self._cover) < groups:
            more = larger(len(self._cover), groups) - len(self._cover)
            self._cover = np.append(self._cover, np.zeros(more, np.int64))
            self._first = np.append(self._first, np.full(more, -1))
            self._size = np.append(self._size, np.zeros(more, np.int64))

    def cover(self, groups: Ints, batch: Batch) -> None:
        """Each element covers its group while it holds, as often as its weight says."""
        self._know_groups(int(groups.max(initial=-1)) + 1)
        self._sweep.add(1, groups, batch, [np.zeros(len(batch), np.int64)])

    # --- what passes -----------------------------------------------------------------------------

    def due(self, frontier: int) -> Passed:
        """All changes before the frontier."""
        steps = self._sweep.due(frontier, len(self._cover))
        (ids,) = steps.words
        row, time, change, gone = swing(
            steps.code, steps.time, steps.port, steps.delta, ids, steps.bounds,
            self._cover, self._count, self._first, self._size, self._following, self._leading,
            self.covered_passes,
        )  # fmt: skip
        if not self._shared:
            self._gone = np.concatenate([self._gone, gone])
        return Passed(row, time, change, self._end[row])

    def hybrid(self, passed: Passed, frontier: int) -> Batch:
        """Elements that hold until their known end, unless they are retracted."""
        index = np.flatnonzero(passed.time < passed.end)  # what just ends, ends by itself
        row, end = passed.row[index], passed.end[index]
        return Batch(self.rows(row), passed.time[index], end, passed.change[index], frontier)

    def rows(self, numbers: Ints) -> Columns:
        return self._rows.rows(numbers)

    # --- forgetting ------------------------------------------------------------------------------

    def live_groups(self) -> Ints:
        """The groups that are covered, have rows, or have a future."""
        now = np.flatnonzero((self._cover != 0) | (self._first >= 0))
        return np.unique(np.concatenate([now, self._sweep.live()]))

    def renumber_groups(self, kept: Ints, renumbered: Ints) -> None:
        """Group kept[i] is now i; no other is live."""
        room = len(kept) + 1024
        known = kept < len(self._cover)
        for name, nothing in (("_cover", 0), ("_first", -1), ("_size", 0)):
            values = np.full(room, nothing, np.int64)
            values[: len(kept)][known] = getattr(self, name)[kept[known]]
            setattr(self, name, values)
        self._sweep.renumber(renumbered)

    def forget(self) -> Ints | None:
        """Drop the numbers of rows that are gone, where they are shared. Gives the new numbers by
        the old ones if any were dropped."""
        if not self._shared or not self._row_keys.is_stale:
            return None
        needed = np.zeros(self._row_keys.count, np.bool_)
        needed[self._sweep.live_words(0, 0)] = True
        if not self._grouped:
            needed[self._sweep.live()] = True
            needed |= self._cover[: len(needed)] != 0 if len(self._cover) >= len(needed) else False
        needed |= self._count[: len(needed)] != 0
        kept = np.flatnonzero(needed)
        renumbered = self._row_keys.keep(kept)
        self._rows.move(kept, len(kept) + 1024)
        self._rows.vacuum(np.arange(len(kept)))
        for name in ("_count", "_following", "_leading", "_end"):
            values = np.zeros(self._rows.capacity, np.int64)
            values[: len(kept)] = getattr(self, name)[kept]
            setattr(self, name, values)
        self._following = renumbered[self._following]
        self._leading = renumbered[self._leading]
        self._first = renumbered[self._first]
        self._sweep.renumber_words(0, 0, renumbered)
        if not self._grouped:
            self.renumber_groups(kept, renumbered)
        return renumbered

    def save(self) -> State:
        self._slots.release(self._gone)
        self._gone = np.empty(0, np.int64)
        used = np.arange(self._row_keys.count) if self._shared else self._slots.in_use()
        arrays = ("_count", "_following", "_leading", "_end", "_cover", "_first", "_size")
        return {
            "row_keys": self._row_keys.save(),
            "used": used,
            "rows": self._rows.save(used),
            "sweep": self._sweep.save(),
            "arrays": {name: getattr(self, name).copy() for name in arrays},
        }

    def restore(self, state: State) -> None:
        self._row_keys.restore(state["row_keys"])
        for name, array in state["arrays"].items():
            setattr(self, name, array)
        self._rows.move(np.arange(self._rows.capacity), len(self._count))
        self._rows.restore(state["rows"], state["used"])
        self._sweep.restore(state["sweep"])
        if not self._shared:
            self._slots.grow(len(self._count))
            self._slots.occupy(state["used"])
