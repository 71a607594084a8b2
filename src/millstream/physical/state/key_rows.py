"""The rows of a key space by code, decoded from the words of the keys where possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.physical.batch import Columns, Gatherable, Ints, State
from millstream.physical.state.keys import KeySpace
from millstream.physical.state.store import RowStore


class KeyColumn:
    """A column of the keys, gathered from their words."""

    def __init__(self, keys: KeySpace, number: int) -> None:
        self._keys, self._number = keys, number

    def take(self, index: Ints) -> pa.Array:
        return self._keys.column(self._number, index)

    def long_sizes(self, index: Ints) -> Ints | None:
        return self._keys.long_sizes(self._number, index)


class KeyRows:
    """Like a `RowStore` whose slots are the codes of keys. Nested values, which keys decompose, are
    stored as they came."""

    def __init__(self, keys: KeySpace) -> None:
        self._kept = [i for i in range(len(keys.types)) if not keys.tells(i)]
        self._store = RowStore([keys.types[i] for i in self._kept])
        kept = iter(self._store.columns)
        self._columns: Sequence[Gatherable] = [
            KeyColumn(keys, i) if keys.tells(i) else next(kept) for i in range(len(keys.types))
        ]

    @property
    def nbytes(self) -> int:
        return self._store.nbytes

    def put(self, codes: Ints, columns: Columns) -> None:
        self._store.put(codes, Columns([columns.lazy[i] for i in self._kept]))

    def rows(self, codes: Ints) -> Columns:
        """Gathered when read, which must happen before the keys change."""
        return Columns.gathered(self._columns, codes)

    def move(self, old: Ints, capacity: int) -> None:
        self._store.move(old, capacity)

    def grow(self, capacity: int) -> None:
        self._store.grow(capacity)

    def vacuum(self, codes: Ints) -> None:
        self._store.vacuum(codes)

    def save(self, count: int) -> State:
        return self._store.save(np.arange(count))

    def restore(self, state: State, count: int) -> None:
        self._store.grow(count)
        self._store.restore(state, np.arange(count))
