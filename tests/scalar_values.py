"""Random rows of hard values: NULL, NaN, -0.0, infinities, the ends of each type, odd Unicode.

Kinds of values are single letters, as those of the columns: `i1` and `i2` are the columns of
kind `i`.
"""

from __future__ import annotations

import math
import random
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa

from millstream.logical.functions.casts import EXACT
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
    MICROS_PER_DAY,
    REAL,
    STRING,
    TIMESTAMP,
    decimal_type,
)
from millstream.model.values import NAN, round_real

INF = math.inf
PAIR = pa.struct([("a", INT), ("b", STRING)])

# The kinds of columns. Decimals of several precisions are several kinds.
TYPES: dict[str, pa.DataType] = {
    "b": BOOLEAN,
    "i": INT,
    "l": BIGINT,
    "r": REAL,
    "d": DOUBLE,
    "m": decimal_type(10, 2),
    "q": decimal_type(5, 4),
    "w": decimal_type(38, 10),
    "z": decimal_type(38, 0),
    "u": decimal_type(20, 18),
    "s": STRING,
    "y": BINARY,
    "e": DATE,
    "t": TIMESTAMP,
    "v": INTERVAL,
    "n": pa.list_(INT),
    "o": pa.list_(STRING),
    "p": PAIR,
}
DECIMALS = "mqwzu"
NUMBERS = "ilrd" + DECIMALS
PLAIN = NUMBERS + "bsyetv"

TEXTS = [
    *("", " ", "a", "A", "abc", "abcabc", "a ", " a", "\ta\n", "x\x7f", "a\u00a0", "\x1f7\x00"),
    *("ß", "SS", "é", "e\u0301", "日本語", "\U0001f600x", "x\U0001f600", "\uffff", "\ufeff1"),
    *("%", "a%c_", "a\\b", "a\\%", "a.b.c", "..", "it's", '"q"', "\r\n", "z\u2028"),
    *("12", " -7 ", "+5", "007", "0x1F", "1.5", "1.", ".5", ".", "1e3", "-1E-3", "1e400", "1e+2"),
    *("9" * 19, "9" * 38, "9" * 39, "9223372036854775807", "-9223372036854775808", "2147483648"),
    *("\uff11\uff12", "\u0661.\u0665", "nan", "NaN", "-Infinity", "inf", "1.5d", "2f", "1L"),
    *("-0", "-0.0", "0.00000000000000000000000000001", "123456789.987654321", "5e-324", "4.9E-324"),
    *("true", "T", "No", "y", "0", "1", "2", "-1", "NULL", "null"),
    *("2020-02-29", "2020-02-30", "2020-1-5", "0001-01-01", "9999-12-31", "2020", "2020-13-01"),
    *("2020-01-01 12:34:56", "2020-01-01T12:34:56.789Z", "1970-01-01 01:00:00+01:00"),
    *("2020-01-01 24:00:00", "2020-01-01 1:2:3.1234567", "1 02:03:04.5", "-1 00:00:00", "1 2:3"),
    *("INTERVAL '1 02:03:04' DAY TO SECOND", "year", "MONTH", "mm", "week", "hour", "quarter"),
]
LETTERS = "aAbß€ 0123456789.-+:TeE%_\\\n,é\U0001f600\uff11"


def _integer(random: random.Random, bits: int) -> int:
    most = 2 ** (bits - 1)
    hard = [0, 1, -1, 2, 7, -7, 10, 100, most - 1, -most, 2**31 - 1, -(2**31), 2**53 + 1]
    fresh = [random.randrange(-5, 6), random.randrange(-most, most)]
    value = random.choice([*hard, *fresh, random.randrange(-1000, 1001)])
    return max(-most, min(most - 1, value))


def _double(random: random.Random) -> float:
    hard = [
        *(0.0, -0.0, 1.0, -1.0, 0.1, 2.5, -2.5, 0.5, 1.005, 1e-7, 123456.789, 1e15, 1e17, 1e300),
        *(2.0**63, -(2.0**63), 2.0**62, 2.0**64, 2147483647.5, -2147483648.5, 5e-324, INF, -INF),
        *(NAN, 9.2233720368547748e18, 1.7976931348623157e308, 1e38, 1e-38, 4503599627370497.5),
    ]
    fresh = [random.uniform(-10, 10), random.randrange(-(10**6), 10**6) / 1000]
    wide = random.uniform(-1, 1) * 10.0 ** random.randrange(-40, 41)
    return random.choice([*hard, *fresh, wide, wide, wide])


def decimal_of(random: random.Random, type: pa.DataType) -> Decimal:
    most = 10**type.precision - 1
    one = 10**type.scale
    digits = random.randrange(1, type.precision + 1)
    hard = [0, 1, -1, one, -one, 5 * one // 10, 25 * one // 10, most, -most]
    number = random.choice([*hard, random.randrange(-most, most), random.randrange(10**digits)])
    return EXACT.scaleb(Decimal(number), -type.scale)


def text_of(random: random.Random) -> str:
    if random.random() < 0.7:
        return random.choice(TEXTS)
    text = "".join(random.choice(LETTERS) for _ in range(random.randrange(8)))
    if text.isdecimal():  # more digits may be a year beyond 9999
        return text[:4]
    # TRY_CAST makes NULL of a time of day here, and a TIMESTAMP of today in Spark.
    return text.replace(":", "-") if re.match(r"\s*(T\d|\d{1,2}:\d)", text) else text


def _days(random: random.Random) -> int:
    hard = [0, 1, -1, 18321, 59, FIRST_DATE, LAST_DATE, -719_162 + 365, 19358]
    return random.choice([*hard, random.randrange(FIRST_DATE, LAST_DATE + 1)])


def _micros(random: random.Random) -> int:
    hard = [0, 1, -1, 999_999, -1_500_000, 1_582_934_400_123_456, FIRST_TIMESTAMP, LAST_TIMESTAMP]
    fresh = random.randrange(FIRST_TIMESTAMP, LAST_TIMESTAMP + 1)
    return random.choice([*hard, fresh, random.randrange(-(10**8), 10**8)])


def _length(random: random.Random) -> int:
    hard = [
        0,
        1,
        -1,
        3_600_000_000,
        -MICROS_PER_DAY,
        2 * MICROS_PER_DAY,
        2**63 - 1,
        -(2**63),
        10**15,
    ]
    return random.choice([*hard, random.randrange(-(10**13), 10**13)])


def value_of(random: random.Random, kind: str) -> Any:
    """A random plain value."""
    if random.random() < 0.08:
        return None
    match kind:
        case "b":
            return random.random() < 0.5
        case "i":
            return _integer(random, 32)
        case "l":
            return _integer(random, 64)
        case "r":
            return round_real(_double(random))
        case "d":
            return _double(random)
        case "s":
            return text_of(random)
        case "y":
            return random.choice([b"", b"\x00", b"abc", b"\xff\x00", "é".encode(), b"12"])
        case "e":
            return _days(random)
        case "t":
            return _micros(random)
        case "v":
            return _length(random)
        case "n":
            return tuple(value_of(random, "i") for _ in range(random.randrange(4)))
        case "o":
            return tuple(value_of(random, "s") for _ in range(random.randrange(4)))
        case "p":
            return value_of(random, "i"), value_of(random, "s")
    return decimal_of(random, TYPES[kind])


COLUMNS = {f"{kind}{number}": kind for kind in TYPES for number in (1, 2)}


def rows(random: random.Random, count: int) -> list[tuple[Any, ...]]:
    return [tuple(value_of(random, kind) for kind in COLUMNS.values()) for _ in range(count)]
