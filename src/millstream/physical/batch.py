"""Batches: what flows on an edge of a physical plan.

A batch is a bag of elements and a frontier: no later element on that edge starts before it. Rows
are Arrow columns, gathered lazily: taking rows from a batch composes row numbers, and a column is
copied only when something reads it.

>>> import numpy as np, pyarrow as pa
>>> batch = Batch.of([pa.array(["a", "b", "c"])], start=[1, 2, 3], end=[5, 5, 5], frontier=3)
>>> picked = batch.take(np.array([2, 0])).take(np.array([1]))
>>> picked.columns[0].to_pylist(), picked.start.tolist(), picked.frontier
(['a'], [1], 3)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millstream.model import long_texts
from millstream.model.arrays import concat, gather, no_values, room_for
from millstream.model.gathering import pick_both
from millstream.physical.kernels.positions import positions
from millstream.physical.kernels.scans import all_ones

Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
State: TypeAlias = dict[str, Any]  # NumPy and Arrow arrays, plain values, and nested states

NEVER = -(2**63)  # the frontier before anything is known

# Shared by batches: no operator writes to its input.
_ONES = np.ones(1 << 16, np.int64)
_ZEROS = np.zeros(1 << 16, np.int64)
_NUMBERS = np.arange(1 << 16)


def ones(length: int) -> Ints:
    """Weights of 1."""
    return _ONES[:length] if length <= len(_ONES) else np.ones(length, np.int64)


def zeros(length: int) -> Ints:
    return _ZEROS[:length] if length <= len(_ZEROS) else np.zeros(length, np.int64)


def numbers(length: int) -> Ints:
    """0, 1, 2, …"""
    return _NUMBERS[:length] if length <= len(_NUMBERS) else np.arange(length)


def are_ones(weight: Ints) -> bool:
    """Whether all weights are 1; arrays from `ones` are not scanned."""
    return weight.base is _ONES or all_ones(weight)


class Gatherable(Protocol):
    """Where a column's rows come from: an Arrow array, or a column of an operator's state."""

    def take(self, index: Ints) -> pa.Array: ...


def long_sizes(source: Gatherable | pa.Array, index: Ints) -> Ints | None:
    """The length in bytes of each of these texts, if together they may be too long for one
    array."""
    if not isinstance(source, pa.Array):
        sizes = getattr(source, "long_sizes", None)
        return None if sizes is None else sizes(index)
    data = source.buffers()[2]
    if data is None or data.size * len(index) <= long_texts.MOST_BYTES:
        return None
    sizes = np.diff(long_texts.offsets_of(source)).astype(np.int64)
    if int(sizes.max(initial=0)) * len(index) <= long_texts.MOST_BYTES:
        return None
    return sizes[index]


class LazyColumn:
    """Rows `index` of a source; all rows in order if there is no index."""

    __slots__ = ("_array", "index", "source")

    def __init__(self, source: Gatherable | pa.Array, index: Ints | None = None) -> None:
        self.source = source
        self.index = index
        self._array: pa.Array | None = source if index is None else None

    @property
    def array(self) -> pa.Array:
        if self._array is None:
            if isinstance(self.source, pa.Array):
                self._array = gather(self.source, self.index)
            else:
                assert self.index is not None
                self._array = self.source.take(self.index)
            self.source, self.index = self._array, None  # releases the other rows
        return self._array

    @property
    def long_sizes(self) -> Ints | None:
        """The length in bytes of each text of the column, if it is large_string or may become
        so."""
        if self._array is None:
            assert self.index is not None
            return long_sizes(self.source, self.index)
        if not long_texts.is_wide(self._array.type):
            return None
        return np.diff(long_texts.offsets_of(self._array))

    def part(self, first: int, stop: int) -> LazyColumn:
        """A range of rows, small enough for an array with 32-bit offsets if they are texts."""
        if self._array is None:
            assert self.index is not None
            return LazyColumn(self.source, self.index[first:stop])
        return LazyColumn(long_texts.narrowed(self._array.slice(first, stop - first)))

    def head(self, count: int) -> LazyColumn:
        """The first rows, without a copy."""
        if self._array is not None:
            return LazyColumn(self._array.slice(0, count))
        assert self.index is not None
        return LazyColumn(self.source, self.index[:count])

    def tail(self, first: int) -> LazyColumn:
        """The rows from `first` on."""
        if self._array is not None:
            return LazyColumn(self._array, np.arange(first, len(self._array)))
        assert self.index is not None
        return LazyColumn(self.source, self.index[first:])


class Columns(Sequence[pa.Array]):
    """The columns of a batch; indexing one gathers it."""

    __slots__ = ("lazy",)

    def __init__(self, lazy: Sequence[LazyColumn]) -> None:
        self.lazy = lazy

    @staticmethod
    def of(arrays: Iterable[pa.Array]) -> Columns:
        return Columns([LazyColumn(array) for array in arrays])

    @staticmethod
    def gathered(sources: Iterable[Gatherable | pa.Array], index: Ints) -> Columns:
        return Columns([LazyColumn(source, index) for source in sources])

    @overload
    def __getitem__(self, position: int) -> pa.Array: ...
    @overload
    def __getitem__(self, position: slice) -> Columns: ...
    def __getitem__(self, position: int | slice) -> pa.Array | Columns:
        if isinstance(position, slice):
            return Columns(self.lazy[position])
        return self.lazy[position].array

    def __len__(self) -> int:
        return len(self.lazy)

    def __iter__(self) -> Iterator[pa.Array]:
        return iter([column.array for column in self.lazy])

    def __add__(self, other: Columns) -> Columns:
        return Columns([*self.lazy, *other.lazy])

    def take(self, index: Ints) -> Columns:
        composed: dict[int, Ints] = {}  # columns of one source share their row numbers
        taken = []
        for column in self.lazy:
            if column._array is not None:
                taken.append(LazyColumn(column._array, index))
                continue
            assert column.index is not None
            if id(column.index) not in composed:
                composed[id(column.index)] = column.index[index]
            taken.append(LazyColumn(column.source, composed[id(column.index)]))
        return Columns(taken)

    def head(self, count: int) -> Columns:
        """The first rows, without a copy."""
        return Columns([column.head(count) for column in self.lazy])


@dataclass(slots=True)
class Batch:
    """Elements: row i holds `weight[i]` times in [start[i], end[i])."""

    columns: Columns
    start: Ints
    end: Ints
    weight: Ints
    frontier: int

    @staticmethod
    def of(
        columns: Iterable[pa.Array],
        start: Iterable[int],
        end: Iterable[int],
        weight: Iterable[int] | None = None,
        frontier: int = NEVER,
    ) -> Batch:
        starts = np.asarray(start, dtype=np.int64)
        weights = np.ones(len(starts), np.int64) if weight is None else weight
        return Batch(
            Columns.of(columns),
            starts,
            np.asarray(end, dtype=np.int64),
            np.asarray(weights, dtype=np.int64),
            frontier,
        )

    @staticmethod
    def empty(types: Iterable[pa.DataType], frontier: int) -> Batch:
        nothing = np.empty(0, np.int64)
        columns = Columns.of(map(no_values, types))
        return Batch(columns, nothing, nothing, nothing, frontier)

    def __len__(self) -> int:
        return len(self.start)

    def take(self, index: Ints) -> Batch:
        count = len(index)
        times = room_for(2 * count)
        start, end = times[:count], times[count:]
        pick_both(index, self.start, self.end, start, end)
        weight = ones(count) if self.weight.base is _ONES else self.weight[index]
        return Batch(self.columns.take(index), start, end, weight, self.frontier)

    def where(self, mask: Mask) -> Batch:
        """The elements for which the mask holds; the batch itself if it holds for all."""
        if np.count_nonzero(mask) == len(mask):
            return self
        return self.take(positions(mask))

    def head(self, count: int) -> Batch:
        """The first elements, without a copy."""
        columns, place = self.columns.head(count), slice(0, count)
        return Batch(columns, self.start[place], self.end[place], self.weight[place], self.frontier)

    def tail(self, first: int) -> Batch:
        """The elements from `first` on. Once gathered, they do not keep the others in memory."""
        columns = Columns([column.tail(first) for column in self.columns.lazy])
        times = self.start[first:].copy(), self.end[first:].copy()
        weight = self.weight[first:] if self.weight.base is _ONES else self.weight[first:].copy()
        return Batch(columns, *times, weight, self.frontier)

    def timed(self, start: Ints, end: Ints) -> Batch:
        """The same rows with other intervals; drops rows with an empty interval."""
        return Batch(self.columns, start, end, self.weight, self.frontier).where(start < end)

    def gathered(self) -> Batch:
        """The batch with all its columns gathered. Needed to keep a batch beyond the call that
        returned it, since lazy columns refer to state that changes."""
        list(self.columns)
        return self

    def save(self) -> State:
        return {
            "columns": list(self.columns),
            "start": self.start,
            "end": self.end,
            "weight": self.weight,
            "frontier": self.frontier,
        }

    @staticmethod
    def restored(state: State) -> Batch:
        times = state["start"], state["end"], state["weight"]
        return Batch.of(state["columns"], *times, state["frontier"])

    def up_to(self, frontier: int) -> Batch:
        if frontier == self.frontier:
            return self
        return Batch(self.columns, self.start, self.end, self.weight, frontier)


def pieces(batch: Batch, texts: Sequence[int]) -> list[Batch]:
    """The same elements in batches whose text columns fit 32-bit offsets; `texts` are the text
    columns. Only the last batch has the frontier."""
    found = (batch.columns.lazy[position].long_sizes for position in texts)
    sizes = [each for each in found if each is not None]
    if not sizes:
        return [batch]
    parts = [_part(batch, *cut) for cut in long_texts.cuts(np.maximum.reduce(sizes))]
    return [*parts[:-1], parts[-1].up_to(batch.frontier)]


def _part(batch: Batch, first: int, stop: int) -> Batch:
    columns = Columns([column.part(first, stop) for column in batch.columns.lazy])
    place = slice(first, stop)
    return Batch(columns, batch.start[place], batch.end[place], batch.weight[place], NEVER)


def merged(batches: Sequence[Batch]) -> Batch:
    """One batch with the elements of several, and the frontier of the last."""
    full = [batch for batch in batches if len(batch)] or [batches[-1]]
    if len(full) == 1:
        return full[0].up_to(batches[-1].frontier)
    width = len(full[0].columns)
    return Batch(
        Columns.of(concat([batch.columns[i] for batch in full]) for i in range(width)),
        np.concatenate([batch.start for batch in full]),
        np.concatenate([batch.end for batch in full]),
        np.concatenate([batch.weight for batch in full]),
        batches[-1].frontier,
    )
