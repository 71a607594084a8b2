"""Programs: formulas that are computed over the memory of columns.

To make machine code takes some milliseconds. A program makes it when it has seen enough to be worth
them, and gives up before: the nodes then evaluate the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from millstream.physical.expressions.loops import Loop, compiled
from millstream.physical.expressions.vector import Mask
from millstream.physical.machine_code import MachineCode
from millstream.types import BOOLEAN

Words: TypeAlias = npt.NDArray[np.int64]

WORTH = 10_000  # rows for which machine code is made
_ALIGNMENT = 64  # bytes, as Arrow has it
A_BATCH = 500  # rows take the nodes as long as a batch of no rows


class _Machine:
    """A loop over columns, with its constants."""

    def __init__(self, formulas: Sequence[Formula], selects: bool) -> None:
        self._loop, self._constants = _loop(formulas, selects)
        self._constants_address = self._constants.ctypes.data
        self._inputs = [
            (position, DTYPES[type].itemsize, type == BOOLEAN)
            for position, type in _columns(formulas).items()
        ]
        self._seen = 0
        self._code: MachineCode | None = None

    def is_made(self, length: int) -> bool:
        """Whether there is code for a batch of so many rows."""
        if self._code is None:
            self._seen += length + A_BATCH
            if self._seen >= WORTH:
                self._code = compiled(self._loop)
        return self._code is not None and length > 0

    def run(self, columns: Sequence[pa.Array], length: int, results: Sequence[int]) -> int:
        """Write the results to these addresses. Gives how many rows were selected, or -1 where
        NULLs or large integers ask for more care."""
        assert self._code is not None
        addresses = [self._constants_address]
        held = []  # until all is computed
        for position, width, truths in self._inputs:
            column = columns[position]
            if column.null_count:
                return -1
            memory = _bytes(column) if truths else column.buffers()[1]
            offset = 0 if truths else column.offset * width
            assert memory.size >= offset + length * width
            held.append(memory)
            addresses.append(memory.address + offset)
        return self._code.call(length, *addresses, *results)


class Program:
    """Formulas over one batch, computed together: all of them, or none."""

    def __init__(self, formulas: Sequence[Formula]) -> None:
        self._types = [formula.type for formula in formulas]
        self._sizes = [DTYPES[type].itemsize for type in self._types]
        self._machine = _Machine(formulas, selects=False)

    def values(self, columns: Sequence[pa.Array], length: int) -> list[pa.Array] | None:
        """The values of each formula; None where it gives up."""
        memory, places = self._run(columns, length)
        if memory is None:
            return None
        each = zip(self._types, self._sizes, places, strict=True)
        return [_array(memory, place, type, size, length) for type, size, place in each]

    def mask(self, columns: Sequence[pa.Array], length: int) -> Mask | None:
        """Where the only formula, a condition, holds; None as above."""
        memory, _ = self._run(columns, length)
        return None if memory is None else np.frombuffer(memory, np.bool_, length)

    def _run(
        self, columns: Sequence[pa.Array], length: int
    ) -> tuple[pa.Buffer | None, Sequence[int]]:
        """The memory of all results, and where in it each begins. It is Arrow's, whose pool keeps
        pages that were in use: NumPy's arrays of this size are new to the system each time, which
        can take longer than to compute them."""
        if not self._machine.is_made(length):
            return None, ()
        places, end = [], 0
        for size in self._sizes:
            places.append(end)
            end += -(-length * size // _ALIGNMENT) * _ALIGNMENT
        memory = pa.allocate_buffer(end)
        first = memory.address
        good = self._machine.run(columns, length, [first + place for place in places]) >= 0
        return (memory if good else None), places


class Selection:
    """The rows for which a condition holds."""

    def __init__(self, condition: Formula) -> None:
        self._machine = _Machine([condition], selects=True)
        self._room = np.empty(0, np.int64)  # for the numbers of all rows of a batch
        self._address: Sequence[int] = ()

    def rows(self, columns: Sequence[pa.Array], length: int) -> Words | None:
        """Their numbers; None as above."""
        if not self._machine.is_made(length):
            return None
        if len(self._room) < length:
            self._room = np.empty(length, np.int64)
            self._address = [self._room.ctypes.data]
        selected = self._machine.run(columns, length, self._address)
        return None if selected < 0 else self._room[:selected].copy()


def _bytes(column: pa.Array) -> pa.Buffer:
    """The truth values of a column, a byte each."""
    return pa.py_buffer(column.to_numpy(zero_copy_only=False))


def _array(memory: pa.Buffer, place: int, type: pa.DataType, size: int, length: int) -> pa.Array:
    if type == BOOLEAN:
        truths = np.frombuffer(memory, np.bool_, length, place)
        memory, place = pa.py_buffer(np.packbits(truths, bitorder="little")), 0
    return pa.Array.from_buffers(type, length, [None, memory], 0, place // size)


# --- from formulas to loops -------------------------------------------------------------------


def _loop(formulas: Sequence[Formula], selects: bool) -> tuple[Loop, Words]:
    """The loop that computes formulas, and its constants: words that begin with them."""
    each, columns = parts(*formulas), _columns(formulas)
    numbers = [part for part in each if isinstance(part, Number)]
    limits = _common_limits(formulas)
    constants = [*map(_number, numbers)]
    constants += [(DTYPES[columns[position]].name, limit) for position, limit in limits.items()]
    order = {position: place for place, position in enumerate(columns)}
    places: dict[Formula, int] = {number: len(order) + i for i, number in enumerate(numbers)}
    places |= {part: order[part.position] for part in each if isinstance(part, Input)}
    first_limit = len(order) + len(numbers)
    steps = []
    for part in each:
        if isinstance(part, Step):
            steps.append((part.operation, tuple(places[operand] for operand in part.operands)))
            places[part] = len(order) + len(constants) + len(steps) - 1
    loop = Loop(
        columns=tuple(DTYPES[type].name for type in columns.values()),
        constants=tuple(kind for kind, _ in constants),
        steps=tuple(steps),
        limits=tuple((order[p], first_limit + i) for i, p in enumerate(limits)),
        results=tuple(places[formula] for formula in formulas),
        selects=selects,
    )
    return loop, np.array([word for _, word in constants], np.int64)


def _columns(formulas: Sequence[Formula]) -> dict[int, pa.DataType]:
    """The columns that formulas read, by position."""
    return {part.position: part.type for part in parts(*formulas) if isinstance(part, Input)}


def _common_limits(formulas: Sequence[Formula]) -> dict[int, int]:
    """Those that are within the limits of every formula."""
    common: dict[int, int] = {}
    for formula in formulas:
        for position, limit in limits_of(formula).items():
            common[position] = min(limit, common.get(position, limit))
    return common


def _number(number: Number) -> tuple[str, int]:
    """A constant's type, and a word that begins with its bits."""
    stored = DTYPES[number.type]
    word = np.zeros(8 // stored.itemsize, stored)
    word[0] = number.value
    return stored.name, int(word.view(np.int64)[0])
