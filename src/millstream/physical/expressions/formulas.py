"""Formulas: arithmetic, comparisons and logic over numbers, for batches where nothing can go wrong.

A formula is computed with plain NumPy where no column has a NULL and no integer is so large that
something could overflow. Else it gives up, and the nodes evaluate the batch with all care
(`nodes.Direct`). What can fail in other ways, as a division by a column, is no formula.

NULL and overflow are excluded before anything is computed. Each formula has limits, found once: as
long as no column holds an integer beyond its limit, no result is beyond its type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.logical.functions import Signature
from millstream.physical.kernels.remainders import remainders
from millstream.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FIRST_TIMESTAMP,
    INT,
    INTERVAL,
    REAL,
    TIMESTAMP,
    is_floating,
    is_integral,
)

Array: TypeAlias = npt.NDArray[Any]
Function: TypeAlias = Callable[..., Array]

_DTYPES: dict[pa.DataType, np.dtype[Any]] = {
    BOOLEAN: np.dtype(np.bool_),
    INT: np.dtype(np.int32),
    BIGINT: np.dtype(np.int64),
    REAL: np.dtype(np.float32),
    DOUBLE: np.dtype(np.float64),
    DATE: np.dtype(np.int32),
    TIMESTAMP: np.dtype(np.int64),
    INTERVAL: np.dtype(np.int64),
}


@dataclass(frozen=True, eq=False)
class Input:
    """A column."""

    position: int
    type: pa.DataType


@dataclass(frozen=True, eq=False)
class Number:
    """A constant."""

    value: Any  # a NumPy scalar
    type: pa.DataType


@dataclass(frozen=True, eq=False)
class Step:
    """A function of other formulas. `size` tells how far from 0 its results can be, if it is known
    how far the arguments are; only that of integers matters."""

    function: Function
    operands: tuple[Formula, ...]
    type: pa.DataType
    size: Callable[..., int] = lambda *sizes: 0


Formula: TypeAlias = Input | Number | Step


def column_formula(position: int, type: pa.DataType) -> Formula | None:
    return Input(position, type) if type in _DTYPES else None


def constant_formula(plain: object, type: pa.DataType) -> Formula | None:
    if plain is None or type not in _DTYPES:
        return None
    return Number(_DTYPES[type].type(plain), type)


def formula_of(
    name: str, signature: Signature, operands: Sequence[Formula | None]
) -> Formula | None:
    """The formula of a call; None where the function, or an argument, has none, and where it would
    be of constants alone: every step has a value for each row."""
    known = tuple(operand for operand in operands if operand is not None)
    build = _BUILDERS.get(name)
    if build is None or len(known) < len(operands) or _are_constant(known):
        return None
    return build(signature.result, known)


def cast_formula(operand: Formula | None, target: pa.DataType) -> Formula | None:
    """Of casts that cannot fail."""
    if operand is None or _are_constant([operand]):
        return None
    if not (is_integral(operand.type) or is_floating(operand.type)):
        return None
    if target == BIGINT and operand.type == INT:
        return Step(lambda a: a.astype(np.int64), (operand,), target, _same_size)
    if target == DOUBLE:
        return Step(lambda a: a.astype(np.float64), (operand,), target)
    return None


def connective_formula(operands: Sequence[Formula | None], decisive: bool) -> Formula | None:
    """OR if one TRUE decides, AND if one FALSE does."""
    result, *others = operands
    for operand in others:
        if result is None or operand is None or _are_constant([result, operand]):
            return None
        combine = np.logical_or if decisive else np.logical_and
        result = Step(combine, (result, operand), BOOLEAN)
    return result


def _are_constant(operands: Sequence[Formula]) -> bool:
    return all(isinstance(operand, Number) for operand in operands)


# --- arithmetic -------------------------------------------------------------------------------


def _same_size(a: int, *_: int) -> int:
    return a


def _arithmetic(function: Function, size: Callable[..., int]) -> Builder:
    """Of operands that are stored as the result is."""

    def build(type: pa.DataType, operands: tuple[Formula, ...]) -> Formula | None:
        stored = _DTYPES.get(type)
        if stored is None or any(_DTYPES[operand.type] != stored for operand in operands):
            return None
        return Step(function, operands, type, size)

    return build


def _quotient(type: pa.DataType, operands: tuple[Formula, ...]) -> Formula | None:
    """Of floating numbers, by a constant."""
    _, divisor = operands
    if not is_floating(type) or not isinstance(divisor, Number) or divisor.value == 0:
        return None
    return Step(np.divide, operands, type)


def _remainder(type: pa.DataType, operands: tuple[Formula, ...]) -> Formula | None:
    """Of integers, by a positive constant."""
    _, divisor = operands
    if not is_integral(type) or not isinstance(divisor, Number) or divisor.value <= 0:
        return None
    return Step(remainders, operands, type, min)


# --- comparisons ------------------------------------------------------------------------------


def _not_below(a: Array, b: Array) -> Array:
    """NaN stands above all numbers, and equals itself."""
    return np.isnan(a) | (a >= b)


def _equal(a: Array, b: Array) -> Array:
    both: Array = (a == b) | (np.isnan(a) & np.isnan(b))
    return both


_PLAIN: dict[str, Function] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_FLOATING: dict[str, Function] = {
    "=": _equal,
    "<>": lambda a, b: ~_equal(a, b),
    "<": lambda a, b: ~_not_below(a, b),
    "<=": lambda a, b: _not_below(b, a),
    ">": lambda a, b: ~_not_below(b, a),
    ">=": _not_below,
}
# With a number on one side (not NaN), what IEEE has is wrong only where NaN must be the larger.
_WITH_NUMBER_RIGHT: dict[str, Function] = {
    **_PLAIN,
    ">": lambda a, b: ~(a <= b),
    ">=": lambda a, b: ~(a < b),
}
_WITH_NUMBER_LEFT: dict[str, Function] = {
    **_PLAIN,
    "<": lambda a, b: ~(a >= b),
    "<=": lambda a, b: ~(a > b),
}


def _comparison(name: str) -> Builder:
    def build(type: pa.DataType, operands: tuple[Formula, ...]) -> Formula:
        table = _PLAIN
        if is_floating(operands[0].type):
            left, right = (isinstance(o, Number) and not np.isnan(o.value) for o in operands)
            table = _WITH_NUMBER_RIGHT if right else _WITH_NUMBER_LEFT if left else _FLOATING
        return Step(table[name], operands, BOOLEAN)

    return build


def _negation(type: pa.DataType, operands: tuple[Formula, ...]) -> Formula:
    return Step(np.logical_not, operands, BOOLEAN)


Builder: TypeAlias = Callable[[pa.DataType, tuple[Formula, ...]], Formula | None]

_BUILDERS: dict[str, Builder] = {
    "+": _arithmetic(np.add, lambda a, b: a + b),
    "-": _arithmetic(np.subtract, lambda a, b: a + b),
    "*": _arithmetic(np.multiply, lambda a, b: a * b),
    "negate": _arithmetic(np.negative, _same_size),
    "abs": _arithmetic(np.absolute, _same_size),
    "/": _quotient,
    "%": _remainder,
    **{name: _comparison(name) for name in _PLAIN},
    "not": _negation,
}


# --- from a formula to a list of calls --------------------------------------------------------


class Program:
    """A formula as a list of calls, each on values that are there already."""

    def __init__(self, formula: Formula) -> None:
        columns = _columns(formula)
        limits = _limits(formula, columns)
        self._columns = [
            (position, _DTYPES[type], limits.get(position)) for position, type in columns.items()
        ]
        self._constants: list[Any] = []
        self._steps: list[tuple[Function, _Picker]] = []
        places: dict[Formula, int] = {}
        parts = _parts(formula)
        first = len(columns)
        for part in parts:
            if isinstance(part, Input):
                places[part] = list(columns).index(part.position)
            elif isinstance(part, Number):
                places[part] = first + len(self._constants)
                self._constants.append(part.value)
        for part in parts:
            if isinstance(part, Step):
                operands = (*part.operands, *_memory(part, parts))
                places[part] = first + len(self._constants) + len(self._steps)
                self._steps.append((part.function, _picker([places[o] for o in operands])))
        self._quiet = any(isinstance(p, Step) and is_floating(p.type) for p in parts)

    def over(self, columns: Sequence[pa.Array]) -> Array | None:
        """The values; None where NULLs or large integers ask for more care."""
        values: list[Array] = []
        for position, dtype, limit in self._columns:
            column = columns[position]
            if column.null_count or not len(column):
                return None
            numbers = _numbers(column, dtype)
            if limit is not None and not _within(numbers, limit):
                return None
            values.append(numbers)
        values += self._constants
        if not self._quiet:
            return self._computed(values)
        with np.errstate(all="ignore"):
            return self._computed(values)

    def _computed(self, values: list[Array]) -> Array:
        for function, pick in self._steps:
            values.append(function(*pick(values)))
        return values[-1]


_Picker: TypeAlias = Callable[[list[Array]], Sequence[Array]]


def _picker(places: list[int]) -> _Picker:
    """What gives the values at some places; this is the quickest way in Python."""
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1))


def _within(numbers: Array, limit: int) -> bool:
    """Whether no number is further from 0; `max` and `min` would take a detour through Python."""
    return bool(np.maximum.reduce(numbers) <= limit and np.minimum.reduce(numbers) >= -limit)


def _numbers(column: pa.Array, dtype: np.dtype[Any]) -> Array:
    """The numbers in the memory of a column that has no NULL and is not empty."""
    if dtype == np.bool_:
        bits: Array = column.to_numpy(zero_copy_only=False)
        return bits
    return np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * dtype.itemsize)


def _parts(formula: Formula) -> list[Formula]:
    """A formula and all it is made of, each once, operands first."""
    found: dict[Formula, None] = {}

    def visit(part: Formula) -> None:
        if isinstance(part, Step) and part not in found:
            for operand in part.operands:
                visit(operand)
        found[part] = None

    visit(formula)
    return list(found)


def _memory(step: Step, parts: list[Formula]) -> list[Step]:
    """An operand whose memory can take the result, as it is of no other use."""
    if not isinstance(step.function, np.ufunc):
        return []
    users = [operand for part in parts if isinstance(part, Step) for operand in part.operands]
    free = [o for o in step.operands if isinstance(o, Step) and users.count(o) == 1]
    return [operand for operand in free if operand.type == step.type][:1]


def _columns(formula: Formula) -> dict[int, pa.DataType]:
    return {part.position: part.type for part in _parts(formula) if isinstance(part, Input)}


# --- limits -----------------------------------------------------------------------------------


def _largest(type: pa.DataType) -> int:
    """How far from 0 an integer can be."""
    return 1 << (_DTYPES[type].itemsize * 8 - 1)


def _beyond(type: pa.DataType) -> int:
    """How far from 0 a result is too far."""
    return -FIRST_TIMESTAMP if type == TIMESTAMP else _largest(type)


def _limits(formula: Formula, columns: dict[int, pa.DataType]) -> dict[int, int]:
    """How far from 0 the integers of the columns may be; no limit where there need not be one."""
    largest = {p: _largest(t) for p, t in columns.items() if _DTYPES[t].kind == "i"}
    limits = dict(largest)
    while not _fits(formula, limits):
        if not any(limits.values()):
            return dict.fromkeys(limits, -1)  # a constant alone is too large
        limits = {position: limit // 2 for position, limit in limits.items()}
    for position in limits:
        if _fits(formula, {**limits, position: largest[position]}):
            limits[position] = largest[position]
    return {p: limit for p, limit in limits.items() if limit < largest[p]}


def _fits(formula: Formula, limits: dict[int, int]) -> bool:
    """Whether no result is beyond its type, if no column is beyond its limit."""
    sizes: dict[Formula, int] = {}
    for part in _parts(formula):
        if isinstance(part, Input):
            sizes[part] = limits.get(part.position, 0)
        elif isinstance(part, Number):
            sizes[part] = abs(int(part.value)) if part.value.dtype.kind == "i" else 0
        else:
            sizes[part] = part.size(*(sizes[operand] for operand in part.operands))
            if _DTYPES[part.type].kind == "i" and sizes[part] >= _beyond(part.type):
                return False
    return True
