"""Programs: formulas computed over the memory of columns.

Compiling machine code takes some milliseconds. A program compiles once it has seen enough rows to
be worth it. Before that it gives up, and the nodes evaluate the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.model.types import BOOLEAN
from millstream.physical.expressions.formulas import (
    DTYPES,
    Formula,
    FormulaOperation,
    InputColumn,
    Number,
    limits_of,
    parts,
)
from millstream.physical.expressions.loops import LANES, SET_BITS, Gives, Loop, compiled
from millstream.physical.expressions.machine_code import MachineCode
from millstream.physical.expressions.vector import Mask

Rows: TypeAlias = npt.NDArray[np.int64]

WORTH = 10_000  # rows seen before machine code is compiled
A_BATCH = 500  # the cost of an empty batch for the nodes, in rows

_ALIGNMENT = 64  # bytes, as in Arrow


class Program:
    """Formulas over one batch, computed together: all or none."""

    def __init__(self, formulas: Sequence[Formula]) -> None:
        self._formulas = formulas
        self._types = [formula.type for formula in formulas]
        self._widths = tuple(type.bit_width for type in self._types)

    def values(self, columns: Sequence[pa.Array], length: int) -> list[pa.Array] | None:
        """The values of each formula; None if it gives up. They share one allocation from Arrow's
        pool, which reuses pages. The system maps NumPy arrays of this size afresh each time, which
        can take longer than the computation."""
        inputs = self._values.inputs(columns, length)
        if inputs is None:
            return None
        types, widths = self._types, self._widths
        if inputs.nullable:
            widths += (1,) * len(widths)
        places, sizes, end = _layout(widths, length)
        memory = pa.allocate_buffer(end)
        first = memory.address
        if inputs.run([first + place for place in places]) < 0:
            return None
        if not inputs.nullable:
            return [
                pa.Array.from_buffers(type, length, [None, memory], 0, place * 8 // width)
                for type, place, width in zip(types, places, widths, strict=True)
            ]
        slices = [memory.slice(*part) for part in zip(places, sizes, strict=True)]
        return [
            pa.Array.from_buffers(type, length, [slices[len(types) + i], slices[i]])
            for i, type in enumerate(types)
        ]

    def mask(self, columns: Sequence[pa.Array], length: int) -> Mask | None:
        """Where the only formula, a condition, holds; None if it gives up."""
        inputs = self._mask.inputs(columns, length)
        if inputs is None:
            return None
        memory = pa.allocate_buffer(length)
        return None if inputs.run([memory.address]) < 0 else np.frombuffer(memory, np.bool_)

    @cached_property
    def _values(self) -> _Machine:
        return _Machine(self._formulas, Gives.VALUES)

    @cached_property
    def _mask(self) -> _Machine:
        return _Machine(self._formulas, Gives.MASK)


@lru_cache(64)
def _layout(widths: Sequence[int], rows: int) -> tuple[list[int], list[int], int]:
    """The offsets and lengths of results with these bits per row, and the total size."""
    places, sizes, end = [], [(rows * width + 7) // 8 for width in widths], 0
    for size in sizes:
        places.append(end)
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    return places, sizes, end


class Selection:
    """The rows for which a condition holds. Not thread-safe."""

    def __init__(self, condition: Formula) -> None:
        self._machine = _Machine([condition], Gives.ROWS)
        self._room = pa.allocate_buffer(0)  # for the numbers of all rows of a batch

    def rows(self, columns: Sequence[pa.Array], length: int) -> Rows | None:
        """The row numbers; None if it gives up."""
        inputs = self._machine.inputs(columns, length)
        if inputs is None:
            return None
        needed = 8 * (length + LANES)
        if self._room.size < needed:
            self._room = pa.allocate_buffer(needed)
        selected = inputs.run([self._room.address, SET_BITS.address])
        if selected < 0:
            return None
        return np.frombuffer(self._room, np.int64, selected).copy()


class _Inputs(NamedTuple):
    """The inputs of machine code for a batch."""

    code: MachineCode
    words: list[int]
    nullable: bool
    held: list[pa.Array]  # keeps the memory alive

    def run(self, results: list[int]) -> int:
        """Write the results to these addresses; returns the number of selected rows, or -1 if an
        integer exceeds its limit."""
        return self.code.call(self.words + results)


class _Machine:
    """A loop over columns with its constants; compiled separately for columns with and without
    NULLs."""

    def __init__(self, formulas: Sequence[Formula], gives: Gives) -> None:
        self._loop, self._constants = _loop(formulas, gives)
        self._columns = [
            (position, 0 if type == BOOLEAN else DTYPES[type].itemsize)
            for position, type in _columns(formulas).items()
        ]
        self._seen = 0
        self._codes: dict[bool, MachineCode] = {}

    def inputs(self, columns: Sequence[pa.Array], length: int) -> _Inputs | None:
        """None if there is no code for the batch."""
        if self._seen < WORTH:
            self._seen += length + A_BATCH
        if not length or self._seen < WORTH:
            return None
        words = [length, *self._constants]
        nullable, arrays = False, []
        for position, width in self._columns:
            array = columns[position]
            arrays.append(array)
            nullable = nullable or array.null_count > 0
            memory, offset = array.buffers()[1], array.offset
            if memory is None:  # only NULLs
                return None
            if width:
                assert memory.size >= (offset + length) * width
                words.append(memory.address + offset * width)
            else:
                assert memory.size * 8 >= offset + length
                words.append(memory.address * 8 + offset)
        if nullable:
            words += _validity(arrays, length)
        code = self._codes.get(nullable)
        if code is None:
            code = self._codes[nullable] = compiled(replace(self._loop, nullable=nullable))
        return _Inputs(code, words, nullable, arrays)


def _validity(arrays: list[pa.Array], length: int) -> list[int]:
    """The address of each array's validity bitmap; adds an all-valid bitmap for arrays without
    one."""
    everywhere = _everywhere(length)
    words = []
    for array in arrays:
        memory = array.buffers()[0]
        first = 0 if memory is None else array.offset
        memory = everywhere if memory is None else memory
        assert memory.size * 8 >= first + length
        words.append(memory.address * 8 + first)
    arrays.append(everywhere)
    return words


_valid = pa.allocate_buffer(0)


def _everywhere(length: int) -> pa.Buffer:
    """A bitmap with all rows valid."""
    global _valid
    if _valid.size * 8 < length:
        _valid = pa.py_buffer(np.full(length // 4 + 1, 255, np.uint8))
    return _valid


# --- from formulas to loops -------------------------------------------------------------------


def _loop(formulas: Sequence[Formula], gives: Gives) -> tuple[Loop, list[int]]:
    """The loop that computes formulas, and its constants as words."""
    each, columns = parts(*formulas), _columns(formulas)
    numbers = [part for part in each if isinstance(part, Number)]
    limits = _common_limits(formulas)
    constants = [*map(_number, numbers)]
    constants += [(DTYPES[columns[position]].name, limit) for position, limit in limits.items()]
    order = {position: place for place, position in enumerate(columns)}
    places: dict[Formula, int] = {number: len(order) + i for i, number in enumerate(numbers)}
    places |= {part: order[part.position] for part in each if isinstance(part, InputColumn)}
    first_limit = len(order) + len(numbers)
    steps = []
    for part in each:
        if isinstance(part, FormulaOperation):
            steps.append((part.operation, tuple(places[operand] for operand in part.operands)))
            places[part] = len(order) + len(constants) + len(steps) - 1
    loop = Loop(
        columns=tuple(DTYPES[type].name for type in columns.values()),
        constants=tuple(kind for kind, _ in constants),
        steps=tuple(steps),
        limits=tuple((order[p], first_limit + i) for i, p in enumerate(limits)),
        results=tuple(places[formula] for formula in formulas),
        gives=gives,
    )
    return loop, [word for _, word in constants]


def _columns(formulas: Sequence[Formula]) -> dict[int, pa.DataType]:
    """The columns that formulas read, by position."""
    return {part.position: part.type for part in parts(*formulas) if isinstance(part, InputColumn)}


def _common_limits(formulas: Sequence[Formula]) -> dict[int, int]:
    """The strictest limit of each column over all formulas."""
    common: dict[int, int] = {}
    for formula in formulas:
        limits = limits_of(formula)
        assert limits is not None, "every formula has limits"
        for position, limit in limits.items():
            common[position] = min(limit, common.get(position, limit))
    return common


def _number(number: Number) -> tuple[str, int]:
    """A constant's type, and a word that starts with its bits."""
    stored = DTYPES[number.type]
    word = np.zeros(8 // stored.itemsize, stored)
    word[0] = number.value
    return stored.name, int(word.view(np.int64)[0])
