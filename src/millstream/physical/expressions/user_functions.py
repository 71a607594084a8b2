"""Calls user functions with whole columns.

The reference calls such a function one row at a time. Here it gets all rows of the batch; if it
raises, or its result has the wrong length or type, bisection finds the rows that fail.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.logical.evaluate import UserFunction
from millstream.model.values import out_of_years
from millstream.physical.expressions.nodes import Frame, Node
from millstream.physical.expressions.vector import Gathering, Mask, Vector, as_array, either


class UserCall(Node):
    guarded = True

    def __init__(self, function: UserFunction, arguments: Sequence[Node], type: pa.DataType):
        self.function = function
        self.arguments = tuple(arguments)
        self.type = type
        self.inputs = frozenset().union(*(node.inputs for node in arguments))

    def run(self, frame: Frame) -> Vector:
        failed: Mask | None = None
        columns = []
        for argument in self.arguments:
            vector = argument.run(frame)
            columns.append(as_array(vector.values, frame.length))
            failed = either(failed, vector.failed)
        if failed is None or not failed.any():
            return self._narrowed(columns, frame.length)
        rows = np.flatnonzero(~failed)
        taken = [column.take(pa.array(rows)) for column in columns]
        result = Gathering(self.type, frame.length)
        result.fail(np.flatnonzero(failed))
        result.add(rows, self._narrowed(taken, len(rows)))
        return result.vector()

    def _narrowed(self, columns: Sequence[pa.Array], length: int) -> Vector:
        """Calls the function with all rows or, if that fails, with each half."""
        if length == 0:
            return Vector(pa.nulls(0, self.type))
        values = self._called(columns, length)
        if values is not None:
            return Vector(values)
        if length == 1:
            return Vector(pa.nulls(1, self.type), np.ones(1, np.bool_))
        half = length // 2
        left = self._narrowed([c.slice(0, half) for c in columns], half)
        right = self._narrowed([c.slice(half) for c in columns], length - half)
        return Vector(
            pa.concat_arrays([left.values, right.values]),
            _joined(left.failed, right.failed, half, length),
        )

    def _called(self, columns: Sequence[pa.Array], length: int) -> pa.Array | None:
        """The function's result for these rows, or None if it fails or is unusable."""
        try:
            given = self.function.function(*columns)
            array = given if isinstance(given, pa.Array | pa.ChunkedArray) else pa.array(given)
            array = array if array.type == self.type else array.cast(self.type)
        except Exception:  # an error of user code belongs to some row
            return None
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.nulls(0, self.type)
        return array if len(array) == length and not out_of_years(array) else None


def _joined(left: Mask | None, right: Mask | None, half: int, length: int) -> Mask | None:
    if left is None and right is None:
        return None
    mask = np.zeros(length, np.bool_)
    if left is not None:
        mask[:half] = left
    if right is not None:
        mask[half:] = right
    return mask
