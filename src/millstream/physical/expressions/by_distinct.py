"""Evaluates the reference once per distinct combination of argument values in a batch.

For functions that no library computes with exactly these semantics: see the package's docstring.
The cost is that of the reference times the number of distinct combinations. Arrays and structs are
not compared: with such arguments each row is evaluated by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from millstream.logical.functions import cast, try_cast
from millstream.model.types import is_atomic, sql_name
from millstream.model.values import to_arrow, to_plain
from millstream.physical.expressions.nodes import ColumnNode, Constant, Kernel, Node
from millstream.physical.expressions.vector import Mask, Vector

# The value for plain arguments; raises if there is none.
Meaning: TypeAlias = Callable[..., object]

# Raised by a function for arguments outside its domain. EvaluationError is a ValueError; the others
# are limits of Python's numbers.
FAILURES = (ValueError, ArithmeticError)

_FEW = 32  # below this number of rows, finding equal ones costs more than it saves


def by_distinct(
    meaning: Meaning, arguments: Sequence[Node], result: pa.DataType, *, strict: bool
) -> Kernel:
    """A kernel that calls `meaning` on plain values."""
    constants = [node.plain if isinstance(node, Constant) else None for node in arguments]
    varying = [i for i, node in enumerate(arguments) if not isinstance(node, Constant)]
    types = [node.type for node in arguments]
    comparable = all(is_atomic(types[i]) for i in varying)

    def rows(columns: Sequence[pa.Array]) -> Vector:
        """Each row by itself."""
        plain = [to_plain(c, types[i]) for c, i in zip(columns, varying, strict=True)]
        values: list[Any] = []
        failed: list[int] = []
        row = list(constants)
        for number, combination in enumerate(zip(*plain, strict=True)):
            for position, value in zip(varying, combination, strict=True):
                row[position] = value
            try:
                values.append(None if strict and None in row else meaning(*row))
            except FAILURES:
                values.append(None)
                failed.append(number)
        return _vector(values, failed, result)

    def kernel(*given: pa.Array | pa.Scalar) -> Vector:
        columns = [given[i] for i in varying]
        if not comparable or len(columns[0]) < _FEW:
            return rows(columns)
        examples, group = _distinct(columns)
        few = rows([column.take(examples) for column in columns])
        failed = None if few.failed is None else few.failed[group]
        return Vector(few.values.take(pa.array(group)), failed)

    return kernel


def exact_cast(source: pa.DataType, target: pa.DataType, *, attempt: bool = False) -> Kernel:
    """CAST or TRY_CAST by the reference."""
    convert = try_cast if attempt else cast

    def meaning(value: Any) -> Any:
        return convert(value, source, target)

    return by_distinct(meaning, [ColumnNode(0, source)], target, strict=True)


def _distinct(columns: Sequence[pa.Array]) -> tuple[pa.Array, Any]:
    """A row number per distinct combination of values, and each row's combination."""
    codes, count = _codes(columns[0])
    for column in columns[1:]:
        others, other_count = _codes(column)
        codes, count = _codes(pa.array(codes * other_count + others))
    row = np.empty(count, np.int64)
    row[codes] = np.arange(len(codes))
    return pa.array(row), codes


def _codes(column: pa.Array) -> tuple[Any, int]:
    """A code per row, equal for equal values; and the number of codes."""
    encoded = column.dictionary_encode("encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _vector(values: list[Any], failed: list[int], type: pa.DataType) -> Vector:
    try:
        array = to_arrow(values, type)
    except (pa.ArrowException, ValueError, OverflowError):
        array = _each(values, failed, type)
    mask: Mask | None = None
    if failed:
        mask = np.zeros(len(values), np.bool_)
        mask[failed] = True
    return Vector(array, mask)


def _each(values: list[Any], failed: list[int], type: pa.DataType) -> pa.Array:
    """Converts values one at a time; a value that its type cannot hold fails."""
    pieces = []
    for number, value in enumerate(values):
        try:
            pieces.append(to_arrow([value], type))
        except (pa.ArrowException, ValueError, OverflowError):
            pieces.append(pa.nulls(1, type))
            failed.append(number)
    return pa.concat_arrays(pieces)


def unrepresentable(type: pa.DataType) -> str:
    """The message for a row whose value does not fit its type."""
    return f"the value does not fit {sql_name(type)}"
