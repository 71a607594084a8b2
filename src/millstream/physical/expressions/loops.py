"""A loop over the rows of columns in LLVM IR: eight rows at a time as lanes of vectors, and the
remaining rows one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TypeAlias

import pyarrow as pa
from llvmlite import ir

from millstream.physical.expressions.machine_code import WORD, MachineCode
from millstream.physical.expressions.operations import Lanes, Operation, beyond, bits, holding

LANES = 8  # one per bit of a byte
KEPT = 1_000  # loops whose code is cached

# For each byte the positions of its set bits, followed by zeros.
SET_BITS = pa.py_buffer(
    b"".join(
        bytes(bit for bit in range(LANES) if byte >> bit & 1).ljust(LANES, b"\0")
        for byte in range(1 << LANES)
    )
)

_NAME = "loop"
_SHORT, _BYTE, _BIT = (ir.IntType(width) for width in (16, 8, 1))
_TYPES: dict[str, ir.Type] = {
    "bool": _BIT,
    "int32": ir.IntType(32),
    "int64": WORD,
    "float32": ir.FloatType(),
    "float64": ir.DoubleType(),
}


class Gives(Enum):
    """What a loop writes."""

    VALUES = "values"  # all results, in Arrow's format
    MASK = "mask"  # a byte per row: whether the only result, a condition, holds
    ROWS = "rows"  # the numbers of the rows for which it holds


@dataclass(frozen=True)
class Loop:
    """The computation without the values of its constants, so that queries that differ only in
    those share code. Values have places: columns first, then constants, then steps."""

    columns: tuple[str, ...]  # NumPy's names of their types
    constants: tuple[str, ...]
    steps: tuple[tuple[Operation, tuple[int, ...]], ...]  # with the places of the operands
    limits: tuple[tuple[int, int], ...]  # places of columns, and of their maxima
    results: tuple[int, ...]
    gives: Gives
    nullable: bool = False  # whether columns and results may have NULLs


@lru_cache(KEPT)
def compiled(loop: Loop) -> MachineCode:
    """A function of words: the number of rows; the constants, each at the start of its word; the
    address of each column; the address of its validity bitmap, if there may be NULLs; the address
    of each result; and that of its validity bitmap, if it can have NULLs. If the loop writes rows,
    there is room for `LANES` extra ones, and the last word is the address of `SET_BITS`.

    The address of a bitmap to read is a bit address, since it may begin within a byte.

    Returns the number of selected rows, or -1 if an integer exceeds its limit: then the results are
    undefined."""
    return MachineCode(_written(loop), _NAME)


def _written(loop: Loop) -> ir.Module:
    function = ir.Function(ir.Module(), ir.FunctionType(WORD, [WORD]), _NAME)
    builder = ir.IRBuilder(function.append_basic_block())
    many, one = (_Turn(builder, loop, function.args[0], lanes) for lanes in (LANES, 1))
    rows = many.word(0)
    whole = builder.and_(rows, WORD(-LANES))
    so_far = _repeat(builder, WORD(0), whole, LANES, [WORD(0), WORD(0)], many.emit)
    strays, selected = _repeat(builder, whole, rows, 1, so_far, one.emit)
    good = builder.icmp_unsigned("==", strays, WORD(0))
    builder.ret(builder.select(good, selected, WORD(-1)))
    return builder.module


# Takes the first row of an iteration and the values accumulated so far.
Body: TypeAlias = Callable[[ir.Value, list[ir.Value]], list[ir.Value]]


def _repeat(
    builder: ir.IRBuilder,
    first: ir.Value,
    stop: ir.Value,
    step: int,
    start: list[ir.Value],
    body: Body,
) -> list[ir.Value]:
    """Emits a loop from the first row on; returns the accumulated values."""
    before = builder.block
    head, inside, after = (builder.append_basic_block() for _ in range(3))
    builder.branch(head)
    builder.position_at_end(head)
    row, *so_far = [builder.phi(WORD) for _ in range(1 + len(start))]
    builder.cbranch(builder.icmp_signed("<", row, stop), inside, after)
    builder.position_at_end(inside)
    then = [builder.add(row, WORD(step)), *body(row, so_far)]
    for phi, at_first, later in zip([row, *so_far], [first, *start], then, strict=True):
        phi.add_incoming(at_first, before)
        phi.add_incoming(later, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return so_far


class _Turn:
    """One iteration, over one row per lane."""

    def __init__(self, builder: ir.IRBuilder, loop: Loop, words: ir.Value, lanes: int) -> None:
        self._builder = builder
        self._loop = loop
        self._words = words
        self._lanes = lanes
        twice = 2 if loop.nullable else 1
        inputs = len(loop.columns) * twice
        results = len(loop.results)
        outputs = {Gives.VALUES: results * twice, Gives.MASK: 1, Gives.ROWS: 2}[loop.gives]
        first = 1 + len(loop.constants)
        self._constants = [
            Lanes(self._all(self.word(place, _TYPES[kind])))
            for place, kind in enumerate(loop.constants, 1)
        ]
        self._inputs = [self.word(first + i) for i in range(inputs)]
        self._outputs = [self.word(first + inputs + i) for i in range(outputs)]

    def word(self, place: int, type: ir.Type = WORD) -> ir.Value:
        """The value at the start of one of the function's words."""
        return self._builder.load(self._pointer(self._words, WORD(8 * place), type))

    def emit(self, row: ir.Value, so_far: list[ir.Value]) -> list[ir.Value]:
        """Returns a nonzero word if some integer was too large, and the number of selected rows."""
        builder, loop, (strays, selected) = self._builder, self._loop, so_far
        values = [*self._columns(row), *self._constants]
        for column, limit in loop.limits:
            stray = bits(builder, beyond(builder, values[column], values[limit]))
            strays = builder.or_(strays, stray)
        for operation, operands in loop.steps:
            values.append(operation(builder, *[values[place] for place in operands]))
        results = [values[place] for place in loop.results]
        if loop.gives is Gives.ROWS:
            selected = self._select(holding(builder, *results), row, selected)
        elif loop.gives is Gives.MASK:
            mask = builder.zext(holding(builder, *results), self._vector(_BYTE))
            self._store(mask, self._outputs[0], row)
        else:
            self._store_values(results, row)
        return [strays, selected]

    def _columns(self, row: ir.Value) -> list[Lanes]:
        count = len(self._loop.columns)
        found = []
        for i, kind in enumerate(self._loop.columns):
            place = self._inputs[i]
            values = self._bits(place, row) if kind == "bool" else self._load(place, row, kind)
            valid = self._bits(self._inputs[count + i], row) if self._loop.nullable else None
            found.append(Lanes(values, valid))
        return found

    def _store_values(self, results: Sequence[Lanes], row: ir.Value) -> None:
        for i, result in enumerate(results):
            is_truth = result.values.type.element == _BIT
            (self._store_bits if is_truth else self._store)(result.values, self._outputs[i], row)
            if self._loop.nullable:
                everywhere = ir.Constant(self._vector(_BIT), [1] * self._lanes)
                valid = everywhere if result.valid is None else result.valid
                self._store_bits(valid, self._outputs[len(results) + i], row)

    def _select(self, holds: ir.Value, row: ir.Value, selected: ir.Value) -> ir.Value:
        """Branchless, since the selection is unpredictable. Entries written beyond the selected
        ones are overwritten."""
        builder, held = self._builder, bits(self._builder, holds)
        entry = builder.mul(held, WORD(LANES))
        listed = self._pointer(self._outputs[1], entry, self._vector(_BYTE))
        lanes = builder.zext(builder.load(listed, align=1), self._vector(WORD))
        self._store(builder.add(lanes, self._all(row)), self._outputs[0], selected)
        return builder.add(selected, builder.ctpop(held))

    # --- memory -------------------------------------------------------------------------------

    def _load(self, address: ir.Value, row: ir.Value, kind: str) -> ir.Value:
        vector = self._vector(_TYPES[kind])
        distance = self._builder.mul(row, WORD(_bytes(vector.element)))
        return self._builder.load(self._pointer(address, distance, vector), align=1)

    def _store(self, values: ir.Value, address: ir.Value, row: ir.Value) -> None:
        distance = self._builder.mul(row, WORD(_bytes(values.type.element)))
        self._builder.store(values, self._pointer(address, distance, values.type), align=1)

    def _bits(self, first: ir.Value, row: ir.Value) -> ir.Value:
        """The bits from a row's on: eight of them can span two bytes."""
        builder = self._builder
        begin = builder.add(first, row)
        last = builder.add(begin, WORD(self._lanes - 1))
        low, high = (
            builder.zext(
                builder.load(self._pointer(builder.lshr(bit, WORD(3)), None, _BYTE)), _SHORT
            )
            for bit in (begin, last)
        )
        both = builder.or_(low, builder.shl(high, _SHORT(8)))
        within = builder.trunc(builder.and_(begin, WORD(7)), _SHORT)
        found = builder.trunc(builder.lshr(both, within), ir.IntType(self._lanes))
        return builder.bitcast(found, self._vector(_BIT))

    def _store_bits(self, truths: ir.Value, address: ir.Value, row: ir.Value) -> None:
        """Writes whole bytes from the address on; the last byte bit by bit."""
        builder = self._builder
        place = self._pointer(address, builder.lshr(row, WORD(3)), _BYTE)
        byte = builder.trunc(bits(builder, truths), _BYTE)
        if self._lanes < LANES:
            within = builder.trunc(builder.and_(row, WORD(7)), _BYTE)
            is_first = builder.icmp_unsigned("==", within, _BYTE(0))
            others = builder.select(is_first, _BYTE(0), builder.load(place))
            byte = builder.or_(others, builder.shl(byte, within))
        builder.store(byte, place)

    def _pointer(self, address: ir.Value, distance: ir.Value | None, to: ir.Type) -> ir.Value:
        place = address if distance is None else self._builder.add(address, distance)
        return self._builder.inttoptr(place, ir.PointerType(to))

    def _all(self, value: ir.Value) -> ir.Value:
        """The same value in all lanes."""
        none = ir.Constant(self._vector(value.type), ir.Undefined)
        first = self._builder.insert_element(none, value, ir.IntType(32)(0))
        same = ir.Constant(self._vector(ir.IntType(32)), None)
        return self._builder.shuffle_vector(first, none, same)

    def _vector(self, type: ir.Type) -> ir.VectorType:
        return ir.VectorType(type, self._lanes)


def _bytes(type: ir.Type) -> int:
    if isinstance(type, ir.IntType):
        return int(type.width) // 8
    return 4 if isinstance(type, ir.FloatType) else 8
