"""Ring: the area for elements that leave in the order in which they came (WEAKEST, MONOTONIC).

Elements are in a circular buffer. Expiry moves a cursor; chains are never repaired: a link that
points behind the cursor is the end of its chain (G3 §3.6, DESIGN's ring join).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.model.arrays import larger, with_room
from millstream.physical.batch import Batch, Ints
from millstream.physical.joins.areas.area import IndexedArea, Probing, newest_renumbered
from millstream.physical.kernels.ring import (
    WIDTH,
    append,
    chains_of,
    first_alive,
    probe_all,
    probe_chains,
    read_times,
    recode,
)
from millstream.physical.kernels.scans import greatest


class RingArea(IndexedArea):
    def __init__(
        self, types: Sequence[pa.DataType], probing: Probing = Probing.HASH, lazy: int = 0
    ) -> None:
        super().__init__(types, probing, lazy)
        self._base = self._stop = 0  # numbers of the first element and one past the last
        self._origin = 0  # number of the element at place 0, present or not
        self._elements = np.zeros((64, WIDTH), np.int64)
        self._codes = np.zeros(64, np.int32)  # by place
        self._newest = np.full(64, -1, np.int64)  # number of the newest element by code

    def __len__(self) -> int:
        return self._stop - self._base

    @property
    def nbytes(self) -> int:
        own = self._elements.nbytes + self._codes.nbytes + self._newest.nbytes
        return own + self._store.nbytes

    def insert(self, codes: Ints, batch: Batch) -> None:
        count = len(batch)
        if not count:
            return
        self._tidy()
        if len(self) + count > len(self._elements):
            self._grow(count)
        self._know(greatest(codes) + 1)
        self._store.put(self._places(self._stop, count), batch.columns)
        self._append(codes, batch.start, batch.end, batch.weight)
        self._stop += count

    def _append(self, codes: Ints, start: Ints, end: Ints, weight: Ints) -> None:
        append(
            codes, start, end, weight, self._stop, self._origin,
            self._elements, self._codes, self._newest,
        )  # fmt: skip

    def _grow(self, count: int) -> None:
        """Grow; elements are renumbered from 0."""
        slots, live = self.slots(), len(self)
        capacity = larger(len(self._elements), live + count)
        self._store.move(slots, capacity)
        self._relink(self.codes(), slots, capacity)
        self._store.vacuum(np.arange(live))

    def _relink(self, codes: Ints, slots: Ints, capacity: int) -> None:
        """Re-append the elements at slots with these codes, numbered from 0."""
        start, end, weight = self.times(slots)
        self._elements = np.zeros((capacity, WIDTH), np.int64)
        self._codes = np.zeros(capacity, np.int32)
        self._newest = np.full(max(64, int(codes.max(initial=0)) + 1), -1, np.int64)
        self._base = self._stop = self._origin = 0
        self._append(codes, start, end, weight)
        self._stop = len(slots)

    def _know(self, codes: int) -> None:
        self._newest = with_room(self._newest, codes, -1)

    def _probe_chains(
        self, codes: Ints, start: Ints, end: Ints, patience: int, looks: int
    ) -> tuple[Ints, Ints, int, int]:
        found, slots, touched, done = probe_chains(
            codes, start, end, self._base, self._origin, self._elements, self._newest,
            patience, looks,
        )  # fmt: skip
        return found, slots, touched, done

    def _probe_all(self, codes: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, int]:
        found, slots, touched = probe_all(
            codes, start, end, self._base, self._stop, self._origin, self._elements, self._codes
        )
        return found, slots, touched

    @property
    def _known_codes(self) -> int:
        return len(self._newest)

    def _chains_of(self, codes: Ints) -> tuple[Ints, Ints]:
        places, bounds = chains_of(
            codes, self._base, self._stop, self._origin, self._elements, self._newest
        )
        return places, bounds

    def _expire(self, frontier: int) -> None:
        self._base = first_alive(self._base, self._stop, self._origin, self._elements, frontier)
        if self._base - self._origin >= len(self._elements):
            self._origin += len(self._elements)

    def slots(self) -> Ints:
        places = np.arange(self._base - self._origin, self._stop - self._origin)
        places[places >= len(self._elements)] -= len(self._elements)
        return places

    def _places(self, first: int, count: int) -> Ints | slice:
        """The places of consecutive elements; a slice if they are contiguous."""
        place, capacity = first - self._origin, len(self._elements)
        if place >= capacity:
            place -= capacity
        if place + count <= capacity:
            return slice(place, place + count)
        return np.arange(place, place + count) % capacity

    def times(self, slots: Ints) -> tuple[Ints, Ints, Ints]:
        start, end, weight = read_times(slots, self._elements)
        return start, end, weight

    def codes(self) -> Ints:
        return self._codes[self.slots()].astype(np.int64)

    def live_codes(self) -> Ints:
        return np.flatnonzero(self._newest >= self._base) if len(self) else np.empty(0, np.int64)

    def renumber(self, renumbered: Ints) -> None:
        recode(self._base, self._stop, self._origin, self._codes, renumbered)
        self._newest = newest_renumbered(self._newest, renumbered)
