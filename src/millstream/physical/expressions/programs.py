"""Programs: formulas as steps that a kernel runs over the memory of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.physical.expressions.formulas import (
    DTYPES,
    Formula,
    Input,
    Number,
    Step,
    limits_of,
    parts,
)
from millstream.physical.expressions.vector import Mask
from millstream.physical.kernels import programs as operations
from millstream.types import BOOLEAN, DATE, INT, REAL, is_floating

Rows: TypeAlias = npt.NDArray[np.int64]

# How values that do not have 8 bytes come from columns into registers, and back.
_LOADS: Mapping[pa.DataType, int] = {
    BOOLEAN: operations.LOAD_BYTE,
    INT: operations.LOAD_INT,
    DATE: operations.LOAD_INT,
    REAL: operations.LOAD_REAL,
}
_STORES: Mapping[pa.DataType, int] = {
    BOOLEAN: operations.STORE_BYTE,
    INT: operations.STORE_INT,
    DATE: operations.STORE_INT,
    REAL: operations.STORE_REAL,
}


class Program:
    """Formulas over one batch, computed together: all of them, or none."""

    _stores = _STORES

    def __init__(self, formulas: Sequence[Formula]) -> None:
        layout = _Layout(formulas, self._stores)
        self._inputs = [
            (position, DTYPES[type].itemsize, type == BOOLEAN)
            for position, type in layout.columns.items()
        ]
        self._types = [formula.type for formula in formulas]
        self._sizes = [DTYPES[type].itemsize for type in self._types]
        self._widths = np.array([*(width for _, width, _ in self._inputs), *self._sizes])
        self._constants = np.array(layout.constants, np.int64)
        self._steps = np.array(layout.steps)

    def values(self, columns: Sequence[pa.Array], length: int) -> list[pa.Array] | None:
        """The values of each formula; None where NULLs or large integers ask for more care."""
        results, _ = self._run(columns, length)
        if results is None:
            return None
        pairs = zip(results, self._types, strict=True)
        return [_array(memory, type, length) for memory, type in pairs]

    def mask(self, columns: Sequence[pa.Array], length: int) -> Mask | None:
        """Where the only formula, a condition, holds; None as above."""
        results, _ = self._run(columns, length)
        return None if results is None else np.frombuffer(results[0], np.bool_)

    def _run(self, columns: Sequence[pa.Array], length: int) -> tuple[list[pa.Buffer] | None, int]:
        """The memory of the results, and how many rows were selected. The memory is Arrow's, whose
        pool keeps pages that were in use: NumPy's arrays of this size are new to the system each
        time, which can take longer than to compute them."""
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
        addresses += [memory.address for memory in results]
        selected = operations.run(
            self._steps, self._constants, np.array(addresses), self._widths, length
        )
        return (results if selected >= 0 else None), selected


class Selection(Program):
    """The rows for which a condition holds."""

    _stores: Mapping[pa.DataType, int] = {BOOLEAN: operations.SELECT}

    def __init__(self, condition: Formula) -> None:
        super().__init__([condition])
        self._sizes = [8]  # a row's number

    def rows(self, columns: Sequence[pa.Array], length: int) -> Rows | None:
        """Their numbers; None as above."""
        results, selected = self._run(columns, length)
        return None if results is None else np.frombuffer(results[0], np.int64, selected).copy()


def _bytes(column: pa.Array) -> pa.Buffer:
    """The truth values of a column, a byte each."""
    return pa.py_buffer(column.to_numpy(zero_copy_only=False))


def _array(memory: pa.Buffer, type: pa.DataType, length: int) -> pa.Array:
    if type == BOOLEAN:
        memory = pa.py_buffer(np.packbits(np.frombuffer(memory, np.bool_), bitorder="little"))
    return pa.Array.from_buffers(type, length, [None, memory])


class _Layout:
    """The steps of a program and the places of what they work on: columns, results, constants, and
    then a register for each step."""

    def __init__(self, formulas: Sequence[Formula], stores: Mapping[pa.DataType, int]) -> None:
        each = parts(*formulas)
        self.columns = {part.position: part.type for part in each if isinstance(part, Input)}
        numbers = [part for part in each if isinstance(part, Number)]
        limits = _common_limits(formulas)
        self.constants = [*map(_bits, numbers), *limits.values()]
        self.steps: list[tuple[int, ...]] = []
        results = {formula: len(self.columns) + i for i, formula in enumerate(formulas)}
        first_constant = len(self.columns) + len(results)
        self._registers = first_constant + len(self.constants)
        places: dict[Formula, int] = {n: first_constant + i for i, n in enumerate(numbers)}
        loaded = {
            position: self._add(_LOADS[type], place) if type in _LOADS else place
            for place, (position, type) in enumerate(self.columns.items())
        }
        for place, position in enumerate(limits, first_constant + len(numbers)):
            self._add(operations.WITHIN, loaded[position], place)
        for part in each:
            if isinstance(part, Input):
                places[part] = loaded[part.position]
            elif isinstance(part, Step):
                result = None if part.type in stores else results.get(part)
                a, *b = [places[operand] for operand in part.operands]
                places[part] = self._add(part.operation, a, *b, result=result)
        for formula, place in results.items():
            if formula.type in stores:
                self._add(stores[formula.type], places[formula], result=place)

    def _add(self, operation: int, a: int, *b: int, result: int | None = None) -> int:
        """One more step; gives the place of its result, which is its register by default."""
        if result is None:
            result = self._registers + len(self.steps)
        self.steps.append((operation, result, a, *(b or (a,))))
        return result


def _common_limits(formulas: Sequence[Formula]) -> dict[int, int]:
    """Those that are within the limits of every formula."""
    common: dict[int, int] = {}
    for formula in formulas:
        for position, limit in limits_of(formula).items():
            common[position] = min(limit, common.get(position, limit))
    return common


def _bits(number: Number) -> int:
    """A constant as a register has it."""
    held = np.float64 if is_floating(number.type) else np.int64
    return int(held(number.value).view(np.int64))
