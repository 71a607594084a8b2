"""Every function and every cast, on sample values of every type, alone and in combination."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from expression_agreement import assert_agree

from millstream.logical.expressions import Call, Cast, Column, Literal
from millstream.logical.functions import names
from millstream.model import types
from millstream.model.types import (
    INT,
    NULL,
    STRING,
    decimal_type,
)
from physical.expression_samples import (
    GROWING,
    SAMPLES,
    VARYING,
    call,
    schema_of,
)

TYPES = list(SAMPLES)


def checked(name: str, given: tuple[pa.DataType, ...]) -> bool:
    """Check a function on all combinations of samples, then with each argument constant."""
    schema = schema_of(*given)
    expression = call(name, *(field.column for field in schema))
    if expression is None or not _worthwhile(expression):
        return False
    rows = list(itertools.product(*(SAMPLES[type] for type in given)))
    rows = rows[:: max(1, len(rows) // 150)]
    assert_agree(expression, schema, rows)
    for position, type in enumerate(given if len(given) > 1 else ()):
        for value in SAMPLES[type][:: max(1, len(SAMPLES[type]) // 6)]:
            arguments = [
                Literal(value, type) if i == position else field.column
                for i, field in enumerate(schema)
            ]
            some = call(name, *arguments)
            assert some is not None
            assert_agree(some, schema, rows[:: max(1, len(rows) // 12)])
    return True


def _worthwhile(expression: Call) -> bool:
    """Casts are checked by themselves; here at most one, of what people often leave to be cast."""
    cast = [a.operand.type for a in expression.arguments if isinstance(a, Cast)]
    return len(cast) < max(2, len(expression.arguments)) and set(cast) <= {INT, STRING, NULL}


FIXED = sorted(set(names()) - VARYING - GROWING)


@pytest.mark.parametrize("name", FIXED)
def test_functions_of_one_argument(name: str) -> None:
    for type in TYPES:
        checked(name, (type,))


OPERATORS = {"+", "-", "*", "/", "%", "div"}


@pytest.mark.parametrize("name", FIXED)
def test_functions_of_two_arguments(name: str) -> None:
    others = TYPES if name in OPERATORS else [INT, STRING, NULL]
    for type in TYPES:
        for other in dict.fromkeys([type, *others]):
            checked(name, (type, other))
            if other != type:
                checked(name, (other, type))


@pytest.mark.parametrize("source", TYPES, ids=str)
def test_casts(source: pa.DataType) -> None:
    schema = schema_of(source)
    rows = [(value,) for value in SAMPLES[source]]
    for target in [*TYPES, decimal_type(5, 0), decimal_type(38, 30), decimal_type(18, 6)]:
        if types.can_cast(source, target):
            for attempt in (False, True):
                assert_agree(Cast(Column("c0", source), target, attempt), schema, rows)
