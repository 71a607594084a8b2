"""Formulas as one loop over rows, in LLVM's language: so many rows at a time as a vector has lanes,
and what is left over row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
from llvmlite import ir

from millstream.physical.expressions.formulas import (
    DTYPES,
    Formula,
    Input,
    Number,
    limits_of,
    parts,
)
from millstream.physical.expressions.operations import bits, constant, outside
from millstream.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, INTERVAL, REAL, TIMESTAMP

NAME = "loop"
LANES = 8

_WORD = ir.IntType(64)
_BYTE = ir.IntType(8)
_TYPES: Mapping[pa.DataType, ir.Type] = {
    BOOLEAN: ir.IntType(1),
    INT: ir.IntType(32),
    BIGINT: _WORD,
    REAL: ir.FloatType(),
    DOUBLE: ir.DoubleType(),
    DATE: ir.IntType(32),
    TIMESTAMP: _WORD,
    INTERVAL: _WORD,
}

# From the first row of a turn, what the turns so far came to, and the number of lanes.
Turn: TypeAlias = Callable[[ir.Value, list[ir.Value], int], list[ir.Value]]


def storing(formulas: Sequence[Formula]) -> str:
    """A function of the number of rows and the addresses of columns, as `columns_of` has them, and
    of results. It gives 0, or -1 if some integer is not within its limit: then the results mean
    nothing. Truth values are bytes."""
    return _Loop(formulas).text(selects=False)


def selecting(condition: Formula) -> str:
    """A function as above, whose only result are the numbers of those rows for which the condition
    holds; it gives how many."""
    return _Loop([condition]).text(selects=True)


def columns_of(formulas: Sequence[Formula]) -> dict[int, pa.DataType]:
    """The columns that formulas read, by position."""
    return {part.position: part.type for part in parts(*formulas) if isinstance(part, Input)}


class _Loop:
    def __init__(self, formulas: Sequence[Formula]) -> None:
        self._formulas = formulas
        self._columns = columns_of(formulas)
        self._limits = _common_limits(formulas)
        module = ir.Module()
        arity = 1 + len(self._columns) + len(formulas)
        function = ir.Function(module, ir.FunctionType(_WORD, [_WORD] * arity), NAME)
        self._rows, *addresses = function.args
        self._inputs = dict(zip(self._columns, addresses, strict=False))
        self._results = addresses[len(self._columns) :]
        self._builder = ir.IRBuilder(function.append_basic_block())

    def text(self, selects: bool) -> str:
        builder, turn = self._builder, self._select if selects else self._store
        whole = builder.and_(self._rows, _WORD(-LANES))
        carried = self._repeat(_WORD(0), whole, LANES, [_WORD(0), _WORD(0)], turn)
        strays, selected = self._repeat(whole, self._rows, 1, carried, turn)
        good = builder.icmp_unsigned("==", strays, _WORD(0))
        builder.ret(builder.select(good, selected, _WORD(-1)))
        return str(builder.module)

    def _repeat(
        self, first: ir.Value, stop: ir.Value, lanes: int, carried: list[ir.Value], turn: Turn
    ) -> list[ir.Value]:
        """Turns from the first row on, as many rows each as there are lanes."""
        builder = self._builder
        before = builder.block
        head, body, after = (builder.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        row, *known = [builder.phi(_WORD) for _ in range(1 + len(carried))]
        builder.cbranch(builder.icmp_signed("<", row, stop), body, after)
        builder.position_at_end(body)
        later = [builder.add(row, _WORD(lanes)), *turn(row, known, lanes)]
        for phi, at_first, then in zip([row, *known], [first, *carried], later, strict=True):
            phi.add_incoming(at_first, before)
            phi.add_incoming(then, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return known

    def _store(self, row: ir.Value, carried: list[ir.Value], lanes: int) -> list[ir.Value]:
        values, strays = self._computed(row, lanes)
        for formula, value, address in zip(self._formulas, values, self._results, strict=True):
            if formula.type == BOOLEAN:
                value = self._builder.zext(value, ir.VectorType(_BYTE, lanes))
            pointer = self._pointer(address, row, formula.type, value.type)
            self._builder.store(value, pointer, align=1)
        return [self._builder.or_(carried[0], strays), carried[1]]

    def _select(self, row: ir.Value, carried: list[ir.Value], lanes: int) -> list[ir.Value]:
        """Without a branch: no processor can guess which rows are selected."""
        builder, (strays, selected) = self._builder, carried
        (holds,), more = self._computed(row, lanes)
        holding = bits(builder, holds)
        for lane in range(lanes):
            pointer = self._pointer(self._results[0], selected, BIGINT, _WORD)
            builder.store(builder.add(row, _WORD(lane)), pointer)
            held = builder.and_(builder.lshr(holding, _WORD(lane)), _WORD(1))
            selected = builder.add(selected, held)
        return [builder.or_(strays, more), selected]

    def _computed(self, row: ir.Value, lanes: int) -> tuple[list[ir.Value], ir.Value]:
        """The values of the formulas, and a number that is 0 if all integers are within limits."""
        loaded = {position: self._load(position, row, lanes) for position in self._columns}
        strays = _WORD(0)
        for position, limit in self._limits.items():
            beyond = outside(self._builder, loaded[position], limit)
            strays = self._builder.or_(strays, bits(self._builder, beyond))
        values: dict[Formula, ir.Value] = {}
        for part in parts(*self._formulas):
            if isinstance(part, Input):
                values[part] = loaded[part.position]
            elif isinstance(part, Number):
                plain = part.value.item()
                values[part] = constant(ir.VectorType(_TYPES[part.type], lanes), plain)
            else:
                operands = [values[operand] for operand in part.operands]
                values[part] = part.operation(self._builder, *operands)
        return [values[formula] for formula in self._formulas], strays

    def _load(self, position: int, row: ir.Value, lanes: int) -> ir.Value:
        type = self._columns[position]
        stored = ir.VectorType(_BYTE if type == BOOLEAN else _TYPES[type], lanes)
        pointer = self._pointer(self._inputs[position], row, type, stored)
        value = self._builder.load(pointer, align=1)
        if type == BOOLEAN:
            return self._builder.trunc(value, ir.VectorType(_TYPES[BOOLEAN], lanes))
        return value

    def _pointer(
        self, address: ir.Value, row: ir.Value, type: pa.DataType, to: ir.Type
    ) -> ir.Value:
        distance = self._builder.mul(row, _WORD(DTYPES[type].itemsize))
        return self._builder.inttoptr(self._builder.add(address, distance), ir.PointerType(to))


def _common_limits(formulas: Sequence[Formula]) -> dict[int, int]:
    """Those that are within the limits of every formula."""
    common: dict[int, int] = {}
    for formula in formulas:
        for position, limit in limits_of(formula).items():
            common[position] = min(limit, common.get(position, limit))
    return common
