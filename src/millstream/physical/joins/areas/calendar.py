"""Calendar: the area for elements that leave in any order (WEAK, STRICT).

Elements are in a pool, linked in partitions by end; expiry visits the partitions that the frontier
has passed and unlinks their elements from their chains (G5 §5.3.2). An element without an end is in
no partition until it is closed.

Input that may be retracted (STRICT): a negative element closes the positive one that it retracts,
which stays with its true end as long as something may join with it. `Closing.KEYED` finds it
through chains by row, for when retractions are common; `Closing.SCANNED` scans the chain of its
join key.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np
import pyarrow as pa

from millstream.model.arrays import larger, with_room
from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch, Ints
from millstream.physical.joins.areas.area import IndexedArea, Probing, newest_renumbered
from millstream.physical.kernels.calendar import (
    chains_of,
    close_elements,
    expire_partitions,
    link_places,
    probe_all,
    probe_pool,
    schedule,
    take_places,
)
from millstream.physical.kernels.scans import greatest, least
from millstream.physical.state.keys import KeySpace


class Closing(Enum):
    KEYED = "keyed"
    SCANNED = "scanned"


class Chains:
    """Doubly linked lists of places, one per code, newest first; free places have code -1."""

    def __init__(self, capacity: int) -> None:
        self.code, self.older, self.newer = np.full((3, capacity), -1, np.int32)
        self.newest = np.full(64, -1, np.int32)

    @property
    def nbytes(self) -> int:
        return 3 * self.code.nbytes + self.newest.nbytes

    def link(self, places: Ints, codes: Ints) -> None:
        self.know(int(codes.max(initial=-1)) + 1)
        link_places(places, codes, self.code, self.older, self.newer, self.newest)

    def know(self, codes: int) -> None:
        self.newest = with_room(self.newest, codes, -1)

    def renumber(self, places: Ints, renumbered: Ints) -> None:
        """Replace the codes of the places in use; `renumbered` has the new code by the old one."""
        self.code[places] = renumbered[self.code[places]]
        self.newest = newest_renumbered(self.newest, renumbered)

    def grow(self, capacity: int) -> None:
        more = np.full(capacity - len(self.code), -1, np.int32)
        self.code = np.append(self.code, more)
        self.older = np.append(self.older, more)
        self.newer = np.append(self.newer, more)


class CalendarArea(IndexedArea):
    def __init__(
        self,
        types: Sequence[pa.DataType],
        probing: Probing = Probing.HASH,
        lazy: int = 0,
        closing: Closing | None = None,
        partitions: int = 64,
    ) -> None:
        super().__init__(types, probing, lazy)
        self._closing = closing
        self._row_keys = KeySpace(types if closing is not None else ())
        self._count = 0
        self._start, self._end, self._weight = np.zeros((3, 64), np.int64)
        self._by_key = Chains(64)
        self._by_row = Chains(0 if closing is None else 64)
        self._width = 1
        self._first_end = INFINITY  # of all elements so far
        self._due = np.full(partitions, -1, np.int64)  # the first place of each partition
        self._next_due = np.append(np.arange(1, 64), -1).astype(np.int32)
        self._free = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        own = 3 * self._start.nbytes + self._next_due.nbytes + self._due.nbytes
        chains = self._by_key.nbytes + self._by_row.nbytes
        return own + chains + self._store.nbytes + self._row_keys.nbytes

    # --- inserting -------------------------------------------------------------------------------

    def insert(self, codes: Ints, batch: Batch) -> None:
        """A negative element closes elements of earlier batches; the batch itself is netted."""
        if not len(batch):
            return
        self._tidy()
        self._make_room(2 * len(batch))
        self._widen(batch.end)
        if self._closing is None:
            self._append(codes, batch)
            return
        rows = self._row_keys.encode(batch.columns, len(batch))
        comes = batch.weight > 0
        if comes.all():
            self._append(codes, batch, rows)
            return
        goes = np.flatnonzero(~comes)
        left = self._close(codes[goes], batch.take(goes), rows[goes])
        self._append(codes[comes], batch.where(comes), rows[comes])
        if left.any():  # retracted before it arrived: kept as a negative element
            index = goes[left > 0]
            rest = batch.take(index)
            rest.weight = -left[left > 0]
            self._append(codes[index], rest, rows[index])

    def _append(self, codes: Ints, batch: Batch, rows: Ints | None = None) -> None:
        places, self._free = take_places(self._free, len(batch), self._next_due)
        self._start[places] = batch.start
        self._end[places] = batch.end
        self._weight[places] = batch.weight
        self._store.put(places, batch.columns)
        self._by_key.link(places, codes)
        if rows is not None:
            if self._closing is Closing.KEYED:
                self._by_row.link(places, rows)
            else:
                self._by_row.code[places] = rows
        schedule(places, self._end, self._width, self._due, self._next_due)
        self._count += len(batch)

    def _close(self, codes: Ints, batch: Batch, rows: Ints) -> Ints:
        """Close what the negative elements of a batch retract; returns the weights that found no
        match."""
        left = -batch.weight
        split_from = np.empty(2 * len(batch), np.int64)
        self._by_key.know(greatest(codes) + 1)
        self._by_row.know(greatest(rows) + 1)
        self._free, added, touched, splits = close_elements(
            rows, codes, batch.start, batch.end, left, self._width, self._free,
            self._start, self._end, self._weight, self._by_key.code, self._by_row.code,
            self._by_key.older, self._by_key.newer, self._by_key.newest,
            self._by_row.older, self._by_row.newer, self._by_row.newest,
            self._due, self._next_due, self._closing is Closing.KEYED, split_from,
        )  # fmt: skip
        if splits:
            origins, copies = split_from[: 2 * splits].reshape(-1, 2).T
            self._store.put(copies, list(self._store.rows(origins)))
        self._count += added
        self.touched += touched
        return left

    def _make_room(self, count: int) -> None:
        old = len(self._start)
        if self._count + count <= old:
            return
        new = larger(old, self._count + count)
        for name in ("_start", "_end", "_weight"):
            array = getattr(self, name)
            setattr(self, name, np.append(array, np.zeros(new - old, array.dtype)))
        self._by_key.grow(new)
        if self._closing is not None:
            self._by_row.grow(new)
        free = np.append(np.arange(old + 1, new), self._free).astype(np.int32)
        self._next_due = np.append(self._next_due, free)
        self._free = old
        self._store.move(np.arange(self._store.capacity), new)

    def _tidy(self) -> None:
        super()._tidy()
        if self._closing is not None and self._row_keys.is_stale:
            places = self.slots()
            used = np.zeros(self._row_keys.count, np.bool_)
            used[self._by_row.code[places]] = True
            self._by_row.renumber(places, self._row_keys.keep(np.flatnonzero(used)))

    def _widen(self, ends: Ints) -> None:
        """Widen partitions until all ends lie within one round of them."""
        finite = ends[ends < INFINITY]
        if not len(finite):
            return
        self._first_end = min(self._first_end, least(finite))
        last, first = greatest(finite), max(self._expired, self._first_end)
        width = self._width
        while (last - first) // width >= len(self._due) - 1:
            width *= 2
        if width != self._width:
            self._width = width
            self._due[:] = -1
            schedule(self.slots(), self._end, width, self._due, self._next_due)

    # --- probing and expiry ----------------------------------------------------------------------

    def _probe_chains(
        self, codes: Ints, start: Ints, end: Ints, patience: int, looks: int
    ) -> tuple[Ints, Ints, int, int]:
        found, slots, touched, done = probe_pool(
            codes, start, end, self._start, self._end,
            self._by_key.older, self._by_key.newest, patience, looks,
        )  # fmt: skip
        return found, slots, touched, done

    def _probe_all(self, codes: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, int]:
        found, slots, touched = probe_all(
            codes, start, end, self.slots(), self._start, self._end, self._by_key.code
        )
        return found, slots, touched

    @property
    def _known_codes(self) -> int:
        return len(self._by_key.newest)

    def _chains_of(self, codes: Ints) -> tuple[Ints, Ints]:
        places, bounds = chains_of(codes, self._by_key.older, self._by_key.newest)
        return places, bounds

    def _expire(self, frontier: int) -> None:
        if not self._count:
            return
        first = self._expired // self._width if self._expired != NEVER else self._earliest()
        last = min(frontier // self._width, first + len(self._due))
        if frontier - self._expired < self._width:
            last -= 1  # skip the frontier's own partition: examined only once
        if last < first:
            return
        self._free, dropped, touched = expire_partitions(
            first, last, frontier, self._width, self._end, self._due, self._next_due,
            self._by_key.code, self._by_key.older, self._by_key.newer, self._by_key.newest,
            self._by_row.code, self._by_row.older, self._by_row.newer, self._by_row.newest,
            self._closing is Closing.KEYED, self._free,
        )  # fmt: skip
        self._count -= dropped
        self.touched += touched

    def _earliest(self) -> int:
        return int(self._end[self.slots()].min()) // self._width

    # --- what is there ---------------------------------------------------------------------------

    def slots(self) -> Ints:
        return np.flatnonzero(self._by_key.code >= 0)

    def times(self, slots: Ints) -> tuple[Ints, Ints, Ints]:
        return self._start[slots], self._end[slots], self._weight[slots]

    def codes(self) -> Ints:
        return self._by_key.code[self.slots()].astype(np.int64)

    def live_codes(self) -> Ints:
        return np.flatnonzero(self._by_key.newest >= 0)

    def renumber(self, renumbered: Ints) -> None:
        self._by_key.renumber(self.slots(), renumbered)
