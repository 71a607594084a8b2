"""Sweep areas: the elements of one join input that later elements of another may join with.

K's abstract data type (§11.3) for batches. An area holds elements with the code of their join key;
`probe` finds, for other elements, those with the same code whose intervals overlap. `expire` drops
elements that end before the frontier of the opposite input: nothing can join with them any more. A
slot is the place of an element, valid until the next change of the area.

The forms differ in how elements expire (G5 §5.3): a `RingArea` for those that leave in the order
in which they came, a `CalendarArea` for all others. Both are probed through an index of chains by
code, or by a nested loop over all elements.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millstream.physical.batch import NEVER, Batch, Columns, Ints, State
from millstream.physical.joins.portions import Portions
from millstream.physical.kernels.overlaps import overlapping
from millstream.physical.kernels.steps import grouped
from millstream.physical.state.store import RowStore

Number = TypeVar("Number", np.int32, np.int64)

# When to switch from chains to a sweep: after this many failed examinations, and per element.
FEW_LOOKS = 4096
LOOKS = 16
FEW_PROBES = 8  # this few elements never sweep: each examines its chain once anyway
NO_END = 2**62


class Probing(Enum):
    HASH = "hash"  # along the chain of the key
    LOOP = "loop"  # through all elements


class Area(ABC):
    """What a join asks of the elements of one of its inputs; see the module for the meaning.

    A form of area is a subclass. `register_area` of `joins.areas.forms` makes it known by a name.
    """

    def __init__(self, types: Sequence[pa.DataType], lazy: int = 0) -> None:
        """`types` are those of the columns. `lazy` is how far the frontier may run ahead of expiry,
        in chronons (G3, G5: eager is 0)."""
        self.types = tuple(types)
        self.lazy = lazy
        self.touched = 0  # elements examined by all probes so far
        self._expired = NEVER

    @abstractmethod
    def __len__(self) -> int:
        """The number of elements."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The memory that the area takes."""

    @abstractmethod
    def insert(self, codes: Ints, batch: Batch) -> None:
        """Add the elements of a batch. The code of an element is that of its join key. The batch
        may refer to memory that changes after the call, so its rows must be copied."""

    @abstractmethod
    def probe(self, codes: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        """Pairs (number of the probing element, slot) of equal code and overlapping intervals. A
        code that the area does not know, such as -1, has no partners."""

    def probe_in_pieces(self, codes: Ints, start: Ints, end: Ints) -> Iterator[tuple[Ints, Ints]]:
        """As `probe`, a portion of the elements at a time."""
        first, portions = 0, Portions(len(self))
        while first < len(codes):
            piece = slice(first, first + portions.size)
            found, slots = self.probe(codes[piece], start[piece], end[piece])
            yield found + first, slots
            first = piece.stop
            portions.formed(len(found))

    def expire(self, frontier: int) -> None:
        """Drop elements that end at or before the frontier; if lazy, only occasionally."""
        if frontier == NEVER:
            return
        if self._expired == NEVER or frontier - self._expired >= max(self.lazy, 1):
            self._expire(frontier)
            self._expired = frontier

    @abstractmethod
    def _expire(self, frontier: int) -> None:
        """Drop elements that end at or before the frontier. Others may get new slots."""

    @abstractmethod
    def slots(self) -> Ints:
        """The slots in use, in order of arrival."""

    @abstractmethod
    def times(self, slots: Ints) -> tuple[Ints, Ints, Ints]:
        """The starts, ends and weights of the elements at these slots."""

    @abstractmethod
    def rows(self, slots: Ints) -> Columns:
        """The rows of the elements at these slots."""

    @abstractmethod
    def codes(self) -> Ints:
        """The codes of all elements, in the order of `slots`."""

    @abstractmethod
    def live_codes(self) -> Ints:
        """The distinct codes of elements, ascending."""

    @abstractmethod
    def renumber(self, renumbered: Ints) -> None:
        """Replace codes; `renumbered` has the new code by the old one."""

    def batch(self, slots: Ints, frontier: int = NEVER) -> Batch:
        start, end, weight = self.times(slots)
        return Batch(self.rows(slots), start, end, weight, frontier)

    def save(self) -> State:
        """Saves only the elements; `restore` inserts them into an empty area."""
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


class IndexedArea(Area):
    """An area that is probed along chains of equal codes, by a sweep, or by a nested loop."""

    def __init__(
        self, types: Sequence[pa.DataType], probing: Probing = Probing.HASH, lazy: int = 0
    ) -> None:
        super().__init__(types, lazy)
        self.probing = probing
        self._store = RowStore(types)

    def rows(self, slots: Ints) -> Columns:
        return self._store.rows(slots)

    def _tidy(self) -> None:
        """Before insertion: drop data that only expired elements refer to."""
        if self._store.is_stale:
            self._store.vacuum(self.slots())

    def probe(self, codes: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        """Pairs (number of the probing element, slot) of equal code and overlapping intervals."""
        if self.probing is Probing.LOOP:
            found, slots, touched = self._probe_all(codes, start, end)
            self.touched += touched
            return found, slots
        patience = FEW_LOOKS if len(codes) >= FEW_PROBES else NO_END
        found, slots, touched, done = self._probe_chains(codes, start, end, patience, LOOKS)
        self.touched += touched
        if done == len(codes):
            return found, slots
        more, more_slots = self._sweep(codes[done:], start[done:], end[done:])
        return np.append(found, more + done), np.append(slots, more_slots)

    def _sweep(self, codes: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        """As `probe`, for many elements of few keys, most of which do not overlap: sorts both sides
        by start."""
        known = np.flatnonzero((codes >= 0) & (codes < self._known_codes))
        order, bounds = grouped(codes[known], np.zeros(self._known_codes, np.int64))
        mine = known[order]
        places, place_bounds = self._chains_of(codes[mine[bounds[:-1]]])
        their_start, their_end, _ = self.times(places)
        theirs = np.arange(len(places))
        found, numbers = overlapping(
            mine, bounds, start, end, theirs, place_bounds, their_start, their_end
        )
        self.touched += len(mine) + len(places) + len(found)
        return found, places[numbers]

    @abstractmethod
    def _probe_chains(
        self, codes: Ints, start: Ints, end: Ints, patience: int, looks: int
    ) -> tuple[Ints, Ints, int, int]:
        """Along the chain of each code: pairs, how many elements of the area were examined, and how
        many of the probing ones are done. Stops after `patience` failed examinations, and `looks`
        more for each of the probing ones that is done."""

    @abstractmethod
    def _probe_all(self, codes: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, int]:
        """By a nested loop: pairs, and how many elements were examined."""

    @property
    @abstractmethod
    def _known_codes(self) -> int:
        """An upper bound (exclusive) of the codes of elements."""

    @abstractmethod
    def _chains_of(self, codes: Ints) -> tuple[Ints, Ints]:
        """The slots of each of these known codes, code by code, the oldest first; and the offset of
        each code, followed by the total."""


def newest_renumbered(newest: NDArray[Number], renumbered: Ints) -> NDArray[Number]:
    """The heads of chains by new code; new codes are in the order of the old ones, and links do not
    change."""
    kept = np.flatnonzero(renumbered[: min(len(newest), len(renumbered) - 1)] >= 0)
    heads = newest[kept]
    if len(newest) > 4 * (len(kept) + 1024):  # after a burst
        newest = np.empty(len(kept) + 1024, newest.dtype)
    newest[: len(kept)], newest[len(kept) :] = heads, -1
    return newest
