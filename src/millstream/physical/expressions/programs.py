"""Programs: formulas that are computed over the memory of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.physical.expressions import loops
from millstream.physical.expressions.formulas import DTYPES, Formula
from millstream.physical.expressions.vector import Mask
from millstream.physical.machine_code import machine_code
from millstream.types import BOOLEAN

Rows: TypeAlias = npt.NDArray[np.int64]


class _Loop:
    """Machine code over columns; it writes results whose values have so many bytes."""

    def __init__(self, text: str, formulas: Sequence[Formula], sizes: Sequence[int]) -> None:
        self._inputs = [
            (position, DTYPES[type].itemsize, type == BOOLEAN)
            for position, type in loops.columns_of(formulas).items()
        ]
        self._sizes = sizes
        self._code = machine_code(text, loops.NAME, 1 + len(self._inputs) + len(sizes))
        self._call = self._code.call

    def run(self, columns: Sequence[pa.Array], length: int) -> tuple[list[pa.Buffer] | None, int]:
        """The memory of the results, and how many rows were selected; none where NULLs or large
        integers ask for more care. The memory is Arrow's, whose pool keeps pages that were in use:
        NumPy's arrays of this size are new to the system each time, which can take longer than to
        compute them."""
        if not length:
            return None, 0
        addresses = []
        inputs = []  # kept until all is computed
        for position, width, truths in self._inputs:
            column = columns[position]
            if column.null_count:
                return None, 0
            memory = _bytes(column) if truths else column.buffers()[1]
            offset = 0 if truths else column.offset * width
            assert memory.size >= offset + length * width
            inputs.append(memory)
            addresses.append(memory.address + offset)
        results = [pa.allocate_buffer(length * size) for size in self._sizes]
        selected = self._call(length, *addresses, *[memory.address for memory in results])
        return (results if selected >= 0 else None), selected


class Program:
    """Formulas over one batch, computed together: all of them, or none."""

    def __init__(self, formulas: Sequence[Formula]) -> None:
        self._types = [formula.type for formula in formulas]
        sizes = [DTYPES[type].itemsize for type in self._types]
        self._loop = _Loop(loops.storing(formulas), formulas, sizes)

    def values(self, columns: Sequence[pa.Array], length: int) -> list[pa.Array] | None:
        """The values of each formula; None where NULLs or large integers ask for more care."""
        results, _ = self._loop.run(columns, length)
        if results is None:
            return None
        pairs = zip(results, self._types, strict=True)
        return [_array(memory, type, length) for memory, type in pairs]

    def mask(self, columns: Sequence[pa.Array], length: int) -> Mask | None:
        """Where the only formula, a condition, holds; None as above."""
        results, _ = self._loop.run(columns, length)
        return None if results is None else np.frombuffer(results[0], np.bool_)


class Selection:
    """The rows for which a condition holds."""

    def __init__(self, condition: Formula) -> None:
        self._loop = _Loop(loops.selecting(condition), [condition], [8])  # a row's number

    def rows(self, columns: Sequence[pa.Array], length: int) -> Rows | None:
        """Their numbers; None as above."""
        results, selected = self._loop.run(columns, length)
        return None if results is None else np.frombuffer(results[0], np.int64, selected).copy()


def _bytes(column: pa.Array) -> pa.Buffer:
    """The truth values of a column, a byte each."""
    return pa.py_buffer(column.to_numpy(zero_copy_only=False))


def _array(memory: pa.Buffer, type: pa.DataType, length: int) -> pa.Array:
    if type == BOOLEAN:
        memory = pa.py_buffer(np.packbits(np.frombuffer(memory, np.bool_), bitorder="little"))
    return pa.Array.from_buffers(type, length, [None, memory])
