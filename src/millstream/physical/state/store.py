"""Stores the rows of an operator by slot.

Values of fixed width are in NumPy arrays, strings are codes of a pool. The cost of gathering rows
does not depend on the size of the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.model.arrays import int64, is_plain, larger, of_view, validity, view
from millstream.model.values import to_arrow, to_plain
from millstream.physical.batch import Columns, Ints, State
from millstream.physical.state.pool import StringPool


class ColumnStore:
    """One column. `valid` is allocated at the first NULL."""

    def __init__(self, type: pa.DataType, capacity: int) -> None:
        self.type = type
        self.valid: np.ndarray | None = None
        self.values = self._room(capacity)

    def _room(self, capacity: int) -> np.ndarray:
        return np.empty((capacity, *self._shape()), self._dtype())

    def _dtype(self) -> Any:
        return np.int32 if is_plain(self.type) and self.type.bit_width == 32 else np.int64

    def _shape(self) -> tuple[int, ...]:
        return ()

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes + (0 if self.valid is None else self.valid.nbytes))

    def put(self, slots: Ints | slice, array: pa.Array) -> None:
        self.values[slots] = self._encoded(array)
        valid = validity(array)
        if valid is not None and self.valid is None:
            self.valid = np.ones(len(self.values), np.bool_)
        if self.valid is not None:
            self.valid[slots] = True if valid is None else valid

    def take(self, index: Ints) -> pa.Array:
        valid = None if self.valid is None else self.valid[index]
        return self._decoded(self.values[index], valid)

    def long_sizes(self, index: Ints) -> Ints | None:
        """The lengths in bytes of texts, if they may be too long for one array."""
        return None

    def move(self, old: Ints, capacity: int) -> None:
        """Slot i was old[i]; there is room for `capacity` slots."""
        values = self._room(capacity)
        values[: len(old)] = self.values[old]
        self.values = values
        if self.valid is not None:
            valid = np.ones(capacity, np.bool_)
            valid[: len(old)] = self.valid[old]
            self.valid = valid

    @property
    def is_stale(self) -> bool:
        """Whether there may be half as much to drop as to keep."""
        return False

    def vacuum(self, slots: Ints) -> None:
        """Drop data that only other slots refer to."""

    def _encoded(self, array: pa.Array) -> np.ndarray:
        return view(array)

    def _decoded(self, values: np.ndarray, valid: np.ndarray | None) -> pa.Array:
        return of_view(values, self.type, valid)


class BooleanStore(ColumnStore):
    def _dtype(self) -> Any:
        return np.bool_

    def _encoded(self, array: pa.Array) -> np.ndarray:
        return int64(array).astype(np.bool_)

    def _decoded(self, values: np.ndarray, valid: np.ndarray | None) -> pa.Array:
        return pa.array(values, mask=None if valid is None else ~valid)


class DecimalStore(ColumnStore):
    def _shape(self) -> tuple[int, ...]:
        return (2,)

    def _encoded(self, array: pa.Array) -> np.ndarray:
        buffer = array.buffers()[1]
        return np.frombuffer(buffer, np.int64, 2 * len(array), array.offset * 16).reshape(-1, 2)


class StringStore(ColumnStore):
    def __init__(self, type: pa.DataType, capacity: int) -> None:
        super().__init__(type, capacity)
        self.pool = StringPool()
        self._kept = 0

    def _room(self, capacity: int) -> np.ndarray:
        return np.full(capacity, -1, np.int32)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.pool.nbytes

    def put(self, slots: Ints | slice, array: pa.Array) -> None:
        self.values[slots] = self.pool.encode(array)

    def _decoded(self, values: np.ndarray, valid: np.ndarray | None) -> pa.Array:
        return self.pool.decode(values, self.type)

    def long_sizes(self, index: Ints) -> Ints | None:
        return self.pool.long_sizes(self.values[index])

    @property
    def is_stale(self) -> bool:
        return self.pool.count > self._kept + self._kept // 2 + 1024

    def vacuum(self, slots: Ints) -> None:
        if self.is_stale:
            used = np.zeros(self.pool.count + 1, np.bool_)  # the last entry is for NULL
            used[self.values[slots]] = True
            kept = self.pool.keep(np.flatnonzero(used[:-1]))
            self.values[slots] = kept[self.values[slots]]
            self._kept = self.pool.count


class NestedStore(ColumnStore):
    """Arrays and structs, as plain values."""

    def _dtype(self) -> Any:
        return np.object_

    def put(self, slots: Ints | slice, array: pa.Array) -> None:
        plain = np.empty(len(array), np.object_)
        plain[:] = to_plain(array, self.type)
        self.values[slots] = plain

    def _decoded(self, values: np.ndarray, valid: np.ndarray | None) -> pa.Array:
        return to_arrow(values.tolist(), self.type)


def column_store(type: pa.DataType, capacity: int) -> ColumnStore:
    if pa.types.is_boolean(type):
        return BooleanStore(type, capacity)
    if is_plain(type):
        return ColumnStore(type, capacity)
    if pa.types.is_decimal(type):
        return DecimalStore(type, capacity)
    if pa.types.is_string(type) or pa.types.is_binary(type):
        return StringStore(type, capacity)
    return NestedStore(type, capacity)


class RowStore:
    """Rows by slot. The caller decides which slots are in use."""

    def __init__(self, types: Sequence[pa.DataType], capacity: int = 64) -> None:
        self.capacity = capacity
        self.columns = [column_store(type, capacity) for type in types]

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns)

    def put(self, slots: Ints | slice, columns: Sequence[pa.Array]) -> None:
        for store, array in zip(self.columns, columns, strict=True):
            store.put(slots, array)

    def rows(self, slots: Ints) -> Columns:
        """The rows at slots, gathered when read, which must happen before the store changes."""
        return Columns.gathered(self.columns, slots)

    def move(self, old: Ints, capacity: int) -> None:
        self.capacity = capacity
        for column in self.columns:
            column.move(old, capacity)

    def grow(self, capacity: int) -> None:
        if capacity > self.capacity:
            self.move(np.arange(self.capacity), larger(self.capacity, capacity))

    @property
    def is_stale(self) -> bool:
        """Whether a vacuum is worthwhile."""
        return any(column.is_stale for column in self.columns)

    def vacuum(self, slots: Ints) -> None:
        for column in self.columns:
            column.vacuum(slots)

    def save(self, slots: Ints) -> State:
        return {"columns": [column.take(slots) for column in self.columns]}

    def restore(self, state: State, slots: Ints) -> None:
        self.put(slots, state["columns"])
