"""Gives equal values the same bits, for bitwise comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from millstream.model.arrays import of_view, validity
from millstream.physical.state.keys import fields_of, float_words


def has_floating(type: pa.DataType) -> bool:
    """Whether the type contains floats, for which equal values may have different bits."""
    parts = (type.field(i).type for i in range(type.num_fields))
    return pa.types.is_floating(type) or any(map(has_floating, parts))


def canonical(array: pa.Array) -> pa.Array:
    """The values with one bit pattern for both zeros and one for all NaNs."""
    type = array.type
    if not has_floating(type):
        return array
    if pa.types.is_struct(type):
        fields = [canonical(field) for field in fields_of(array)]
        return pa.StructArray.from_arrays(fields, fields=list(type), mask=array.is_null())
    if pa.types.is_list(type):
        offsets = array.offsets
        if array.null_count:  # the offsets encode NULL
            offsets = pc.if_else(pa.array([*array.is_valid().to_pylist(), True]), offsets, None)
        return pa.ListArray.from_arrays(offsets, canonical(array.values), type=type)
    values: NDArray[Any] = float_words(array)
    if type.bit_width == 32:
        values = values.view(np.float64).astype(np.float32).view(np.int32)
    return of_view(values, type, validity(array))
