"""Columns of text larger than 2 GiB, the limit of an Arrow array of STRING or BINARY.

Such a column is *wide*: an array of `large_string` or `large_binary`. State, answers and data at
rest may be wide; batches that reach an operator never are. `pieces` cuts a batch before its columns
are gathered, so that operators and their kernels see 32-bit offsets only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

MOST_BYTES = 2**31 - 1  # of text in one array that is not wide

_WIDE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
_ORDINARY = {wide: ordinary for ordinary, wide in _WIDE.items()}


def is_text(type: pa.DataType) -> bool:
    """Whether values are strings or byte strings, wide or not."""
    return type in _WIDE or type in _ORDINARY


def is_wide(type: pa.DataType) -> bool:
    return type in _ORDINARY


def ordinary_type(type: pa.DataType) -> pa.DataType:
    return _ORDINARY.get(type, type)


def wide_type(type: pa.DataType) -> pa.DataType:
    return _WIDE.get(type, type)


def widened(array: pa.Array) -> pa.Array:
    return array.cast(wide_type(array.type))


def fitted(array: pa.Array) -> pa.Array:
    """The array, wide only if necessary."""
    wide, long = is_wide(array.type), size_of(array) > MOST_BYTES
    if wide == long:
        return array
    return widened(array) if long else narrowed(array)


def narrowed(array: pa.Array) -> pa.Array:
    """A short part of a wide array as one that is not wide. The bytes are not copied: Arrow's own
    cast refuses a part that lies beyond 2 GiB."""
    if not is_wide(array.type):
        return array
    offsets, (_, _, data) = offsets_of(array), array.buffers()
    bitmap = None
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    first = int(offsets[0])
    places = pa.py_buffer((offsets - first).astype(np.int32))
    held = pa.py_buffer(b"") if data is None else data.slice(first, int(offsets[-1]) - first)
    return pa.Array.from_buffers(ordinary_type(array.type), len(array), [bitmap, places, held])


def offsets_of(array: pa.Array) -> NDArray[Any]:
    """The offsets of the texts of an array in its data, and the end of the last one."""
    dtype = np.dtype(np.int64 if is_wide(array.type) else np.int32)
    buffer = array.buffers()[1]
    if buffer is None or not buffer.size:
        return np.zeros(1, dtype)
    return np.frombuffer(buffer, dtype, len(array) + 1, array.offset * dtype.itemsize)


def size_of(array: pa.Array) -> int:
    """The bytes of all texts of an array."""
    if not len(array):
        return 0
    offsets = offsets_of(array)
    return int(offsets[-1]) - int(offsets[0])


def joined_texts(arrays: Sequence[pa.Array]) -> pa.Array:
    """Arrays of text concatenated; wide only if necessary."""
    if any(is_wide(array.type) for array in arrays) or sum(map(size_of, arrays)) > MOST_BYTES:
        arrays = [widened(array) for array in arrays]
    return fitted(pa.concat_arrays(arrays))


def taken_texts(array: pa.Array, index: pa.Array) -> pa.Array:
    """Some of the texts of an array; wide only if necessary."""
    try:
        found = array.take(index)
    except pa.ArrowInvalid:
        if is_wide(array.type):
            raise
        return fitted(widened(array).take(index))
    return fitted(found)


def ordinary(array: pa.Array) -> pa.Array | pa.ChunkedArray:
    """A column that is not wide, perhaps in chunks."""
    if not is_wide(array.type):
        return array
    parts = cuts(np.diff(offsets_of(array)))
    chunks = [narrowed(array.slice(first, stop - first)) for first, stop in parts]
    return chunks[0] if len(chunks) == 1 else pa.chunked_array(chunks)


def cuts(sizes: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Ranges of rows of these sizes with at most MOST_BYTES each; a larger row is a range of its
    own. At least one range."""
    ends = np.cumsum(sizes, dtype=np.int64)
    first = 0
    while True:
        before = int(ends[first - 1]) if first else 0
        stop = max(int(np.searchsorted(ends, before + MOST_BYTES, "right")), first + 1)
        yield first, min(stop, len(sizes))
        first = stop
        if first >= len(sizes):
            return
