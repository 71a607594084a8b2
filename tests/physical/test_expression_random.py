"""Random expressions over random columns of every type, against the reference evaluator."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from expression_agreement import assert_agree
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from effort import examples
from millstream.logical.evaluate import UserFunction
from millstream.logical.expressions import Call, Cast, Expression, Literal
from millstream.logical.functions import names
from millstream.model import types
from millstream.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FIRST_DATE,
    FIRST_TIMESTAMP,
    INT,
    INTERVAL,
    LAST_DATE,
    LAST_TIMESTAMP,
    REAL,
    STRING,
    TIMESTAMP,
    decimal_type,
)
from millstream.model.values import canonical, round_real
from physical.expression_samples import GROWING, SAMPLES, VARYING, call, schema_of

MONEY = decimal_type(9, 2)
LONG = decimal_type(25, 7)
PAIR = pa.struct([("a", INT), ("b", STRING)])
SCHEMA = schema_of(
    *(BOOLEAN, INT, INT, BIGINT, REAL, DOUBLE, DOUBLE, MONEY, LONG, STRING, STRING, BINARY, DATE),
    *(TIMESTAMP, TIMESTAMP, INTERVAL, pa.list_(INT), pa.list_(STRING), PAIR),
)

# Texts of values at the edge of a type, and beyond it.
_EDGES = [
    *("9" * 5000, "0" * 5000 + "7", "1e99999999999999999999", "1e-2147483648", "-0.0000001"),
    *("5881580-07-11", "9999999-01-01", "-5877641-06-23", "\u0662\u0660\u0662\u0660-01-01"),
    *("+294247-01-10 04:00:54.775807", "+999999-01-01", "-290308-12-21 19:59:05.224192"),
    *("0001-01-01 00:00:00 Asia/Tokyo", "9999-12-31 23:59:59 America/New_York"),
    *("106751991 04:00:54.775807", "-106751992 00:00:00", "9" * 5000 + " 00:00:00"),
]
_TEXT = st.text(st.sampled_from("aAbß€ 0123456789.-+:TeE%_\\\n,"), max_size=12)
_DAYS = st.integers(FIRST_DATE, LAST_DATE)
_ANY_MICROS = st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**63), -(2**63) + 10**13)
_MICROS = st.integers(-(10**17), 10**17) | st.integers(-(10**8), 10**8) | _ANY_MICROS
_INSTANTS = st.integers(FIRST_TIMESTAMP, LAST_TIMESTAMP) | st.integers(-(10**8), 10**8)


def _decimals(type: pa.DataType) -> st.SearchStrategy[Any]:
    most = 10**type.precision - 1
    numbers = st.integers(-most, most) | st.integers(-1000, 1000)
    return numbers.map(lambda n: Decimal(n).scaleb(-type.scale))


def _samples(type: pa.DataType) -> st.SearchStrategy[Any]:
    return st.sampled_from(SAMPLES[type]) if type in SAMPLES else st.none()


_FRESH: dict[pa.DataType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INT: st.integers(-(2**31), 2**31 - 1) | st.integers(-5, 5),
    BIGINT: st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5),
    REAL: st.floats(width=32).map(round_real),
    DOUBLE: st.floats().map(canonical) | st.integers(-(10**6), 10**6).map(lambda n: n / 1000),
    MONEY: _decimals(MONEY),
    LONG: _decimals(LONG),
    STRING: _TEXT | st.sampled_from(_EDGES),
    BINARY: st.binary(max_size=6),
    DATE: _DAYS,
    TIMESTAMP: _INSTANTS,
    INTERVAL: _MICROS,
    pa.list_(INT): st.lists(st.none() | st.integers(-3, 3), max_size=4).map(tuple),
    pa.list_(STRING): st.lists(st.none() | _TEXT, max_size=3).map(tuple),
    PAIR: st.tuples(st.none() | st.integers(-3, 3), st.none() | _TEXT),
}


DATES = [FIRST_DATE, LAST_DATE, 0]
TIMES = [FIRST_TIMESTAMP, FIRST_TIMESTAMP + 10**12, LAST_TIMESTAMP, 0]
DIGITS = [Decimal(f"{sign}{'1234567890' * 3}12345.678") for sign in ("", "-")]


@pytest.mark.parametrize(
    "target", [INT, BIGINT, REAL, DOUBLE, MONEY, LONG, DATE, TIMESTAMP, INTERVAL], ids=str
)
def test_texts_at_the_edge_of_a_type(target: pa.DataType) -> None:
    schema = schema_of(STRING)
    for attempt in (False, True):
        expression = Cast(schema[0].column, target, attempt)
        assert_agree(expression, schema, [(text,) for text in _EDGES])


@pytest.mark.parametrize("unit", ["year", "quarter", "month", "week", "day", "second"])
def test_truncation_before_all_time(unit: str) -> None:
    schema = schema_of(TIMESTAMP)
    expression = call("date_trunc", Literal(unit, STRING), schema[0].column)
    assert expression is not None
    assert_agree(expression, schema, [(time,) for time in TIMES])


def test_days_between_extreme_dates() -> None:
    schema = schema_of(DATE, DATE)
    expression = call("datediff", *(field.column for field in schema))
    assert expression is not None
    assert_agree(expression, schema, list(itertools.product(DATES, DATES)))


@pytest.mark.parametrize("name", ["abs", "negate", "round", "ceil", "timestamp_seconds"])
def test_decimals_of_all_digits(name: str) -> None:
    schema = schema_of(decimal_type(38, 3))
    expression = call(name, schema[0].column)
    assert expression is not None
    assert_agree(expression, schema, [(value,) for value in [*DIGITS, Decimal("-0.001")]])


def values(type: pa.DataType) -> st.SearchStrategy[Any]:
    return st.none() | _samples(type) | _FRESH[type]


ROWS = st.lists(st.tuples(*(values(field.type) for field in SCHEMA)), max_size=12)
REPEATED = st.tuples(ROWS, st.integers(1, 12)).map(lambda drawn: drawn[0] * drawn[1])
FUNCTIONS = [*sorted(set(names()) - VARYING - GROWING), ".a", ".b"]
COMMON = [
    *("+", "-", "*", "/", "%", "div", "=", "<", ">=", "<=>", "and", "or", "not", "in", "is null"),
    *("case", "if", "coalesce", "nullif", "nvl2", "greatest", "least", "concat", "substring"),
]


def _size(column: pa.Array) -> pa.Array:
    """How long the text of a value is; refuses some, and then gives nothing for any."""
    sizes = [None if value is None else len(str(value)) for value in column.to_pylist()]
    if any(size is not None and size % 3 == 0 for size in sizes):
        raise ValueError("a size that 3 divides")
    return pa.array(sizes, pa.int64())


USER = {"size_of": UserFunction("size_of", _size, INT)}


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Expression:
    """An expression over the schema: by trying functions until one takes the arguments."""
    kind = draw(st.integers(0, 9))
    if depth == 0 or kind < 2:
        field = draw(st.sampled_from(SCHEMA))
        return field.column
    if kind == 2:
        type = draw(st.sampled_from([field.type for field in SCHEMA]))
        return Literal(draw(values(type)), type)
    if kind == 3:
        return draw(casts(depth - 1))
    if kind == 4 and draw(st.booleans()):
        return Call("size_of", (draw(expressions(depth - 1)),), INT)
    return draw(calls(depth - 1))


@st.composite
def casts(draw: st.DrawFn, depth: int) -> Expression:
    operand = draw(expressions(depth))
    targets = [*_FRESH, decimal_type(5, 1), decimal_type(38, 20)]
    allowed = [t for t in targets if types.can_cast(operand.type, t)]
    assume(allowed)
    return Cast(operand, draw(st.sampled_from(allowed)), draw(st.booleans()))


@st.composite
def calls(draw: st.DrawFn, depth: int) -> Expression:
    name = draw(st.sampled_from(COMMON) | st.sampled_from(FUNCTIONS))
    arguments = draw(st.lists(expressions(depth), min_size=1, max_size=3))
    for count in range(len(arguments), -1, -1):
        expression = call(name, *arguments[:count])
        if expression is not None:
            return expression
    return arguments[0]


@given(expressions(), REPEATED)
@settings(max_examples=examples(250))
def test_random_expressions(expression: Expression, rows: list[tuple[Any, ...]]) -> None:
    assert_agree(expression, SCHEMA, rows, USER)
