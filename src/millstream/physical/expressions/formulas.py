"""Formulas: arithmetic, comparisons, logic, CASE and COALESCE over numbers, times and booleans, for
batches where nothing can fail.

Machine code computes a formula (`programs`) if no integer is large enough to overflow. Otherwise it
gives up, and the nodes evaluate the batch with checks (`nodes.Direct`). Expressions that can fail
in other ways, such as a division by a column, have no formula.

Each formula has limits, computed once: as long as no column holds an integer beyond its limit, no
result exceeds its type. If constants alone could exceed it, there is no formula; nor if there are
many parts, since compiling them takes long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from millstream.logical.functions import Signature
from millstream.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FIRST_DATE,
    FIRST_TIMESTAMP,
    INT,
    INTERVAL,
    REAL,
    TIMESTAMP,
    is_floating,
    is_integral,
)
from millstream.physical.expressions import operations
from millstream.physical.expressions.operations import Operation

MOST_PARTS = 64  # of a formula, and of all formulas computed together
MOST_OPERANDS = 16  # of AND, OR, IN, CASE and COALESCE

DTYPES: dict[pa.DataType, np.dtype[Any]] = {
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
class InputColumn:
    """A column."""

    position: int
    type: pa.DataType


@dataclass(frozen=True, eq=False)
class Number:
    """A constant."""

    value: Any  # a NumPy scalar
    type: pa.DataType


@dataclass(frozen=True, eq=False)
class FormulaOperation:
    """An operation on formulas. `size` bounds the magnitude of its results by that of the operands;
    it matters only for integers."""

    operation: Operation
    operands: tuple[Formula, ...]
    type: pa.DataType
    size: Callable[..., int] = lambda *sizes: 0


Formula: TypeAlias = InputColumn | Number | FormulaOperation


def column_formula(position: int, type: pa.DataType) -> Formula | None:
    return InputColumn(position, type) if type in DTYPES else None


def constant_formula(plain: object, type: pa.DataType) -> Formula | None:
    if plain is None or type not in DTYPES:
        return None
    return _number(plain, type)


def formula_of(
    name: str, signature: Signature, operands: Sequence[Formula | None]
) -> Formula | None:
    """The formula of a call; None if the function or an argument has none, or if all arguments are
    constant: every step has a value per row."""
    known = tuple(operand for operand in operands if operand is not None)
    build = _BUILDERS.get(name)
    if build is None or len(known) < len(operands) or _are_constant(known):
        return None
    return build(signature.result, known)


def cast_formula(operand: Formula | None, target: pa.DataType) -> Formula | None:
    """The formula of a cast that cannot fail."""
    if operand is None or _are_constant([operand]):
        return None
    if not (is_integral(operand.type) or is_floating(operand.type)):
        return None
    if target == BIGINT and operand.type == INT:
        return FormulaOperation(operations.widen, (operand,), target, _same_size)
    if target == DOUBLE and is_integral(operand.type):
        return FormulaOperation(operations.to_double, (operand,), target)
    if target == DOUBLE and operand.type == REAL:
        return FormulaOperation(operations.widen_floating, (operand,), target)
    return None


def connective_formula(operands: Sequence[Formula | None], decisive: bool) -> Formula | None:
    """OR if TRUE decides, AND if FALSE does."""
    result, *others = operands
    if len(operands) > MOST_OPERANDS:
        return None
    operation = operations.either if decisive else operations.both
    for operand in others:
        if result is None or operand is None or _are_constant([result, operand]):
            return None
        result = FormulaOperation(operation, (result, operand), BOOLEAN)
    return result


def coalesce_formula(operands: Sequence[Formula | None]) -> Formula | None:
    """The first value that is not NULL."""
    result, *others = operands
    if len(operands) > MOST_OPERANDS:
        return None
    for operand in others:
        if result is None or operand is None or isinstance(result, Number):
            return None
        assert operand.type == result.type
        result = FormulaOperation(operations.first_valid, (result, operand), result.type, max)
    return result


def case_formula(
    conditions: Sequence[Formula | None], values: Sequence[Formula | None]
) -> Formula | None:
    """The value of the first condition that holds, else the last one."""
    *others, result = values
    if len(values) > MOST_OPERANDS:
        return None
    for condition, value in zip(reversed(conditions), reversed(others), strict=True):
        if condition is None or value is None or result is None:
            return None
        assert value.type == result.type
        operands = condition, value, result
        result = FormulaOperation(
            operations.choice, operands, value.type, lambda _, a, b: max(a, b)
        )
    return result


def _are_constant(operands: Sequence[Formula]) -> bool:
    return all(isinstance(operand, Number) for operand in operands)


# --- arithmetic -------------------------------------------------------------------------------


def _number(plain: object, type: pa.DataType) -> Number:
    return Number(DTYPES[type].type(plain), type)


def _sum(a: int, b: int) -> int:
    return a + b


def _product(a: int, b: int) -> int:
    return a * b


def _same_size(a: int) -> int:
    return a


def _arithmetic(
    on_integers: Operation, on_floating: Operation, size: Callable[..., int]
) -> Builder:
    """For operands stored like the result."""

    def build(type: pa.DataType, operands: tuple[Formula, ...]) -> Formula | None:
        stored = DTYPES.get(type)
        if stored is None or any(DTYPES[operand.type] != stored for operand in operands):
            return None
        if is_floating(type):
            return FormulaOperation(on_floating, operands, type)
        return FormulaOperation(on_integers, operands, type, size)

    return build


def _quotient(type: pa.DataType, operands: tuple[Formula, ...]) -> Formula | None:
    """Of floats, by a constant."""
    _, divisor = operands
    if not is_floating(type) or not isinstance(divisor, Number) or divisor.value == 0:
        return None
    return FormulaOperation(operations.divide_floating, operands, type)


def _remainder(type: pa.DataType, operands: tuple[Formula, ...]) -> Formula | None:
    """Of integers, by a positive constant."""
    _, divisor = operands
    if not is_integral(type) or not isinstance(divisor, Number) or divisor.value <= 0:
        return None
    size = int(divisor.value)
    inverse = 1 / size
    if Fraction(inverse) < Fraction(1, size):
        inverse = math.nextafter(inverse, math.inf)
    more = _number(size, DOUBLE), _number(inverse, DOUBLE)
    return FormulaOperation(
        operations.remainder, (*operands, *more), type, lambda a, b, *_: min(a, b)
    )


# --- comparisons and logic --------------------------------------------------------------------

# For integers, floats and booleans; whether to swap the operands, and whether to negate the result.
_EQUAL = operations.equal, operations.equal_floating, operations.equal
_LESS = operations.less, operations.less_floating, operations.less_truth
_LESS_EQUAL = operations.less_equal, operations.less_equal_floating, operations.less_equal_truth
_COMPARISONS: dict[str, tuple[tuple[Operation, Operation, Operation], bool, bool]] = {
    "=": (_EQUAL, False, False),
    "<>": (_EQUAL, False, True),
    "<": (_LESS, False, False),
    "<=": (_LESS_EQUAL, False, False),
    ">": (_LESS, True, False),
    ">=": (_LESS_EQUAL, True, False),
}


def _comparison(name: str) -> Builder:
    (of_integers, of_floating, of_truths), swapped, contrary = _COMPARISONS[name]

    def build(type: pa.DataType, operands: tuple[Formula, ...]) -> Formula:
        compared = operands[0].type
        assert all(operand.type == compared for operand in operands)
        operation = of_floating if is_floating(compared) else of_integers
        operation = of_truths if compared == BOOLEAN else operation
        step = FormulaOperation(operation, operands[::-1] if swapped else operands, BOOLEAN)
        return _negation(type, (step,)) if contrary else step

    return build


def _negation(type: pa.DataType, operands: tuple[Formula, ...]) -> Formula:
    return FormulaOperation(operations.negation, operands, BOOLEAN)


def _membership(type: pa.DataType, operands: tuple[Formula, ...]) -> Formula | None:
    """IN: compares each item."""
    value, *others = operands
    if isinstance(value, Number):
        return None
    equal = _comparison("=")
    return connective_formula([equal(BOOLEAN, (value, other)) for other in others], decisive=True)


def _absence(type: pa.DataType, operands: tuple[Formula, ...]) -> Formula:
    return FormulaOperation(operations.is_null, operands, BOOLEAN)


Builder: TypeAlias = Callable[[pa.DataType, tuple[Formula, ...]], Formula | None]

_BUILDERS: dict[str, Builder] = {
    "+": _arithmetic(operations.add, operations.add_floating, _sum),
    "-": _arithmetic(operations.subtract, operations.subtract_floating, _sum),
    "*": _arithmetic(operations.multiply, operations.multiply_floating, _product),
    "negate": _arithmetic(operations.negate, operations.negate_floating, _same_size),
    "abs": _arithmetic(operations.absolute, operations.absolute_floating, _same_size),
    "/": _quotient,
    "%": _remainder,
    **{name: _comparison(name) for name in _COMPARISONS},
    "not": _negation,
    "is null": _absence,
    "in": _membership,
}


# --- parts ------------------------------------------------------------------------------------


def parts(*formulas: Formula) -> list[Formula]:
    """Formulas and all their parts, each once, operands first."""
    found: dict[Formula, None] = {}

    def visit(part: Formula) -> None:
        if isinstance(part, FormulaOperation) and part not in found:
            for operand in part.operands:
                visit(operand)
        found[part] = None

    for formula in formulas:
        visit(formula)
    return list(found)


# --- limits -----------------------------------------------------------------------------------


def _largest(type: pa.DataType) -> int:
    """The largest magnitude of an integer of the type."""
    return 1 << (DTYPES[type].itemsize * 8 - 1)


def _beyond(type: pa.DataType) -> int:
    """The smallest magnitude that is too large for a result."""
    least = {TIMESTAMP: FIRST_TIMESTAMP, DATE: FIRST_DATE}.get(type)
    return _largest(type) if least is None else -least


def is_computable(formula: Formula) -> bool:
    """Whether machine code can compute the formula for any batch."""
    each = parts(formula)
    columns = {part.position: 0 for part in each if isinstance(part, InputColumn)}
    return len(each) <= MOST_PARTS and _fits(formula, columns)


def limits_of(formula: Formula) -> dict[int, int] | None:
    """The largest allowed magnitude per integer column; no entry if no limit is needed. None if
    constants alone are too large."""
    columns = [part for part in parts(formula) if isinstance(part, InputColumn)]
    largest = {c.position: _largest(c.type) for c in columns if DTYPES[c.type].kind == "i"}
    limits = dict(largest)
    while not _fits(formula, limits):
        if not any(limits.values()):
            return None
        limits = {position: limit // 2 for position, limit in limits.items()}
    for position in limits:
        if _fits(formula, {**limits, position: largest[position]}):
            limits[position] = largest[position]
    return {p: limit for p, limit in limits.items() if limit < largest[p]}


def _fits(formula: Formula, limits: dict[int, int]) -> bool:
    """Whether no result exceeds its type if no column exceeds its limit."""
    sizes: dict[Formula, int] = {}
    for part in parts(formula):
        if isinstance(part, InputColumn):
            sizes[part] = limits.get(part.position, 0)
        elif isinstance(part, Number):
            sizes[part] = abs(int(part.value)) if part.value.dtype.kind == "i" else 0
        else:
            sizes[part] = part.size(*(sizes[operand] for operand in part.operands))
            if DTYPES[part.type].kind == "i" and sizes[part] >= _beyond(part.type):
                return False
    return True
