"""Compiled expressions against the reference evaluator, value by value and failure by failure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pyarrow as pa

from millstream.logical.evaluate import UserFunction, evaluator
from millstream.logical.expressions import Expression
from millstream.logical.functions import EvaluationError
from millstream.logical.plan import Schema
from millstream.model.values import to_arrow, to_plain
from millstream.physical.expressions import Compiled, compile_expression, programs

FAILED = "failed"


class Lazy(Sequence[pa.Array]):
    """Columns that may only be asked for at some positions."""

    def __init__(self, columns: Sequence[pa.Array], allowed: Sequence[int]) -> None:
        self.columns = columns
        self.allowed = allowed

    def __getitem__(self, position: int) -> pa.Array:  # type: ignore[override]
        assert position in self.allowed
        return self.columns[position]

    def __len__(self) -> int:
        return len(self.columns)


def exactly(value: Any) -> Any:
    """A key that also tells -0.0 from 0.0 and 1 from True; NaN is itself."""
    if isinstance(value, tuple):
        return tuple(exactly(part) for part in value)
    if isinstance(value, float):
        return ("float", "nan") if value != value else ("float", value, math.copysign(1, value))
    if isinstance(value, Decimal):
        return ("Decimal", *value.as_tuple()) if value else ("Decimal", value.as_tuple().exponent)
    return (type(value).__name__, value)


def sliced(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    """The values as an array that begins in the middle of its memory."""
    padded = [None, *values[:1], None, *values, *values[-1:]]
    skipped = 2 + len(values[:1])
    return to_arrow(padded, type).slice(skipped, len(values))


def reference(
    expression: Expression,
    schema: Schema,
    rows: Sequence[tuple[Any, ...]],
    functions: Mapping[str, UserFunction],
) -> list[Any]:
    evaluate = evaluator(expression, schema, functions)
    results: list[Any] = []
    for row in rows:
        try:
            results.append(evaluate(row))
        except EvaluationError as error:
            results.append((FAILED, str(error)))
    return results


def evaluated(
    compiled: Compiled, schema: Schema, rows: Sequence[tuple[Any, ...]], *, slice: bool = False
) -> list[Any]:
    columns = list(zip(*rows, strict=True)) if rows else [() for _ in schema]
    make = sliced if slice else to_arrow
    arrays = [make(list(c), field.type) for c, field in zip(columns, schema, strict=True)]
    vector = compiled.evaluate(Lazy(arrays, compiled.inputs), len(rows))
    assert isinstance(vector.values, pa.Array)
    assert vector.values.type == compiled.type
    assert len(vector.values) == len(rows)
    vector.values.validate(full=True)
    plain = to_plain(vector.values, compiled.type)
    if vector.failed is None:
        return plain
    assert vector.failed.any()
    assert vector.failed.flags.writeable
    assert vector.failed.dtype == bool
    assert vector.failed.shape == (len(rows),)
    assert all(value is None for value, bad in zip(plain, vector.failed, strict=True) if bad)
    return [
        (FAILED, compiled.message(row)) if bad else value
        for value, bad, row in zip(plain, vector.failed, rows, strict=True)
    ]


def assert_agree(
    expression: Expression,
    schema: Schema,
    rows: Sequence[tuple[Any, ...]],
    functions: Mapping[str, UserFunction] | None = None,
) -> None:
    """The same for the whole batch, for one in the middle of its memory, and for each row alone;
    with machine code, and before it is made."""
    functions = functions or {}
    expected = [exactly(value) for value in reference(expression, schema, rows, functions)]
    for worth in (0, NEVER):
        with machine_code_for(worth):
            compiled = compile_expression(expression, schema, functions)
            assert compiled.type == expression.type
            _assert_evaluates(compiled, schema, rows, expected)


NEVER = 10**9


@contextmanager
def machine_code_for(rows: int) -> Iterator[None]:
    """So many rows are worth it."""
    before, programs.WORTH = programs.WORTH, rows
    try:
        yield
    finally:
        programs.WORTH = before


def _assert_evaluates(
    compiled: Compiled, schema: Schema, rows: Sequence[tuple[Any, ...]], expected: list[Any]
) -> None:
    for slice in (False, True):
        got = [exactly(v) for v in evaluated(compiled, schema, rows, slice=slice)]
        assert got == expected, differences(rows, got, expected)
    got = [exactly(evaluated(compiled, schema, [row])[0]) for row in rows[:5]]
    assert got == expected[:5], differences(rows, got, expected[:5])
    assert evaluated(compiled, schema, []) == []


def differences(rows: Sequence[Any], got: list[Any], expected: list[Any]) -> str:
    lines = [
        f"{row}: got {a}, expected {b}"
        for row, a, b in zip(rows, got, expected, strict=False)
        if a != b
    ]
    return "\n".join(lines[:10])
