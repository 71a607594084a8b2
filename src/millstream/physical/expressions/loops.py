"""One loop over the rows of columns, in LLVM's language: as many rows at a time as a vector has
lanes, and what is left over row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from llvmlite import ir

from millstream.physical.expressions.operations import Operation, bits, outside
from millstream.physical.machine_code import MachineCode, new_module

LANES = 8
KEPT = 1_000  # loops whose code is kept for the next who need it

_NAME = "loop"
_WORD, _BYTE, _TRUTH = ir.IntType(64), ir.IntType(8), ir.IntType(1)
_TYPES: dict[str, ir.Type] = {
    "bool": _TRUTH,
    "int32": ir.IntType(32),
    "int64": _WORD,
    "float32": ir.FloatType(),
    "float64": ir.DoubleType(),
}


@dataclass(frozen=True)
class Loop:
    """What is computed, but for the values of constants: so that one code serves all queries that
    differ in those. Values have places: columns first, then constants, then steps."""

    columns: tuple[str, ...]  # NumPy's names of their types; truth values are bytes
    constants: tuple[str, ...]
    steps: tuple[tuple[Operation, tuple[int, ...]], ...]  # with the places of the operands
    limits: tuple[tuple[int, int], ...]  # places of columns, and of constants they must not exceed
    results: tuple[int, ...]
    selects: bool = False  # instead of its value, the numbers of rows for which the result holds

    @property
    def arity(self) -> int:
        return 2 + len(self.columns) + len(self.results)


@lru_cache(KEPT)
def compiled(loop: Loop) -> MachineCode:
    """A function of the number of rows and of addresses: those of the constants, which are words,
    of columns and of results. It gives how many rows were selected, or -1 if some integer is beyond
    its limit: then the results mean nothing."""
    return MachineCode(_written(loop), _NAME, loop.arity)


def _written(loop: Loop) -> ir.Module:
    function = ir.Function(new_module(), ir.FunctionType(_WORD, [_WORD] * loop.arity), _NAME)
    builder = ir.IRBuilder(function.append_basic_block())
    rows, constants, *addresses = function.args
    columns, results = addresses[: len(loop.columns)], addresses[len(loop.columns) :]
    many, one = (_Turn(builder, loop, columns, results, constants, lanes) for lanes in (LANES, 1))
    whole = builder.and_(rows, _WORD(-LANES))
    so_far = _repeat(builder, _WORD(0), whole, LANES, [_WORD(0), _WORD(0)], many.emit)
    strays, selected = _repeat(builder, whole, rows, 1, so_far, one.emit)
    good = builder.icmp_unsigned("==", strays, _WORD(0))
    builder.ret(builder.select(good, selected, _WORD(-1)))
    return builder.module


# From the first row of a turn and what the turns so far came to.
Body: TypeAlias = Callable[[ir.Value, list[ir.Value]], list[ir.Value]]


def _repeat(
    builder: ir.IRBuilder,
    first: ir.Value,
    stop: ir.Value,
    step: int,
    start: list[ir.Value],
    body: Body,
) -> list[ir.Value]:
    """Turns from the first row on; gives what they came to."""
    before = builder.block
    head, inside, after = (builder.append_basic_block() for _ in range(3))
    builder.branch(head)
    builder.position_at_end(head)
    row, *so_far = [builder.phi(_WORD) for _ in range(1 + len(start))]
    builder.cbranch(builder.icmp_signed("<", row, stop), inside, after)
    builder.position_at_end(inside)
    then = [builder.add(row, _WORD(step)), *body(row, so_far)]
    for phi, at_first, later in zip([row, *so_far], [first, *start], then, strict=True):
        phi.add_incoming(at_first, before)
        phi.add_incoming(later, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return so_far


class _Turn:
    """What is done with as many rows as there are lanes."""

    def __init__(
        self,
        builder: ir.IRBuilder,
        loop: Loop,
        columns: Sequence[ir.Value],
        results: Sequence[ir.Value],
        constants: ir.Value,
        lanes: int,
    ) -> None:
        self._builder = builder
        self._loop = loop
        self._columns = columns
        self._results = results
        self._lanes = lanes
        self._constants = [
            self._repeated(self._pointer(constants, _WORD(place), 8, _TYPES[kind]), _TYPES[kind])
            for place, kind in enumerate(loop.constants)
        ]

    def emit(self, row: ir.Value, so_far: list[ir.Value]) -> list[ir.Value]:
        loop, builder = self._loop, self._builder
        strays, selected = so_far
        columns = zip(self._columns, loop.columns, strict=True)
        values = [self._load(address, kind, row) for address, kind in columns]
        values += self._constants
        for column, limit in loop.limits:
            beyond = outside(builder, values[column], values[limit])
            strays = builder.or_(strays, bits(builder, beyond))
        for operation, operands in loop.steps:
            values.append(operation(builder, *[values[place] for place in operands]))
        for address, place in zip(self._results, loop.results, strict=True):
            if loop.selects:
                selected = self._select(values[place], row, address, selected)
            else:
                self._store(values[place], row, address)
        return [strays, selected]

    def _select(
        self, holds: ir.Value, row: ir.Value, address: ir.Value, selected: ir.Value
    ) -> ir.Value:
        """Without a branch: no processor can guess which rows are selected."""
        builder, holding = self._builder, bits(self._builder, holds)
        for lane in range(self._lanes):
            builder.store(builder.add(row, _WORD(lane)), self._pointer(address, selected, 8, _WORD))
            held = builder.and_(builder.lshr(holding, _WORD(lane)), _WORD(1))
            selected = builder.add(selected, held)
        return selected

    def _store(self, value: ir.Value, row: ir.Value, address: ir.Value) -> None:
        if value.type.element == _TRUTH:
            value = self._builder.zext(value, ir.VectorType(_BYTE, self._lanes))
        pointer = self._pointer(address, row, _bytes(value.type.element), value.type)
        self._builder.store(value, pointer, align=1)

    def _load(self, address: ir.Value, kind: str, row: ir.Value) -> ir.Value:
        type = _TYPES[kind]
        vector = ir.VectorType(_BYTE if type == _TRUTH else type, self._lanes)
        pointer = self._pointer(address, row, _bytes(vector.element), vector)
        value = self._builder.load(pointer, align=1)
        if type == _TRUTH:
            return self._builder.trunc(value, ir.VectorType(_TRUTH, self._lanes))
        return value

    def _pointer(self, address: ir.Value, row: ir.Value, width: int, to: ir.Type) -> ir.Value:
        place = self._builder.add(address, self._builder.mul(row, _WORD(width)))
        return self._builder.inttoptr(place, ir.PointerType(to))

    def _repeated(self, pointer: ir.Value, type: ir.Type) -> ir.Value:
        """The value there, in all lanes."""
        builder, none = self._builder, ir.Constant(ir.VectorType(type, self._lanes), ir.Undefined)
        first = builder.insert_element(none, builder.load(pointer), ir.IntType(32)(0))
        same = ir.Constant(ir.VectorType(ir.IntType(32), self._lanes), None)
        return builder.shuffle_vector(first, none, same)


def _bytes(type: ir.Type) -> int:
    if isinstance(type, ir.IntType):
        return int(type.width) // 8
    return 4 if isinstance(type, ir.FloatType) else 8
