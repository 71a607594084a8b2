"""Functions of arrays and structs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.logical.functions import Signature
from millstream.physical.expressions.arithmetic import Builder
from millstream.physical.expressions.comparisons import comparison
from millstream.physical.expressions.nodes import ColumnNode, Constant, Kernel, Node
from millstream.physical.expressions.vector import (
    Mask,
    Vector,
    as_array,
    failing,
    mask_of,
    null_where,
    numbers,
    present,
)


def _size(signature: Signature, arguments: Sequence[Node]) -> Kernel:
    return lambda values: Vector(pc.list_value_length(values))


def _bounds(arrays: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The bounds of each array among the elements; a NULL is empty."""
    offsets = arrays.offsets.to_numpy().astype(np.int64)
    begin, end = offsets[:-1], offsets[1:]
    valid = present(arrays)
    return begin, end if valid is None else np.where(valid, end, begin)


def _access(*, from_one: bool, attempt: bool = False) -> Builder:
    """The element at an index from 0, or at a position from 1 or from the end. An attempt returns
    NULL outside of the array, except for position 0."""

    def kernel(arrays: pa.Array, index: pa.Array) -> Vector:
        begin, end = _bounds(arrays)
        i = numbers(index).astype(np.int64)
        zero = np.broadcast_to(i == 0, len(arrays))
        if from_one:
            i = np.where(i > 0, i - 1, np.where(i < 0, end - begin + i, -1))
        inside = (i >= 0) & (i < end - begin)
        place = np.where(inside, begin + i, 0)
        values = arrays.values.take(pa.array(place, mask=~inside))
        valid = present(index)
        if valid is not None:
            values = null_where(values, ~valid)
        return failing(values, zero if attempt else ~inside, arrays, index)

    def build(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
        return None if isinstance(arguments[0], Constant) else kernel

    return build


def _array_contains(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    """TRUE if an element is equal, else NULL if one is NULL."""
    element = signature.arguments[1]
    stand_ins = [ColumnNode(0, element), ColumnNode(1, element)]
    equal = comparison("=", element, stand_ins)
    if equal is None or isinstance(arguments[0], Constant):
        return None

    def kernel(arrays: pa.Array, value: pa.Array) -> Vector:
        begin, end = _bounds(arrays)
        flat = arrays.flatten()
        owner = np.repeat(np.arange(len(arrays)), end - begin)
        wanted = as_array(value, len(arrays)).take(pa.array(owner))
        found = _any(mask_of(equal(flat, wanted)), owner, len(arrays))
        unknown = _any(mask_of(flat.is_null()), owner, len(arrays)) & ~found
        valid = present(arrays, value)
        if valid is not None:
            unknown |= ~valid
        return Vector(null_where(pa.array(found), unknown))

    return kernel


def _any(mask: Mask, owner: Any, length: int) -> Mask:
    """The owners of at least one row of the mask."""
    result = np.zeros(length, np.bool_)
    result[owner[mask]] = True
    return result


def _array(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    type = signature.result
    count = len(arguments)

    def kernel(*values: pa.Array) -> Vector:
        length = max(len(v) for v in values if isinstance(v, pa.Array))
        columns = pa.concat_arrays([as_array(v, length) for v in values])
        order = np.arange(count * length).reshape(count, length).T.ravel()
        offsets = np.arange(0, count * length + 1, count, dtype=np.int32)
        elements = columns.take(pa.array(order))
        return Vector(pa.ListArray.from_arrays(pa.array(offsets), elements, type=type))

    return kernel if count else None


def _field(name: str) -> Builder:
    def build(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
        names = [field.name.lower() for field in signature.arguments[0]]
        position = names.index(name.lower())
        return lambda values: Vector(pc.struct_field(values, [position]))

    return build


def reverse_arrays(values: pa.Array) -> Vector:
    """Reverses each array."""
    begin, end = _bounds(values)
    sizes = end - begin
    owner = np.repeat(np.arange(len(values)), sizes)
    starts = np.cumsum(sizes) - sizes
    order = (end - 1)[owner] - (np.arange(len(owner)) - starts[owner])
    elements = values.values.take(pa.array(order))
    offsets = pa.array(np.append(starts, len(owner)).astype(np.int32))
    valid = present(values)
    if valid is None:
        return Vector(pa.ListArray.from_arrays(offsets, elements, type=values.type))
    mask = pa.array(~valid)
    return Vector(pa.ListArray.from_arrays(offsets, elements, type=values.type, mask=mask))


def field_builder(name: str) -> Builder | None:
    """The access to the field of a struct, for names that begin with a dot."""
    return _field(name[1:]) if name.startswith(".") and len(name) > 1 else None


KERNELS: dict[str, Builder] = {
    "size": _size,
    "element": _access(from_one=False),
    "element_at": _access(from_one=True),
    "try_element_at": _access(from_one=True, attempt=True),
    "array_contains": _array_contains,
    "array": _array,
}
