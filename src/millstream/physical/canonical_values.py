"""Equal values with the same bits, for whoever compares bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from millstream.model.arrays import of_view, validity
from millstream.physical.state.keys import fields_of, float_words


def has_floating(type: pa.DataType) -> bool:
    """Whether there are floating numbers in it: of those, equal ones may have other bits."""
    parts = (type.field(i).type for i in range(type.num_fields))
    return pa.types.is_floating(type) or any(map(has_floating, parts))


def canonical(array: pa.Array) -> pa.Array:
    """The values, those that are equal with the same bits: there are two zeros, and many NaN."""
    type = array.type
    if not has_floating(type):
        return array
    if pa.types.is_struct(type):
        fields = [canonical(field) for field in fields_of(array)]
        return pa.StructArray.from_arrays(fields, fields=list(type), mask=array.is_null())
    if pa.types.is_list(type):
        offsets = array.offsets
        if array.null_count:  # a NULL is told by its offset
            offsets = pc.if_else(pa.array([*array.is_valid().to_pylist(), True]), offsets, None)
        return pa.ListArray.from_arrays(offsets, canonical(array.values), type=type)
    values: NDArray[Any] = float_words(array)
    if type.bit_width == 32:
        values = values.view(np.float64).astype(np.float32).view(np.int32)
    return of_view(values, type, validity(array))
