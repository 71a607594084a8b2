"""Multisets of rows: each distinct row once, under a code, with its count.

`counted_rows` adds up the weights of equal rows in one batch. `DistinctRows` and `CountedRows` hold
rows for longer: operators, tables and kept answers build on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.model.arrays import with_room
from millstream.physical.batch import Columns, Ints, Mask, State
from millstream.physical.state.key_rows import KeyRows
from millstream.physical.state.keys import KeySpace

_SPARE = 1024  # codes that there is room for after rows were forgotten


@dataclass(frozen=True)
class Counted:
    """The distinct rows of a batch: the position of the first occurrence of each, the sum of the
    weights, and for each row of the batch the number of the distinct row that it equals."""

    first: Ints
    weight: Ints
    group: Ints

    def nonzero(self) -> tuple[Ints, Ints]:
        """Position and weight of the rows whose weights do not cancel out."""
        left = np.flatnonzero(self.weight)
        return self.first[left], self.weight[left]


def counted_rows(columns: Sequence[pa.Array], weight: Ints) -> Counted:
    """Add up the weights of equal rows. The result is in order of first occurrence.

    >>> rows = counted_rows([pa.array(["b", "a", "b", "c"])], np.array([2, 1, 1, 1]))
    >>> rows.first.tolist(), rows.weight.tolist(), rows.group.tolist()
    ([0, 1, 3], [3, 1, 1], [0, 1, 0, 2])
    """
    space = KeySpace([column.type for column in columns])
    codes = space.encode(columns, len(weight))  # numbered in order of first occurrence
    return Counted(first_rows(codes, space.count), _sums(codes, weight, space.count), codes)


def counted_codes(codes: Ints, weight: Ints) -> Counted:
    """Add up the weights of equal codes, which may be any numbers. The result is in their order."""
    _, first, group = np.unique(codes, return_index=True, return_inverse=True)
    return Counted(first, _sums(group, weight, len(first)), group)


def first_rows(codes: Ints, count: int) -> Ints:
    """The position of the first occurrence of each code below `count`."""
    first = np.zeros(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def _sums(group: Ints, weight: Ints, count: int) -> Ints:
    return np.bincount(group, weight, count).astype(np.int64)


class DistinctRows:
    """Rows under dense codes; equal rows have the same code. The codes are those of `keys`."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.keys = KeySpace(types)
        self._rows = KeyRows(self.keys)

    def __len__(self) -> int:
        return self.keys.count

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self._rows.nbytes

    def encode(self, columns: Sequence[pa.Array], length: int) -> Ints:
        """The codes of rows. Rows not seen before are stored."""
        known = self.keys.count
        codes = self.keys.encode(columns, length)
        if self.keys.count > known:
            fresh = np.flatnonzero(codes >= known)
            new = columns if isinstance(columns, Columns) else Columns.of(columns)
            self._make_room(self.keys.count)
            self._rows.put(codes[fresh], new.take(fresh))
        return codes

    def find(self, columns: Sequence[pa.Array], length: int) -> Ints:
        """The codes of rows, -1 where a row is not stored."""
        return self.keys.encode(columns, length, add=False)

    def rows(self, codes: Ints) -> Columns:
        """Stored rows, gathered when read, which must be before rows are added or forgotten."""
        return self._rows.rows(codes)

    def keep(self, codes: Ints) -> Ints:
        """Forget all rows but these; `KeySpace.keep` says which codes they get."""
        renumbered = self.keys.keep(codes)
        self._rows.move(codes, len(codes) + _SPARE)
        self._rows.vacuum(np.arange(len(codes)))
        return renumbered

    def _make_room(self, count: int) -> None:
        self._rows.grow(count)

    def save(self) -> State:
        return {"keys": self.keys.save(), "rows": self._rows.save(self.keys.count)}

    def restore(self, state: State) -> None:
        self.keys.restore(state["keys"])
        self._rows.restore(state["rows"], self.keys.count)


class CountedRows(DistinctRows):
    """Rows under codes, and how often each occurs in each of some inputs.

    >>> rows = CountedRows([pa.string()])
    >>> rows.add(rows.encode([pa.array(["a", "b", "a"])], 3), np.array([1, 1, 1]))
    >>> rows.count_of(rows.find([pa.array(["a", "c"])], 2)).tolist()
    [2, 0]
    """

    def __init__(self, types: Sequence[pa.DataType], inputs: int = 1) -> None:
        super().__init__(types)
        self.counts = np.zeros((64, inputs), np.int64)  # by code and input

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.counts.nbytes

    def add(self, codes: Ints, weight: Ints) -> None:
        """Add to the counts of the first input."""
        np.add.at(self.counts[:, 0], codes, weight)

    def count_of(self, codes: Ints) -> Ints:
        """The counts in the first input, 0 for -1."""
        return np.where(codes < 0, 0, self.counts[:, 0][codes])

    def forget(self, used: Ints | None = None) -> Ints | None:
        """Forget rows that no input has and that are not in `used`, once enough have come for this
        to pay. Gives the new codes by the old ones, or None where nothing was done."""
        if not self.keys.is_stale:
            return None
        needed: Mask = (self.counts[: len(self)] != 0).any(axis=1)
        if used is not None:
            needed[used] = True
        kept = np.flatnonzero(needed)
        renumbered = self.keep(kept)
        self.counts = with_room(self.counts[kept], len(kept) + _SPARE)
        return renumbered

    def _make_room(self, count: int) -> None:
        super()._make_room(count)
        self.counts = with_room(self.counts, count)

    def save(self) -> State:
        return {**super().save(), "counts": self.counts[: len(self)].copy()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.counts = with_room(state["counts"], max(64, len(self)))


def kept_codes(renumbered: Ints) -> Ints:
    """The codes that were kept, by what `forget` gave."""
    return np.flatnonzero(renumbered[:-1] >= 0)
