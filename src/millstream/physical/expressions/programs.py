"""Programs: formulas as steps that a kernel runs over the memory of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
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

# How values that do not have 8 bytes come from columns into registers, and back.
_LOADS: dict[pa.DataType, int] = {
    BOOLEAN: operations.LOAD_BYTE,
    INT: operations.LOAD_INT,
    DATE: operations.LOAD_INT,
    REAL: operations.LOAD_REAL,
}
_STORES: dict[pa.DataType, int] = {
    BOOLEAN: operations.STORE_BYTE,
    INT: operations.STORE_INT,
    DATE: operations.STORE_INT,
    REAL: operations.STORE_REAL,
}


class Program:
    """Formulas over one batch, computed together: all of them, or none."""

    def __init__(self, formulas: Sequence[Formula]) -> None:
        layout = _Layout(formulas)
        types = [formula.type for formula in formulas]
        self._inputs = [(p, DTYPES[type].itemsize, type) for p, type in layout.columns.items()]
        self._results = [(type, DTYPES[type].itemsize) for type in types]
        widths = [DTYPES[type].itemsize for type in [*layout.columns.values(), *types]]
        self._widths = np.array(widths, np.int64)
        self._constants = np.array(layout.constants, np.int64)
        self._steps = np.array(layout.steps, np.int64)

    def values(self, columns: Sequence[pa.Array], length: int) -> list[pa.Array] | None:
        """The values of each formula; None where NULLs or large integers ask for more care."""
        results = self._run(columns, length)
        if results is None:
            return None
        pairs = zip(self._results, results, strict=True)
        return [_array(memory, type, length) for (type, _), memory in pairs]

    def mask(self, columns: Sequence[pa.Array], length: int) -> Mask | None:
        """Where the only formula, a condition, holds; None as above."""
        results = self._run(columns, length)
        return None if results is None else np.frombuffer(results[0], np.bool_)

    def _run(self, columns: Sequence[pa.Array], length: int) -> list[pa.Buffer] | None:
        """The memory of the results. It is Arrow's, whose pool keeps pages that were in use:
        NumPy's arrays of this size are new to the system each time, which can take longer than to
        compute them."""
        if not length:
            return None
        addresses = []
        inputs = []  # kept until all is computed
        for position, width, type in self._inputs:
            column = columns[position]
            if column.null_count:
                return None
            memory = _truths(column) if type is BOOLEAN else column.buffers()[1]
            offset = 0 if type is BOOLEAN else column.offset
            assert memory.size >= (offset + length) * width
            inputs.append(memory)
            addresses.append(memory.address + offset * width)
        results = [pa.allocate_buffer(length * width) for _, width in self._results]
        addresses += [memory.address for memory in results]
        within = operations.run(
            self._steps, self._constants, np.array(addresses), self._widths, length
        )
        return results if within else None


def _truths(column: pa.Array) -> pa.Buffer:
    """Bits as bytes."""
    return pa.py_buffer(column.to_numpy(zero_copy_only=False))


def _array(memory: pa.Buffer, type: pa.DataType, length: int) -> pa.Array:
    if type == BOOLEAN:
        memory = pa.py_buffer(np.packbits(np.frombuffer(memory, np.bool_), bitorder="little"))
    return pa.Array.from_buffers(type, length, [None, memory])


class _Layout:
    """The steps of a program and the places of what they work on: columns, results, constants, and
    then a register for each step."""

    def __init__(self, formulas: Sequence[Formula]) -> None:
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
                result = None if part.type in _STORES else results.get(part)
                a, *b = [places[operand] for operand in part.operands]
                places[part] = self._add(part.operation, a, *b, result=result)
        for formula, place in results.items():
            if formula.type in _STORES:
                self._add(_STORES[formula.type], places[formula], result=place)

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
