"""Sample values of every type, and calls of functions over them."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa

from millstream.logical.expressions import Call, Cast, Expression
from millstream.logical.functions import SignatureError, lookup
from millstream.logical.plan import Field, Schema
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
    NULL,
    REAL,
    STRING,
    TIMESTAMP,
    decimal_type,
)
from millstream.model.values import NAN, round_real

INF = math.inf
DAY = 86_400_000_000
MONEY = decimal_type(10, 2)
WIDE = decimal_type(38, 10)
PAIR = pa.struct([("a", INT), ("b", STRING)])
SAMPLES: dict[pa.DataType, list[Any]] = {
    NULL: [None],
    BOOLEAN: [True, False, None],
    INT: [0, 1, -1, 2, 3, 7, -7, 100, 12345, 2**31 - 1, -(2**31), None],
    BIGINT: [0, 1, -1, 3, -7, 65, 256, 10**12, 2**53 + 1, 2**63 - 1, -(2**63), None],
    REAL: [*map(round_real, [0.0, -0.0, 0.1, -2.5, 7.25, 1e10, 3.4e38]), INF, -INF, NAN, None],
    DOUBLE: [
        *(0.0, -0.0, 1.0, -1.0, 0.1, 2.5, -2.5, 1.005, 1e-7, 123456.789, 1e15, 1e17, 1e300),
        *(2.0**63, -(2.0**63), 2147483647.5, -2147483648.5, 5e-324, INF, -INF, NAN, None),
    ],
    MONEY: [*map(Decimal, ["0.00", "1.50", "-1.50", "2.25", "99999999.99", "-0.01"]), None],
    WIDE: [
        *map(Decimal, ["0E-10", "1.0000000000", "-3.1415926535", "9" * 17 + ".9999999999"]),
        None,
    ],
    STRING: [
        *("", "a", "abc", "Hello World", "  x ", "\tq\n", "ß", "İstanbul", "ΑΣ", "éa%_b", "a.b.c"),
        *("12", " -7 ", "+5", "007", "0x1F", "1.5", "1e3", "9" * 20, "nan", "-Infinity", "1.5d"),
        *("true", "No", "2020-02-29", "2020-02-30", "2020-1-5", "0000-01-01", "99999-01-01"),
        *("2020-01-01 12:34:56", "2020-01-01T12:34:56.789", "1970-01-01 01:00:00+01:00"),
        *("1 02:03:04.5", "week", "MONTH", "hour", "day", "\U0001f600x", "12.345", "0.005", None),
    ],
    BINARY: [b"", b"abc", b"\xff\x00", "é".encode(), None],
    DATE: [0, 1, -1, 18321, 19000, 60, FIRST_DATE, FIRST_DATE + 365, LAST_DATE, 10**6, None],
    TIMESTAMP: [
        *(0, 1, -1, 999_999, 1_500_000, -1_500_000, 18321 * DAY + 45_296_789_000, -DAY),
        *(FIRST_TIMESTAMP, LAST_TIMESTAMP, 2**53 + 1, 10**17, None),
    ],
    INTERVAL: [0, 1, -1, 3_600_000_000, -DAY, 7, 10**15, 2**63 - 1, -(2**63), None],
    pa.list_(INT): [(), (1, 2, 3), (1, None), (None,), (7,), None],
    pa.list_(STRING): [(), ("a", "b"), (None, "c"), None],
    pa.list_(DOUBLE): [(NAN, 1.0), (-0.0,), (0.0,), None],
    PAIR: [(1, "x"), (None, None), (2, "y"), None],
}


def call(name: str, *arguments: Expression) -> Call | None:
    """The call that a binder makes, or None if the function does not take such arguments."""
    function = lookup(name)
    assert function is not None
    try:
        signature = function.signature(tuple(a.type for a in arguments))
    except SignatureError:
        return None
    cast = [
        a if a.type == wanted else Cast(a, wanted)
        for a, wanted in zip(arguments, signature.arguments, strict=True)
    ]
    return Call(function.name, tuple(cast), signature.result)


def schema_of(*given: pa.DataType) -> Schema:
    return tuple(Field(f"c{i}", type) for i, type in enumerate(given))


VARYING = {"rand", "uuid", "current_timestamp", "current_date"}


# Their time grows with the value; beyond some size there is no memory for it.
GROWING = {"repeat", "lpad", "rpad"}
