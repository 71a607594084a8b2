"""Ring: the area for elements that go in the order in which they come (WEAKEST, MONOTONIC).

Elements lie in a circular buffer. Expiry moves a cursor; chains are never repaired: a link that
points behind the cursor is the end of its chain (G3 §3.6, DESIGN's ring join).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.physical.areas.area import Area, Probing, slots_or_slice
from millstream.physical.batch import Batch, Ints
from millstream.physical.kernels.ring import first_alive, link, probe_all, probe_chains


class Ring(Area):
    def __init__(
        self, types: Sequence[pa.DataType], probing: Probing = Probing.HASH, lazy: int = 0
    ) -> None:
        super().__init__(types, probing, lazy)
        self._base = self._stop = 0  # numbers of the first element and behind the last
        self._start, self._end, self._weight, self._code, self._older = np.zeros((5, 64), np.int64)
        self._newest = np.full(64, -1, np.int64)  # number of the newest element by code

    def __len__(self) -> int:
        return self._stop - self._base

    @property
    def nbytes(self) -> int:
        return 5 * self._start.nbytes + self._newest.nbytes + self._store.nbytes

    def insert(self, codes: Ints, batch: Batch) -> None:
        count = len(batch)
        if not count:
            return
        if len(self) + count > len(self._start):
            self._grow(count)
        self._know(int(codes.max()) + 1)
        capacity = len(self._start)
        places = slots_or_slice(self._stop, count, capacity)
        self._start[places] = batch.start
        self._end[places] = batch.end
        self._weight[places] = batch.weight
        self._store.put(places, batch.columns)
        link(codes, self._stop, capacity - 1, self._code, self._older, self._newest)
        self._stop += count

    def _grow(self, count: int) -> None:
        """Twice the room; elements are numbered from 0 again."""
        slots, live = self.slots(), len(self)
        capacity = len(self._start)
        while capacity < 2 * (live + count):
            capacity *= 2
        codes = self._code[slots]
        self._store.move(slots, capacity)
        for name in ("_start", "_end", "_weight"):
            larger = np.zeros(capacity, np.int64)
            larger[:live] = getattr(self, name)[slots]
            setattr(self, name, larger)
        self._code, self._older = np.zeros((2, capacity), np.int64)
        self._base, self._stop = 0, live
        self._link_all(codes)
        self._store.vacuum(np.arange(live))

    def _link_all(self, codes: Ints) -> None:
        self._newest = np.full(max(64, int(codes.max(initial=0)) + 1), -1, np.int64)
        link(codes, self._base, len(self._start) - 1, self._code, self._older, self._newest)

    def _know(self, codes: int) -> None:
        if len(self._newest) < codes:
            more = max(codes, 2 * len(self._newest)) - len(self._newest)
            self._newest = np.append(self._newest, np.full(more, -1))

    def probe(self, codes: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        mask = len(self._start) - 1
        if self.probing is Probing.HASH:
            found, slots, touched = probe_chains(
                codes, start, end, self._base, mask,
                self._start, self._end, self._older, self._newest,
            )  # fmt: skip
        else:
            found, slots, touched = probe_all(
                codes, start, end, self._base, self._stop, mask,
                self._start, self._end, self._code,
            )  # fmt: skip
        self.touched += touched
        return found, slots

    def _expire(self, frontier: int) -> None:
        mask = len(self._start) - 1
        self._base = first_alive(self._base, self._stop, mask, self._end, frontier)

    def slots(self) -> Ints:
        return np.arange(self._base, self._stop) & (len(self._start) - 1)

    def times(self, slots: Ints) -> tuple[Ints, Ints, Ints]:
        return self._start[slots], self._end[slots], self._weight[slots]

    def codes(self) -> Ints:
        return self._code[self.slots()]

    def renumber(self, renumbered: Ints) -> None:
        self._link_all(renumbered[self.codes()])
