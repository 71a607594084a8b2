"""Contenders: the rows of a batch that may ever be among the first rows.

A row never is if at each instant of its life there are enough better ones: until the end of the
batch, older rows that stay that long; from then on, rows of the batch that last at least as long.
For rows in random order few are left: about limit · (1 + log(rows / limit)).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.logical.plan import SortKey
from millstream.model.arrays import concat, with_room
from millstream.physical.batch import NEVER, Ints, State
from millstream.physical.kernels.contenders import cover, outlived
from millstream.physical.ordering import order_words


class Lasting:
    """How long the rows of a multiset stay, by code. Elements arrive in order of start, or never
    end."""

    def __init__(self) -> None:
        self.until, self._over = np.full((2, 64), NEVER)

    @property
    def nbytes(self) -> int:
        return 2 * self.until.nbytes

    def add(self, codes: Ints, start: Ints, end: Ints, frontier: int) -> None:
        """Add elements; those before the frontier are complete."""
        count = int(codes.max(initial=-1)) + 1
        self.until = with_room(self.until, count, NEVER)
        self._over = with_room(self._over, count, NEVER)
        cover(codes, start, end, frontier, self.until, self._over)

    def renumber(self, kept: Ints) -> None:
        """Code kept[i] is now i."""
        kept = kept[kept < len(self.until)]
        self.until, self._over = self.until[kept], self._over[kept]

    def save(self) -> State:
        return {"until": self.until.copy(), "over": self._over.copy()}

    def restore(self, state: State) -> None:
        self.until, self._over = state["until"], state["over"]


def contenders(
    values: Sequence[pa.Array],
    worst: Sequence[pa.Array],
    order: Sequence[SortKey],
    limit: int,
) -> Ints:
    """The numbers of the rows, given in order of end, that may be among the first `limit`. `values`
    are the sort values, `worst` those of a row: at least `limit` rows are no worse until the end of
    the batch."""
    both = [concat([column, last]) for column, last in zip(values, worst, strict=True)]
    ranks = ranked(both, order)
    rows, last = ranks[:-1], ranks[-1]
    return np.flatnonzero((rows <= last) | ~outlived(rows, limit))


def ranked(values: Sequence[pa.Array], order: Sequence[SortKey]) -> Ints:
    """The rank of each row in the order; equal rows have equal ranks."""
    words: list[Ints] = []
    for array, key in zip(values, order, strict=True):
        is_null = array.is_null().to_numpy(zero_copy_only=False)
        words.append((is_null != key.nulls_first).astype(np.int64))
        words += (~word if key.descending else word for word in order_words(array))
    rows = np.lexsort(words[::-1])
    differs = np.zeros(len(rows), np.int64)
    for word in words:
        differs[1:] |= word[rows[1:]] != word[rows[:-1]]
    ranks = np.empty(len(rows), np.int64)
    ranks[rows] = np.cumsum(differs)
    return ranks
