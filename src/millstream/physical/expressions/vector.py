"""The result of an expression for a batch, and conversions between Arrow arrays and NumPy masks."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.model.long_texts import offsets_of
from millstream.model.types import BIGINT, DATE, DOUBLE, INT, INTERVAL, REAL, TIMESTAMP

Mask: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[Any]


class Vector(NamedTuple):
    """The values of a batch of rows, and which of the rows failed (None: no row).

    The value of a row that failed is NULL. Within an expression the values of a constant are one
    Arrow scalar; everything else, and whatever leaves an expression, is an Arrow array.
    """

    values: pa.Array
    failed: Mask | None = None


_NUMPY: dict[pa.DataType, np.dtype[Any]] = {
    INT: np.dtype(np.int32),
    BIGINT: np.dtype(np.int64),
    REAL: np.dtype(np.float32),
    DOUBLE: np.dtype(np.float64),
    DATE: np.dtype(np.int32),
    TIMESTAMP: np.dtype(np.int64),
    INTERVAL: np.dtype(np.int64),
}


def numbers(values: pa.Array | pa.Scalar) -> Numbers:
    """The numbers in the memory of an array, without a copy; undefined where it is NULL."""
    dtype = _NUMPY[values.type]
    if isinstance(values, pa.Scalar):
        plain = values.value if hasattr(values, "value") else values.as_py()
        return np.asarray(0 if plain is None else plain, dtype)
    buffer = values.buffers()[1]
    if buffer is None:
        return np.zeros(len(values), dtype)
    found: Numbers = np.frombuffer(buffer, dtype, len(values), values.offset * dtype.itemsize)
    return found


def text_bytes(values: pa.Array) -> npt.NDArray[np.int8]:
    """The concatenated bytes of all texts, possibly including bytes of NULL rows."""
    data = values.buffers()[2]
    if data is None or not len(values):
        return np.zeros(0, np.int8)
    ends = offsets_of(values)
    return np.frombuffer(data, np.int8)[ends[0] : ends[-1]]


def from_numbers(values: Numbers, type: pa.DataType, *nulls_of: pa.Array | pa.Scalar) -> pa.Array:
    """Numbers as an array of `type`, NULL where one of the other arrays is."""
    stored = np.ascontiguousarray(values, _NUMPY[type])
    return pa.Array.from_buffers(type, len(stored), [validity(*nulls_of), pa.py_buffer(stored)])


def validity(*arrays: pa.Array | pa.Scalar) -> pa.Buffer | None:
    """The bitmap of the rows where no array is NULL; None if there are no NULLs."""
    known = [pc.is_valid(a) for a in arrays if isinstance(a, pa.Array) and a.null_count]
    if not known:
        return None
    result = known[0]
    for other in known[1:]:
        result = pc.and_(result, other)
    if result.offset:
        result = pa.array(result.to_numpy(zero_copy_only=False))
    return result.buffers()[1]


def present(*arrays: pa.Array | pa.Scalar) -> Mask | None:
    """The rows where no array is NULL; None if that is all rows."""
    result: Mask | None = None
    for array in arrays:
        if isinstance(array, pa.Array) and array.null_count:
            valid = mask_of(pc.is_valid(array))
            result = valid if result is None else result & valid
    return result


def mask_of(booleans: pa.Array | pa.Scalar) -> Mask:
    """The rows where a BOOLEAN is TRUE."""
    if isinstance(booleans, pa.Scalar):
        return np.asarray(booleans.as_py() is True)
    if booleans.null_count:
        booleans = booleans.fill_null(False)
    mask: Mask = booleans.to_numpy(zero_copy_only=False)
    return mask


def either(a: Mask | None, b: Mask | None) -> Mask | None:
    """The rows of both masks together."""
    if a is None:
        return b
    return a if b is None else a | b


def null_scalar(type: pa.DataType) -> pa.Scalar:
    """NULL as a value of a type."""
    scalar = _NULLS.get(type)
    if scalar is None:
        scalar = _NULLS[type] = pa.scalar(None, type)
    return scalar


_NULLS: dict[pa.DataType, pa.Scalar] = {}


def null_where(values: pa.Array, mask: Mask | None) -> pa.Array:
    """The values, with NULL in the rows of the mask."""
    if mask is None or not mask.any():
        return values
    if pa.types.is_null(values.type):
        return values
    return pc.if_else(pa.array(mask), null_scalar(values.type), values)


def failing(values: pa.Array, failed: Mask, *nulls_of: pa.Array | pa.Scalar) -> Vector:
    """The values; rows of the mask fail, unless one of the arguments is NULL there."""
    valid = present(*nulls_of)
    if valid is not None:
        failed = failed & valid
    if not failed.any():
        return Vector(values)
    return Vector(null_where(values, failed), np.require(failed, requirements="W"))


def as_array(values: pa.Array | pa.Scalar, length: int) -> pa.Array:
    """Always an array: a scalar is repeated."""
    if isinstance(values, pa.Array):
        return values
    empty = not length or not values.is_valid
    return pa.nulls(length, values.type) if empty else pa.repeat(values, length)


class Gathering:
    """Combines the values of subsets of the rows; rows in none of them are NULL."""

    def __init__(self, type: pa.DataType, length: int) -> None:
        self._pieces = [pa.nulls(1, type)]
        self._end = 1
        self._source: npt.NDArray[np.int64] = np.zeros(length, np.int64)
        self._failed: Mask | None = None

    def add(self, rows: npt.NDArray[np.int64], part: Vector) -> None:
        """Add the result for the rows with these numbers."""
        scalar = isinstance(part.values, pa.Scalar)
        piece = as_array(part.values, 1)
        self._source[rows] = self._end if scalar else np.arange(self._end, self._end + len(rows))
        self._pieces.append(piece)
        self._end += len(piece)
        if part.failed is not None:
            self.fail(rows[part.failed])

    def fail(self, rows: npt.NDArray[np.int64]) -> None:
        """Rows that failed before they had a value."""
        if self._failed is None:
            self._failed = np.zeros(len(self._source), np.bool_)
        self._failed[rows] = True

    def vector(self) -> Vector:
        values = pa.concat_arrays(self._pieces).take(pa.array(self._source))
        return Vector(values, self._failed)
