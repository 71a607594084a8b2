"""Columns of hard values, and expressions over them: those that Spark can be asked for, and others.

The columns `i1` and `i2` hold every pair of hard integers, and so on for the other types.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa

from millstream.logical.plan import Field, Schema
from millstream.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FIRST_TIMESTAMP,
    INT,
    INTERVAL,
    LAST_TIMESTAMP,
    REAL,
    STRING,
    TIMESTAMP,
    decimal_type,
)
from millstream.model.values import NAN, round_real, to_arrow

INF = math.inf
DAY = 86_400_000_000
MONEY, WIDE, RATIO = decimal_type(10, 2), decimal_type(38, 10), decimal_type(5, 4)
PAIR = pa.struct([("a", INT), ("b c", STRING)])
ROWS = 1000
_MOST = "9" * 28 + "." + "9" * 10

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "b": (BOOLEAN, [True, False, None]),
    "i": (INT, [0, 1, -1, 2, 7, -7, 100, 12345, 2**31 - 1, -(2**31), None]),
    "l": (BIGINT, [0, 1, -7, 65, 256, 1009, 10**12, 2**53 + 1, 2**63 - 1, -(2**63), None]),
    "r": (REAL, [*map(round_real, [0.0, -0.0, 0.1, -2.5, 1e10, 3.4e38]), INF, -INF, NAN, None]),
    "d": (
        DOUBLE,
        [
            *(0.0, -0.0, 1.0, -1.0, 0.1, 2.5, -2.5, 1.005, 1e-7, 123456.789, 1e15, 1e17, 1e300),
            *(2.0**63, -(2.0**63), 2147483647.5, 3.4028235677973366e38, 1e-46, 5e-324, INF, -INF),
            *(NAN, None),
        ],
    ),
    "m": (MONEY, [*map(Decimal, ["0.00", "1.50", "-1.50", "2.25", "99999999.99", "-0.01"]), None]),
    "w": (
        WIDE,
        [
            *map(
                Decimal, ["0E-10", "1.5000000000", "-3.1415926535", "123456789012345678.7500000000"]
            ),
            *map(Decimal, [_MOST, f"-{_MOST}", "-0.0000000001", "9007199254740993.5000000000"]),
            None,
        ],
    ),
    "q": (RATIO, [*map(Decimal, ["0.0000", "1.5000", "-9.9999", "0.0005", "2.2500"]), None]),
    "s": (
        STRING,
        [
            *("", " ", "a", "A", "abc", "abcabc", "a ", " a", "a  ", "\ta\n", "a\x00b", "a\u00a0"),
            *(
                "ß",
                "SS",
                "é",
                "e\u0301",
                "İ",
                "ΑΣ",
                "日本語",
                "\U0001f600x",
                "x\U0001f600",
                "\uffff",
            ),
            *("%", "a%c_", "a\\b", "a.b.c", "..", "it's", '"q"', "$x", "12", "-7", "true", "NULL"),
            *("2020-02-29", "x" * 100, "\u2028", "\ufeffa", "~", "z", None),
        ],
    ),
    "y": (BINARY, [b"", b"\x00", b"abc", b"ab", b"\xff\x00", b"\x7f", "é".encode(), None]),
    "e": (DATE, [0, 1, -1, 18321, 19358, 59, -719_162, 2_932_896, -719_162 + 365, 10**6, None]),
    "t": (
        TIMESTAMP,
        [
            *(0, 1, -1, 999_999, -1_500_000, 18321 * DAY + 45_296_789_000, -DAY, DAY - 1),
            *(FIRST_TIMESTAMP, LAST_TIMESTAMP, 2**53 + 1, -(2**55), 10**17, None),
        ],
    ),
    "v": (INTERVAL, [0, 1, -1, 3_600_000_000, -DAY, 10**15, 2**63 - 1, -(2**63), None]),
    "n": (pa.list_(INT), [(), (1, 2, 3), (1, None), (None,), (7,), None]),
    "o": (pa.list_(DOUBLE), [(NAN, 1.0), (-0.0,), (0.0, None), (), None]),
    "p": (PAIR, [(1, "x"), (None, None), (2, " y "), None]),
}


def _column(values: list[Any], which: int) -> list[Any]:
    """One of two columns that have every pair of the values, where these are not too many."""
    if which == 1:
        return [values[row % len(values)] for row in range(ROWS)]
    return [values[row // len(values) % len(values)] for row in range(ROWS)]


def hard_table() -> pa.Table:
    columns = {
        f"{letter}{which}": to_arrow(_column(values, which), type)
        for letter, (type, values) in VALUES.items()
        for which in (1, 2)
    }
    return pa.table({"ts": to_arrow(list(range(ROWS)), BIGINT), **columns})


SCHEMA: Schema = tuple(
    Field(f"{letter}{which}", type, "S") for letter, (type, _) in VALUES.items() for which in (1, 2)
)

_PLAIN = ["b", "i", "l", "r", "d", "m", "w", "q", "s", "y", "e", "t", "v"]
_EVERY = [*_PLAIN, "n", "o", "p"]
_NUMBERS = ["i", "l", "r", "d", "m", "w", "q"]

# Literals near which it is hard, of each type.
_CONSTANTS = {
    "b": "TRUE",
    "i": "-2147483648",
    "l": "9007199254740993",
    "r": "CAST('-0.0' AS FLOAT)",
    "d": "0e0",
    "m": "1.50",
    "w": "-0.0000000001",
    "q": "2.25000",
    "s": "'a '",
    "y": "X'FF00'",
    "e": "DATE '2020-02-29'",
    "t": "TIMESTAMP '1969-12-31 23:59:59.999999'",
    "v": "INTERVAL '1' HOUR",
}

COMPARISONS = [
    *(f"{c}1 {op} {c}2" for c in _PLAIN for op in ("=", "<", "<=>")),
    *(f"{c}1 {op} {c}2" for c in ("d", "s") for op in ("<>", "<=", ">", ">=")),
    *(f"{c}1 {op} {constant}" for c, constant in _CONSTANTS.items() for op in ("=", ">=")),
    *("i1 = l2", "i1 < d2", "r1 = d2", "m1 = w2", "m1 < q2", "i1 >= w2", "l1 > m2", "r1 < i2"),
    *("d1 = CAST('NaN' AS DOUBLE)", "d1 < CAST('Infinity' AS DOUBLE)", "i1 > 1.5", "l1 = 7"),
    *("t1 < TIMESTAMP '9999-12-31 23:59:59.999999'", "t1 >= TIMESTAMP '0001-01-01 00:00:00'"),
    *("m1 BETWEEN -1 AND 2.5", "s1 BETWEEN 'A' AND 'b'", "d1 NOT BETWEEN -0e0 AND 2.5e0"),
    *("l1 = 9007199254740993e0", "l1 > 9007199254740992e0", "l1 < 9223372036854775807e0"),
    *("w1 < 1.5e0", "i1 <= 2147483647.5e0", "m1 > 1.505", "m1 = 1.505", "m1 <= 2.245", "i1 = 1.0"),
    *("r1 = 0.1e0", "r1 > 0.1e0", "r1 <= 3.5e38", "0e0 = d1", "2.5e0 < d1", "i1 < 99999999999"),
    *("s1 = 'it''s'", r"s1 = 'a\\b'", "s1 > '~'", "s1 = '日本語'", "s1 < '\U0001f600'"),
]

LISTS = [
    *(f"{c}1 IN ({c}2, {k})" for c, k in _CONSTANTS.items() if c not in "rd"),
    "i1 IN (0, 1, NULL)",
    "i1 NOT IN (7, -7)",
    "i1 IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)",
    "l1 IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 65, NULL)",
    "s1 IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'a ', '日本語')",
    "m1 IN (1, 1.5, 2, 2.25, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5)",
    "y1 IN (X'616263', " + ", ".join(f"X'{n:02X}'" for n in range(11)) + ")",
]

LOGIC = [
    *("b1 AND b2", "b1 OR b2", "NOT b1", "NOT (b1 AND b2) OR b1", "b1 = b2 AND NOT b1 <=> b2"),
    *("TRUE AND b1", "b1 AND NULL", "b1 OR NULL", "b1 IS TRUE", "b1 IS NOT FALSE"),
    *(f"{c}1 IS NULL" for c in _EVERY),
    *("i1 IS NOT NULL", "d1 IS DISTINCT FROM d2", "NULL IS NULL"),
]

CHOICES = [
    *(f"CASE WHEN b1 THEN {c}1 WHEN {c}1 IS NULL THEN {c}2 END" for c in _EVERY),
    *(f"COALESCE({c}1, {c}2)" for c in _EVERY),
    *(f"NULLIF({c}1, {c}2)" for c in _PLAIN),
    *(f"GREATEST({c}1, {c}2)" for c in _PLAIN),
    *(f"LEAST({c}1, {c}2, {k})" for c, k in _CONSTANTS.items()),
    *(
        "IF(b1, i1, l2)",
        "IF(b1, m1, q2)",
        "NVL2(s1, i1, i2)",
        "COALESCE(i1, l2, 0)",
        "IFNULL(d1, 0)",
    ),
    *("CASE i1 WHEN 0 THEN 'none' WHEN 1 THEN 'one' ELSE 'many' END", "CASE WHEN b1 THEN 1 END"),
    "CASE WHEN d1 > 1 THEN d1 ELSE -d1 END",
]

ARITHMETIC = [
    *(f"{a}1 {op} {b}2" for a in "rd" for b in "rd" for op in "+-*"),
    *(f"{a}1 {op} {b}2" for a in "mq" for b in "mq" for op in "+-*"),
    *("d1 + i2", "d1 * m2", "i1 * 0.5", "l1 * 0.908", "i1 + 1.5", "m1 - 1", "q1 * i2", "w1 * 1e0"),
    *(
        "CAST(i1 AS BIGINT) + 1",
        "CAST(i1 AS BIGINT) * i2",
        "CAST(i1 AS BIGINT) - CAST(i2 AS BIGINT)",
    ),
    *(
        "-CAST(i1 AS BIGINT)",
        "ABS(CAST(i1 AS BIGINT))",
        "-d1",
        "-r1",
        "-m1",
        "ABS(d1)",
        "ABS(q1)",
        "-CAST(l1 AS DECIMAL(34, 3))",
    ),
    *("l1 % 7", "l1 % -7", "i1 % 3", "l1 % 1", "l1 % -1", "i1 % -2147483648", "d1 % 0.75e0"),
    *("r1 % CAST(2.5 AS FLOAT)", "d1 % CAST('-Infinity' AS DOUBLE)", "d1 % CAST('NaN' AS DOUBLE)"),
    *("l1 div 7", "i1 div -1", "l1 div 10", "l1 div 1", "i1 div -3"),
    *("d1 / 3e0", "i1 / 2", "l1 / -7", "d1 / 1e-300", "d1 / CAST('NaN' AS DOUBLE)"),
    *("l1 % 10 + 5", "(l1 % 1000) * (i1 % 1000)", "ABS(i1 % 100)", "MONTH(e1) * 100 + DAY(e1)"),
    *("HOUR(t1) * 60 + MINUTE(t1)", "LENGTH(s1) + CAST(1 AS BIGINT)"),
    *("SQRT(d1)", "SQRT(i1)", "SIGN(d1)", "SIGN(m1)", "ISNAN(d1)", "ISNAN(r1)"),
    *("CEIL(m1)", "FLOOR(m1)", "CEIL(w1)", "FLOOR(w1)", "CEIL(q1)", "FLOOR(l1)", "CEIL(i1)"),
    *("ROUND(m1, 1)", "ROUND(m1, 0)", "ROUND(m1, -1)", "ROUND(w1, 9)", "ROUND(m1, -20)"),
    *("ROUND(m1)", "ROUND(w1)", "ROUND(q1)", "CAST(b1 AS INT) + CAST(b2 AS INT)"),
]

STRINGS = [
    *("s1 || s2", "CONCAT(s1, ' ', s2)", "s1 || i1 || b1", "CONCAT_WS(',', s1, s2)", "CONCAT(s1)"),
    *("CONCAT_WS(s1, s2, 'x')", "LENGTH(s1)", "LENGTH(y1)", "CHAR_LENGTH(s1)", "s1 || e1 || t1"),
    *(f"SUBSTRING(s1, {at})" for at in (0, 1, 2, -1, -2, -9, 9)),
    *(f"SUBSTRING(s1, {at}, {n})" for at in (0, 1, 2, -2, -9, 9) for n in (-1, 0, 1, 2, 99)),
    *("SUBSTRING(s1, i1 % 5, i2 % 4)", "SUBSTRING(y1, 2)", "SUBSTRING(y1, -1, 1)"),
    *("LEFT(s1, i2)", "RIGHT(s1, i2)", "LEFT(s1, 2)", "RIGHT(s1, 2)"),
    *("TRIM(s1)", "LTRIM(s1)", "RTRIM(s1)", "TRIM(BOTH 'a' FROM s1)", "TRIM(s1 FROM s2)"),
    *("TRIM(LEADING 'a\U0001f600' FROM s1)", "TRIM(TRAILING s2 FROM s1)", "BTRIM(s1)"),
    *("BTRIM(s1, 'ax')", "BTRIM(s1, s2)", "REPLACE(s1, 'a', 'bb')", "REPLACE(s1, s2)"),
    *("REPLACE(s1, s2, '<>')", "STARTSWITH(s1, s2)", "ENDSWITH(s1, s2)", "CONTAINS(s1, s2)"),
    *("POSITION(s2 IN s1)", "LOCATE('a', s1)", "LOCATE(s2, s1, i1)", "INSTR(s1, 'b')"),
    *(
        "TRANSLATE(s1, 'abc', 'x')",
        "TRANSLATE(s1, s2, 'é\U0001f600')",
        "TRANSLATE(s1, 'aab', 'xyz')",
    ),
    *("REVERSE(s1)", "ASCII(s1)", "CHR(l1)", "CHR(i1)"),
    *("SPLIT_PART(s1, '.', 2)", "SPLIT_PART(s1, '.', -1)", "SPLIT_PART(s1, 'b', 9)"),
    *("SPLIT_PART(s1, '', 1)", "SPLIT_PART(s1, 'bc', 2)"),
    *("MD5(s1)", "MD5(y1)", "SHA2(s1, 256)", "SHA2(y1, 0)", "SHA2(s1, 224)", "SHA2(s1, 7)"),
    *("SHA2(s1, i1)", "CRC32(s1)", "CRC32(y1)"),
    *(
        f"s1 LIKE '{p}'"
        for p in ("a%", "%c", "%b%", "a_c%", "abc", "", "%", "_", "__", "a%c", "ß%")
    ),
    *(r"s1 LIKE 'a\\\\b'", r"s1 LIKE '\\%'", r"s1 LIKE 'a\\%c\\_'", "s1 LIKE 'a/%c/_' ESCAPE '/'"),
    *("s1 NOT LIKE '%a%'", "s1 LIKE '_\U0001f600'", "s1 LIKE '%\n'", "s1 LIKE '[a]%'"),
]

TIMES = [
    *(f"{part}(e1)" for part in ("YEAR", "QUARTER", "MONTH", "DAY", "WEEKDAY", "DAYOFWEEK")),
    *(f"{part}(e1)" for part in ("DAYOFYEAR", "WEEKOFYEAR")),
    *(f"{part}(t1)" for part in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")),
    *("EXTRACT(SECOND FROM t1)", "EXTRACT(HOUR FROM t1)", "EXTRACT(DOW FROM t1)", "TO_DATE(t1)"),
    *("UNIX_SECONDS(t1)", "UNIX_MILLIS(t1)", "UNIX_MICROS(t1)", "TIMESTAMP_MICROS(l1 % 99)"),
    *("TIMESTAMP_SECONDS(i1)", "TIMESTAMP_MILLIS(CAST(i1 AS BIGINT))", "TIMESTAMP_MILLIS(l1 % 99)"),
    *("DATEDIFF(CAST(t1 AS DATE), CAST(t2 AS DATE))", "DATE_ADD(DATE '2020-01-01', i1 % 100)"),
    *("DATE_SUB(DATE '2020-01-01', i1 % 9)", "CAST(t1 AS DATE) = e2"),
    *("CAST(e1 AS TIMESTAMP)", "e1 < t1", "DATEDIFF(e1, e2)", "DATEDIFF(t1, e2)"),
]

NESTED = [
    *("SIZE(n1)", "SIZE(o1)", "ARRAY(i1, i2)", "ARRAY(d1, d2, NULL)", "ARRAY_CONTAINS(n1, i2)"),
    *("ARRAY_CONTAINS(o1, d2)", "ARRAY_CONTAINS(n1, 7)", "REVERSE(n1)", "p1.a", "p1.`b c`"),
    *("COALESCE(p1, p2).a", "p1.a = p2.a", "SIZE(REVERSE(n1))", "TRIM(p1.`b c`)"),
]

CASTS = [
    *("CAST(i1 AS BIGINT)", "CAST(i1 AS DOUBLE)", "CAST(l1 AS DOUBLE)"),
    *("CAST(r1 AS DOUBLE)", "CAST(d1 AS FLOAT)", "CAST(m1 AS DOUBLE)", "CAST(w1 AS DOUBLE)"),
    *("CAST(i1 AS DECIMAL(10, 0))", "CAST(i1 AS DECIMAL(38, 20))", "CAST(l1 AS DECIMAL(20, 0))"),
    *("CAST(l1 AS DECIMAL(19, 0))", "CAST(m1 AS DECIMAL(12, 3))", "CAST(w1 AS DECIMAL(38, 2))"),
    *("CAST(q1 AS DECIMAL(3, 1))", "CAST(m1 AS DECIMAL(9, 0))", "CAST(w1 AS DECIMAL(38, 0))"),
    *("CAST(m1 AS INT)", "CAST(m1 AS BIGINT)", "CAST(q1 AS INT)", "CAST(l1 % 100 AS INT)"),
    *(f"CAST({c}1 AS BOOLEAN)" for c in _NUMBERS),
    *(f"CAST(b1 AS {type})" for type in ("INT", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL(3, 2)")),
    *(f"CAST({c}1 AS STRING)" for c in ("b", "i", "l", "m", "w", "q", "e", "t", "v")),
    *("CAST(s1 AS BINARY)", "CAST(t1 AS DATE)", "CAST(t1 AS BIGINT)", "CAST(i1 AS TIMESTAMP)"),
    *("CAST(l1 % 1000000 AS TIMESTAMP)", "TRY_CAST(i1 AS BIGINT)", "CAST(NULL AS DECIMAL(5, 2))"),
    *("CAST(CAST(t1 AS DATE) AS STRING)", "CAST(l1 % 10 AS DECIMAL(1, 0))", "CAST(NULL AS DATE)"),
]

NATIVE = [
    *(COMPARISONS + LISTS + LOGIC + CHOICES + ARITHMETIC + STRINGS + TIMES + NESTED + CASTS),
]

# What may fail, or what Spark does otherwise.
OTHERS = [
    *(
        "i1 + i2",
        "l1 + 1",
        "-w1",
        "ABS(w1)",
        "l1 * 2",
        "-i1",
        "-l1",
        "ABS(l1)",
        "i1 / i2",
        "i1 % i2",
        "l1 div i2",
    ),
    *("l1 div -1", "m1 / q1", "m1 % 2", "w1 + w2", "w1 * m1", "d1 / 0", "d1 / d2", "i1 % 0"),
    *("CEIL(d1)", "FLOOR(d1)", "ROUND(d1, 2)", "ROUND(d1)", "ROUND(m1, i1)", "ROUND(i1, -1)"),
    *("EXP(d1)", "LN(d1)", "LOG(2, d1)", "POWER(d1, 2)", "SIN(d1)", "NANVL(d1, d2)", "RAND()"),
    *("UPPER(s1)", "LOWER(s1)", "INITCAP(s1)", "s1 ILIKE 'A%'", "s1 RLIKE 'a'", "s1 LIKE s2"),
    *("LPAD(s1, i1, 'x')", "REPEAT(s1, i1)", "SUBSTRING(s1, i2)", "SPLIT_PART(s1, s2, i1)"),
    *("d1 IN (1e0, 2e0)", "n1 = n2", "p1 = p2", "n1[0]", "ELEMENT_AT(n1, 1)", "GREATEST(n1, n2)"),
    *(
        "e1 + 1",
        "CAST(t1 AS DATE) + 1",
        "DATE_ADD(e1, 1)",
        "DATE_SUB(CAST(t1 AS DATE), 7)",
        "DATE_ADD(CAST(t1 AS DATE), i1 % 100)",
        "t1 + INTERVAL '1' DAY",
        "t1 - t2",
        "v1 + v2",
    ),
    *("TIMESTAMP_MICROS(l1)", "DATE_TRUNC('HOUR', t1)", "TIMESTAMP_SECONDS(l1)"),
    *("TIMESTAMP_MILLIS(l1)", "TIMESTAMP_SECONDS(d1)", "CURRENT_TIMESTAMP()", "CURRENT_DATE()"),
    *("CAST(l1 AS INT)", "CAST(d1 AS BIGINT)", "CAST(d1 AS STRING)", "CAST(r1 AS STRING)"),
    *(
        "CAST(i1 AS FLOAT)",
        "CAST(CAST(i1 AS FLOAT) AS DOUBLE)",
        "CAST(l1 AS FLOAT)",
        "CAST(m1 AS FLOAT)",
        "CAST(t1 AS DOUBLE)",
        "CAST(y1 AS STRING)",
    ),
    *(
        "CAST(s1 AS INT)",
        "TRY_CAST(s1 AS INT)",
        "TRY_CAST(l1 AS INT)",
        "s1 = 7",
        "CAST(n1 AS STRING)",
    ),
    *("CAST(m1 AS DECIMAL(9, 2))", "CAST(q1 AS DECIMAL(1, 0))", "CAST(l1 AS DECIMAL(18, 0))"),
    *(
        "CAST(d1 AS DECIMAL(38, 10))",
        "CAST(t1 AS INT)",
        "CAST(l1 AS TIMESTAMP)",
        "NULL",
        "twice(i1)",
    ),
    *("s1 = '${spark.app.name}'", "e1 = DATE '+10000-01-01'", "b1 AND i1 + 1 > 0", "UUID()"),
]
