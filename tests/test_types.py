"""SQL types: names, rules between them, and the round trip of plain values through Arrow."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from millstream.model import types
from millstream.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    NULL,
    REAL,
    STRING,
    TIMESTAMP,
    decimal_type,
)
from millstream.model.values import NAN, canonical, order_key, round_real, to_arrow, to_plain
from millstream.sql.type_syntax import from_sql

ATOMS = [BOOLEAN, INT, BIGINT, REAL, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, INTERVAL]
WORDS = st.one_of(
    st.sampled_from(["a", "price", "date", "interval", "int", "b c", "`", "select", "é", "_x"]),
    st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=5),
)


@st.composite
def decimals(draw: st.DrawFn) -> pa.DataType:
    precision = draw(st.integers(1, 38))
    return decimal_type(precision, draw(st.integers(0, precision)))


def structs(fields: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    by_name = st.dictionaries(WORDS, fields, min_size=1, max_size=3)
    return by_name.map(lambda named: pa.struct(list(named.items())))


ANY_TYPE = st.recursive(
    st.one_of(st.sampled_from(ATOMS), decimals()),
    lambda inner: st.one_of(inner.map(pa.list_), structs(inner)),
    max_leaves=4,
)


def parse(text: str) -> exp.DataType:
    return exp.DataType.build(text, dialect="spark")


@given(ANY_TYPE)
def test_names_are_read_back(type: pa.DataType) -> None:
    assert from_sql(parse(types.sql_name(type))) == type


@pytest.mark.parametrize(
    ("type", "name"),
    [
        (BIGINT, "BIGINT"),
        (decimal_type(10, 2), "DECIMAL(10, 2)"),
        (pa.list_(INT), "ARRAY<INT>"),
        (pa.struct([("a", INT), ("b c", STRING)]), "STRUCT<a: INT, `b c`: STRING>"),
        (INTERVAL, "INTERVAL DAY TO SECOND"),
        (NULL, "VOID"),
    ],
)
def test_name(type: pa.DataType, name: str) -> None:
    assert types.sql_name(type) == name


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("TINYINT", INT),
        ("SMALLINT", INT),
        ("LONG", BIGINT),
        ("FLOAT", REAL),
        ("VARCHAR(3)", STRING),
        ("CHAR(2)", STRING),
        ("TEXT", STRING),
        ("TIMESTAMP_NTZ", TIMESTAMP),
        ("TIMESTAMP_LTZ", TIMESTAMP),
        ("DECIMAL", decimal_type(10, 0)),
        ("NUMERIC(5)", decimal_type(5, 0)),
        ("INTERVAL", INTERVAL),
        ("INTERVAL HOUR TO SECOND", INTERVAL),
        ("STRUCT<a INT>", pa.struct([("a", INT)])),
    ],
)
def test_other_spellings(text: str, type: pa.DataType) -> None:
    assert from_sql(parse(text)) == type


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MAP<INT, STRING>", r'type ".*" is not supported'),
        ("INTERVAL YEAR", r'type ".*" is not supported'),
        ("VARIANT", r'type ".*" is not supported'),
        ("DECIMAL(39, 0)", "a DECIMAL has 1 to 38 digits, not 39"),
        ("DECIMAL(2, 3)", "a DECIMAL of 2 digits cannot have 3 after the point"),
    ],
)
def test_unsupported_type(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        from_sql(parse(text))


@pytest.mark.parametrize(
    ("arrow", "ours"),
    [
        (pa.int8(), INT),
        (pa.uint16(), INT),
        (pa.uint32(), BIGINT),
        (pa.uint64(), decimal_type(20, 0)),
        (pa.float16(), REAL),
        (pa.large_string(), STRING),
        (pa.binary(3), BINARY),
        (pa.dictionary(pa.int8(), pa.string()), STRING),
        (pa.timestamp("ns", "Europe/Berlin"), TIMESTAMP),
        (pa.date64(), DATE),
        (pa.duration("s"), INTERVAL),
        (pa.large_list(pa.int8()), pa.list_(INT)),
        (pa.list_(pa.int8(), 2), pa.list_(INT)),
        (pa.decimal256(30, 2), decimal_type(30, 2)),
        (pa.struct([("a", pa.uint8())]), pa.struct([("a", INT)])),
    ],
)
def test_type_of_input_data(arrow: pa.DataType, ours: pa.DataType) -> None:
    assert types.from_arrow(arrow) == ours


@pytest.mark.parametrize(
    "arrow", [pa.map_(pa.int8(), pa.int8()), pa.time32("s"), pa.decimal256(50, 2)]
)
def test_input_data_without_a_type(arrow: pa.DataType) -> None:
    with pytest.raises(ValueError, match=r"^data of the Arrow type"):
        types.from_arrow(arrow)


COMMON = [
    (INT, BIGINT, BIGINT),
    (INT, REAL, DOUBLE),
    (BIGINT, REAL, DOUBLE),
    (REAL, DOUBLE, DOUBLE),
    (INT, decimal_type(10, 2), decimal_type(12, 2)),
    (BIGINT, decimal_type(10, 2), decimal_type(22, 2)),
    (decimal_type(10, 2), DOUBLE, DOUBLE),
    (decimal_type(10, 2), decimal_type(5, 4), decimal_type(12, 4)),
    (decimal_type(38, 2), decimal_type(38, 30), decimal_type(38, 2)),
    (DATE, TIMESTAMP, TIMESTAMP),
    (NULL, DATE, DATE),
    (STRING, INT, BIGINT),
    (STRING, decimal_type(5, 2), DOUBLE),
    (STRING, REAL, DOUBLE),
    (STRING, DATE, DATE),
    (STRING, BOOLEAN, BOOLEAN),
    (STRING, INTERVAL, None),
    (STRING, pa.list_(INT), None),
    (BOOLEAN, INT, None),
    (DATE, INT, None),
    (pa.list_(INT), pa.list_(DOUBLE), pa.list_(DOUBLE)),
    (pa.list_(INT), pa.list_(DATE), None),
    (pa.struct([("a", INT)]), pa.struct([("a", BIGINT)]), pa.struct([("a", BIGINT)])),
    (pa.struct([("a", INT)]), pa.struct([("b", INT)]), None),
]


@pytest.mark.parametrize(("a", "b", "common"), COMMON)
def test_common_type(a: pa.DataType, b: pa.DataType, common: pa.DataType | None) -> None:
    assert types.common_type(a, b) == common
    assert types.common_type(b, a) == common


@given(ANY_TYPE)
def test_common_type_of_one_type(type: pa.DataType) -> None:
    assert types.common_type(type, type) == type
    assert types.common_type(type, NULL) == type


# Rows: source; columns: target, in the order of ATOMS; Y where CAST is allowed.
CASTS = """
    BOOLEAN   Y Y Y Y Y Y - - - -
    INT       Y Y Y Y Y Y - - Y -
    BIGINT    Y Y Y Y Y Y - - Y -
    REAL      Y Y Y Y Y Y - - Y -
    DOUBLE    Y Y Y Y Y Y - - Y -
    STRING    Y Y Y Y Y Y Y Y Y Y
    BINARY    - - - - - Y Y - - -
    DATE      - - - - - Y - Y Y -
    TIMESTAMP - Y Y Y Y Y - Y Y -
    INTERVAL  - - - - - Y - - - Y
"""


@pytest.mark.parametrize("row", CASTS.strip().splitlines())
def test_explicit_casts(row: str) -> None:
    name, *marks = row.split()
    source = ATOMS[[types.sql_name(type).split()[0] for type in ATOMS].index(name)]
    assert [types.can_cast(source, target) for target in ATOMS] == [m == "Y" for m in marks]


@pytest.mark.parametrize(
    ("source", "target", "allowed"),
    [
        (INT, STRING, True),
        (BIGINT, INT, True),
        (STRING, DATE, True),
        (TIMESTAMP, DATE, True),
        (BOOLEAN, INT, False),
        (INT, TIMESTAMP, False),
        (pa.list_(INT), STRING, False),
        (pa.list_(INT), pa.list_(STRING), True),
    ],
)
def test_implicit_casts(source: pa.DataType, target: pa.DataType, allowed: bool) -> None:
    assert types.implicitly_castable(source, target) is allowed


# --- plain values -----------------------------------------------------------------------------


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def values_of(type: pa.DataType) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), _present_values_of(type))


def _present_values_of(type: pa.DataType) -> st.SearchStrategy[Any]:
    if types.is_decimal(type):
        limit = 10**type.precision - 1
        return st.integers(-limit, limit).map(lambda n: exactly(n, type.scale))
    if types.is_array(type):
        return st.lists(values_of(type.value_type), max_size=3).map(tuple)
    if types.is_struct(type):
        return st.tuples(*(values_of(field.type) for field in type))
    return ATOM_VALUES[type]


def exactly(unscaled: int, scale: int) -> Decimal:
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


ATOM_VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INT: integers(32),
    BIGINT: integers(64),
    REAL: st.floats(width=32).map(canonical),
    DOUBLE: st.floats().map(canonical),
    STRING: st.text(st.characters(codec="utf-8"), max_size=5),
    BINARY: st.binary(max_size=5),
    DATE: integers(32),
    TIMESTAMP: integers(64),
    INTERVAL: integers(64),
}


@given(st.data(), ANY_TYPE)
def test_values_survive_arrow(data: st.DataObject, type: pa.DataType) -> None:
    values = data.draw(st.lists(values_of(type), max_size=4))
    array = to_arrow(values, type)
    array.validate(full=True)
    assert array.type == type
    assert to_plain(array, type) == values
    assert to_plain(array[1:], type) == values[1:]
    assert to_plain(pa.chunked_array([array, array]), type) == values * 2


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, None], pa.uint8()), [1, None]),
        (pa.array([2**64 - 1], pa.uint64()), [Decimal(2**64 - 1)]),
        (pa.array(["a", "a"]).dictionary_encode(), ["a", "a"]),
        (pa.array([1_000, None], pa.timestamp("ns")), [1, None]),
        (pa.array([1], pa.timestamp("s", "Europe/Berlin")), [1_000_000]),
        (pa.array([86_400_000], pa.date64()), [1]),
        (pa.array([1], pa.duration("ms")), [1000]),
        (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [(1, 2), None]),
        (pa.array([b"ab"], pa.binary(2)), [b"ab"]),
        (pa.array([datetime(1970, 1, 2)]), [86_400_000_000]),
    ],
)
def test_plain_values_of_other_arrow_types(array: pa.Array, expected: list[Any]) -> None:
    assert to_plain(array, types.from_arrow(array.type)) == expected


def test_nanoseconds_that_are_not_whole_microseconds() -> None:
    with pytest.raises(ValueError, match=r"^cannot read timestamp\[ns\] data as TIMESTAMP"):
        to_plain(pa.array([1], pa.timestamp("ns")), TIMESTAMP)


def test_there_is_one_nan() -> None:
    (value,) = to_plain(pa.array([float("nan")]), DOUBLE)
    assert value is NAN
    assert canonical((1, (float("nan"),))) == (1, (NAN,))


def test_order_of_values() -> None:
    ordered = [None, -math.inf, -1.0, 0.0, math.inf, NAN]
    shuffled = [NAN, 0.0, None, math.inf, -1.0, -math.inf]
    assert sorted(shuffled, key=order_key) == ordered


@pytest.mark.parametrize(("value", "rounded"), [(0.1, 0.10000000149011612), (1e39, math.inf)])
def test_round_real(value: float, rounded: float) -> None:
    assert round_real(value) == rounded
