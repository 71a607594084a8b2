"""Sweep areas: the elements of one input of a join that later elements of another may meet.

K's abstract data type (§11.3) for batches. An area holds elements with the code of their join key;
`probe` finds, for other elements, those with the same code whose intervals overlap. `expire` drops
what ends before the frontier of the opposite input: nothing can meet it any more. A slot is where
an element lies; it stays valid until the next change of the area.

The forms differ in how elements expire (G5 §5.3): a `Ring` for those that go in the order in which
they come, a `Calendar` for all others. Each is probed through an index of chains by code, or by a
nested loop over everything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millstream.physical.batch import NEVER, Batch, Columns, Ints, State
from millstream.physical.store import RowStore

Number = TypeVar("Number", np.int32, np.int64)


class Probing(Enum):
    HASH = "hash"  # along the chain of the key
    LOOP = "loop"  # through all elements


class Area(ABC):
    """`lazy` is how far the frontier may run ahead of expiry, in chronons (G3, G5: eager is 0)."""

    def __init__(
        self, types: Sequence[pa.DataType], probing: Probing = Probing.HASH, lazy: int = 0
    ) -> None:
        self.types = tuple(types)
        self.probing = probing
        self.lazy = lazy
        self.touched = 0  # elements looked at by all probes so far
        self._store = RowStore(types)
        self._expired = NEVER

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def nbytes(self) -> int: ...

    @abstractmethod
    def insert(self, codes: Ints, batch: Batch) -> None: ...

    def _tidy(self) -> None:
        """Before elements are put: drop what only those refer to that are gone."""
        if self._store.is_stale:
            self._store.vacuum(self.slots())

    @abstractmethod
    def probe(self, codes: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        """Pairs (number of the probing element, slot) of equal code and overlapping intervals."""

    def expire(self, frontier: int) -> None:
        """Drop what ends at or before the frontier; if lazy, only now and then."""
        if frontier == NEVER:
            return
        if self._expired == NEVER or frontier - self._expired >= max(self.lazy, 1):
            self._expire(frontier)
            self._expired = frontier

    @abstractmethod
    def _expire(self, frontier: int) -> None: ...

    @abstractmethod
    def slots(self) -> Ints:
        """The slots in use, in the order in which elements came."""

    @abstractmethod
    def times(self, slots: Ints) -> tuple[Ints, Ints, Ints]:
        """Starts, ends and weights."""

    @abstractmethod
    def codes(self) -> Ints:
        """The codes of all elements."""

    @abstractmethod
    def live_codes(self) -> Ints:
        """The codes that elements have, each once, in ascending order."""

    @abstractmethod
    def renumber(self, renumbered: Ints) -> None:
        """Codes have changed: the new one by the old one."""

    def rows(self, slots: Ints) -> Columns:
        return self._store.rows(slots)

    def batch(self, slots: Ints, frontier: int = NEVER) -> Batch:
        start, end, weight = self.times(slots)
        return Batch(self.rows(slots), start, end, weight, frontier)

    def save(self) -> State:
        """The elements alone; the index is made anew."""
        slots = self.slots()
        start, end, weight = self.times(slots)
        return {
            "rows": list(self.rows(slots)),
            "start": start,
            "end": end,
            "weight": weight,
            "code": self.codes(),
            "expired": self._expired,
        }

    def restore(self, state: State) -> None:
        batch = Batch.of(state["rows"], state["start"], state["end"], state["weight"])
        self.insert(state["code"], batch)
        self._expired = state["expired"]


def newest_renumbered(newest: NDArray[Number], renumbered: Ints) -> NDArray[Number]:
    """The heads of chains by code, for the new codes, which are in the order of the old ones; links
    do not change."""
    kept = np.flatnonzero(renumbered[: min(len(newest), len(renumbered) - 1)] >= 0)
    heads = newest[kept]
    if len(newest) > 4 * (len(kept) + 1024):  # there was a burst
        newest = np.empty(len(kept) + 1024, newest.dtype)
    newest[: len(kept)], newest[len(kept) :] = heads, -1
    return newest
