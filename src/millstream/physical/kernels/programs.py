"""Programs of arithmetic over columns, some rows at a time, so that what lies between two steps
stays in the cache.

A program is a table with a step in each row: an operation, the place of its result, and the places
of its operands. A place is an address and a width: so many bytes further lies the next row. The
first places are columns, in and out; behind them are registers, which have room for the rows of one
block, and the first registers hold constants. Registers hold integers or doubles, whatever the type
of a column is; truth values are 0 and 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, njit, types  # type: ignore[attr-defined]
from numba.extending import intrinsic
from numpy.typing import NDArray

from millstream.physical.kernels.remainders import write_remainders

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]

BLOCK = 512  # rows: a register takes 4 KiB

# From columns and to them: the operand or the result is a column, the other one a register.
LOAD_BYTE, LOAD_INT, LOAD_REAL, STORE_BYTE, STORE_INT, STORE_REAL = range(6)
# Of integers. REMAINDER and WITHIN have a constant on the right: a divisor above 0, and a limit.
ADD, SUBTRACT, MULTIPLY, REMAINDER, NEGATE, ABS = range(6, 12)
EQUAL, LESS, LESS_EQUAL, AND, OR, WITHIN = range(12, 18)
# Of doubles.
ADD_DOUBLES, SUBTRACT_DOUBLES, MULTIPLY_DOUBLES, DIVIDE_DOUBLES = range(18, 22)
NEGATE_DOUBLES, ABS_DOUBLES, ROUND_TO_REAL = range(22, 25)
# Of doubles, to truth values; and from integers to doubles.
EQUAL_DOUBLES, LESS_DOUBLES, LESS_EQUAL_DOUBLES, TO_DOUBLE = range(25, 29)
# Of truth values, to a column of the numbers of those rows for which they hold.
SELECT = 29


def _pointer_to(kind: Any) -> Any:
    """A function that makes a pointer of an address."""

    @intrinsic
    def pointer(typing_context: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64), code  # type: ignore[no-untyped-call]

    return pointer


_to_byte, _to_int, _to_real = map(_pointer_to, (types.int8, types.int32, types.float32))
_to_long, _to_double = map(_pointer_to, (types.int64, types.float64))


@njit(cache=True)
def run(program: Ints, constants: Ints, columns: Ints, widths: Ints, rows: int) -> int:
    """Run the steps over all rows. `columns` are addresses, `constants` the bits of their values.
    Gives how many rows were selected; -1 if some integer was not within its limit: then the results
    mean nothing."""
    block = min(rows, BLOCK)
    registers = np.empty((len(constants) + len(program), block), np.int64)
    for i in range(len(constants)):
        registers[i] = constants[i]
    places = np.empty(len(columns) + len(registers), np.int64)
    for i in range(len(registers)):
        places[len(columns) + i] = registers.ctypes.data + i * block * 8
    selected = 0
    for first in range(0, rows, block):
        count = min(block, rows - first)
        for i in range(len(columns)):
            places[i] = columns[i] + first * widths[i]
        for i in range(len(program)):
            operation, result, a, b = program[i]
            if operation == SELECT:
                result = columns[result] + 8 * selected
                selected += _select(_longs(places[a], count), first, _longs(result, count))
            elif not _step(operation, places[result], places[a], places[b], count):
                return -1
    return selected


@njit(cache=True)
def _select(holds: Ints, first: int, rows: Ints) -> int:
    """Without a branch: no processor can guess which rows are selected."""
    found = 0
    for i in range(len(holds)):
        rows[found] = first + i
        found += holds[i]
    return found


@njit(cache=True)
def _step(operation: int, result: int, a: int, b: int, rows: int) -> bool:
    if operation <= STORE_REAL:
        _transfer(operation, a, result, rows)
    elif operation < WITHIN:
        _on_integers(operation, _longs(a, rows), _longs(b, rows), _longs(result, rows))
    elif operation == WITHIN:
        return _within(_longs(a, rows), _longs(b, rows)[0])
    elif operation <= ROUND_TO_REAL:
        _on_doubles(operation, _doubles(a, rows), _doubles(b, rows), _doubles(result, rows))
    elif operation <= LESS_EQUAL_DOUBLES:
        _compare_doubles(operation, _doubles(a, rows), _doubles(b, rows), _longs(result, rows))
    else:
        _copy(_longs(a, rows), _doubles(result, rows))
    return True


@njit(cache=True)
def _longs(address: int, rows: int) -> Ints:
    return carray(_to_long(address), rows)


@njit(cache=True)
def _doubles(address: int, rows: int) -> Doubles:
    return carray(_to_double(address), rows)


@njit(cache=True)
def _transfer(operation: int, a: int, result: int, rows: int) -> None:
    if operation == LOAD_BYTE:
        _copy(carray(_to_byte(a), rows), _longs(result, rows))
    elif operation == LOAD_INT:
        _copy(carray(_to_int(a), rows), _longs(result, rows))
    elif operation == LOAD_REAL:
        _copy(carray(_to_real(a), rows), _doubles(result, rows))
    elif operation == STORE_BYTE:
        _copy(_longs(a, rows), carray(_to_byte(result), rows))
    elif operation == STORE_INT:
        _copy(_longs(a, rows), carray(_to_int(result), rows))
    else:
        _copy(_doubles(a, rows), carray(_to_real(result), rows))


@njit(cache=True)
def _copy(source: NDArray[Any], target: NDArray[Any]) -> None:
    for i in range(len(source)):
        target[i] = source[i]


@njit(cache=True)
def _within(values: Ints, limit: int) -> bool:
    least, most = values[0], values[0]
    for i in range(len(values)):
        least, most = min(least, values[i]), max(most, values[i])
    return bool(-limit <= least and most <= limit)


@njit(cache=True, error_model="numpy")
def _on_integers(operation: int, x: Ints, y: Ints, z: Ints) -> None:
    if operation == ADD:
        for i in range(len(z)):
            z[i] = x[i] + y[i]
    elif operation == SUBTRACT:
        for i in range(len(z)):
            z[i] = x[i] - y[i]
    elif operation == MULTIPLY:
        for i in range(len(z)):
            z[i] = x[i] * y[i]
    elif operation == REMAINDER:
        write_remainders(x, y[0], z)
    elif operation == NEGATE:
        for i in range(len(z)):
            z[i] = -x[i]
    elif operation == ABS:
        for i in range(len(z)):
            z[i] = abs(x[i])
    elif operation == EQUAL:
        for i in range(len(z)):
            z[i] = x[i] == y[i]
    elif operation == LESS:
        for i in range(len(z)):
            z[i] = x[i] < y[i]
    elif operation == LESS_EQUAL:
        for i in range(len(z)):
            z[i] = x[i] <= y[i]
    elif operation == AND:
        for i in range(len(z)):
            z[i] = x[i] & y[i]
    else:
        for i in range(len(z)):
            z[i] = x[i] | y[i]


@njit(cache=True, error_model="numpy")
def _on_doubles(operation: int, x: Doubles, y: Doubles, z: Doubles) -> None:
    if operation == ADD_DOUBLES:
        for i in range(len(z)):
            z[i] = x[i] + y[i]
    elif operation == SUBTRACT_DOUBLES:
        for i in range(len(z)):
            z[i] = x[i] - y[i]
    elif operation == MULTIPLY_DOUBLES:
        for i in range(len(z)):
            z[i] = x[i] * y[i]
    elif operation == DIVIDE_DOUBLES:
        for i in range(len(z)):
            z[i] = x[i] / y[i]
    elif operation == NEGATE_DOUBLES:
        for i in range(len(z)):
            z[i] = -x[i]
    elif operation == ABS_DOUBLES:
        for i in range(len(z)):
            z[i] = abs(x[i])
    else:
        for i in range(len(z)):
            z[i] = np.float32(x[i])


@njit(cache=True)
def _compare_doubles(operation: int, x: Doubles, y: Doubles, z: Ints) -> None:
    """NaN stands above all numbers, and equals itself."""
    if operation == EQUAL_DOUBLES:
        for i in range(len(z)):
            z[i] = (x[i] == y[i]) | ((x[i] != x[i]) & (y[i] != y[i]))
    elif operation == LESS_DOUBLES:
        for i in range(len(z)):
            z[i] = (not x[i] >= y[i]) & (x[i] == x[i])
    else:
        for i in range(len(z)):
            z[i] = (x[i] <= y[i]) | (y[i] != y[i])
