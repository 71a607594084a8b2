"""Conversion between Arrow arrays and NumPy, without copies, and gathering of rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millstream.model.gathering import pick, pick_bits
from millstream.model.long_texts import is_text, joined_texts, taken_texts
from millstream.model.types import BIGINT, DATE, DOUBLE, INT, INTERVAL, REAL, TIMESTAMP

AnyScalar = TypeVar("AnyScalar", bound=np.generic)

# The types whose values are 4 or 8 bytes in one buffer, by id, and integers of their width.
_PLAIN: dict[int, np.dtype[Any]] = {
    type.id: np.dtype(f"i{type.bit_width // 8}")
    for type in (INT, BIGINT, REAL, DOUBLE, DATE, TIMESTAMP, INTERVAL)
}


def is_plain(type: pa.DataType) -> bool:
    """Whether values are 4 or 8 bytes in one buffer."""
    return type.id in _PLAIN


def larger(present: int, least: int) -> int:
    """The capacity of a growing array: at least an eighth more, so that growth costs little per row
    and little memory is unused."""
    return max(least, present + present // 8)


def with_room(values: NDArray[AnyScalar], count: int, fill: int = 0) -> NDArray[AnyScalar]:
    """The array itself where it has `count` rows, else a longer one with `fill` in the new rows."""
    known = len(values)
    if known >= count:
        return values
    roomy = np.empty((larger(known, count), *values.shape[1:]), values.dtype)
    roomy[:known] = values
    roomy[known:] = fill
    return roomy


def view(array: pa.Array) -> NDArray[Any]:
    """The values of a plain array as integers of their width, without a copy; values of NULLs are
    arbitrary."""
    dtype = _PLAIN[array.type.id]
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize)


def validity(array: pa.Array) -> NDArray[np.bool_] | None:
    """True where the value is not NULL; None if there are no NULLs."""
    if array.null_count == 0:
        return None
    valid: NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def room_for(count: int) -> NDArray[np.int64]:
    """An array of integers in memory of Arrow's pool, which reuses pages; NumPy returns them to the
    system and requests new ones."""
    return np.frombuffer(pa.allocate_buffer(8 * count), np.int64)


def of_view(
    values: NDArray[Any], type: pa.DataType, valid: NDArray[np.bool_] | None = None
) -> pa.Array:
    """An array of a plain type over integers of its width."""
    bitmap = None
    if valid is not None and not valid.all():
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(type, len(values), [bitmap, pa.py_buffer(values)])


def of_int64(values: NDArray[np.int64]) -> pa.Array:
    """A BIGINT array over integers; `pa.array` takes ten times as long for a few."""
    return of_view(values, BIGINT)


def int64(array: pa.Array) -> NDArray[np.int64]:
    """The values of an integral, temporal or boolean array as int64, copied; 0 where NULL."""
    values: NDArray[np.int64]
    if pa.types.is_boolean(array.type):
        known = array.fill_null(False) if array.null_count else array
        values = known.to_numpy(zero_copy_only=False).astype(np.int64)
        return values
    values = view(array).astype(np.int64)
    valid = validity(array)
    if valid is not None:
        values[~valid] = 0
    return values


def gather(array: pa.Array, index: NDArray[np.int64] | None) -> pa.Array:
    """Rows of an array by number."""
    if index is None:
        return array
    if not is_plain(array.type):
        if is_text(array.type):
            return taken_texts(array, of_int64(index))
        return array.take(of_int64(index))
    bitmap = None
    if array.null_count:
        bits = np.frombuffer(array.buffers()[0], np.uint8)
        picked, valid = pick_bits(index, bits, array.offset, len(array))
        bitmap = pa.py_buffer(picked) if valid < len(index) else None
    values = view(array)
    memory = pa.allocate_buffer(len(index) * values.itemsize)
    pick(index, values, np.frombuffer(memory, values.dtype))
    return pa.Array.from_buffers(array.type, len(index), [bitmap, memory])


@cache
def no_values(type: pa.DataType) -> pa.Array:
    return pa.array([], type)


def concat(arrays: Sequence[pa.Array]) -> pa.Array:
    """Arrays of one type concatenated; a column of text may become wide."""
    if len(arrays) == 1:
        return arrays[0]
    return joined_texts(arrays) if is_text(arrays[0].type) else pa.concat_arrays(arrays)


def single(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column in one piece."""
    if isinstance(column, pa.Array):
        return column
    chunks = column.chunks
    if len(chunks) == 1:
        return chunks[0]
    return concat(chunks or [no_values(column.type)])
