"""Groups whose values are stored in slabs of one pool."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from millstream.physical.accumulators.accumulator import grown
from millstream.physical.accumulators.slabs import (
    NONE,
    USED,
    SlabPool,
    empty_pool,
    enlarged,
    full_pool,
    is_wasteful,
)
from millstream.physical.batch import Ints, State


class SlabGroups(ABC):
    """`roots` locates the slabs of each group, with one number or several; NONE if it is empty."""

    def __init__(self, *numbers: int) -> None:
        self.roots: Ints = np.empty((0, *numbers), np.int64)
        self.pool = empty_pool()

    @abstractmethod
    def _copy_all(self, pool: SlabPool) -> None:
        """Copy all slabs to an empty pool."""

    def enlarge(self) -> None:
        self.pool = enlarged(self.pool)

    def tidy(self) -> None:
        """Compact the slabs if most of the pool is unused."""
        if is_wasteful(self.pool):
            self._pack(2 * int(self.pool.marks[USED]))

    def _pack(self, size: int) -> None:
        pool = empty_pool(size)
        self._copy_all(pool)
        self.pool = pool

    def grow(self, capacity: int) -> None:
        present = len(self.roots)
        if capacity > present:
            self.remap(np.arange(present), grown(present, capacity))

    def remap(self, old: Ints, capacity: int) -> None:
        roots = np.full((capacity, *self.roots.shape[1:]), NONE)
        roots[: len(old)] = self.roots[old]
        self.roots = roots

    def forget(self, groups: Ints) -> None:
        self.roots[groups] = NONE

    @property
    def nbytes(self) -> int:
        return self.roots.nbytes + self.pool.keys.nbytes + self.pool.items.nbytes

    def save(self) -> State:
        self._pack(int(self.pool.marks[USED]))
        used = slice(int(self.pool.marks[USED]))
        pairs = self.pool.keys[used].copy(), self.pool.items[used].copy()
        return {"roots": self.roots.copy(), "pairs": pairs}

    def restore(self, state: State) -> None:
        self.roots = state["roots"].copy()
        self.pool = full_pool(*state["pairs"])
