"""The differences from Spark that are meant, by name, with their reasons. There are no others.

All of them are in docs/semantics.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa

from millstream.logical.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    operands,
    walk,
)
from millstream.model.types import (
    BIGINT,
    BINARY,
    DATE,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    is_array,
    is_decimal,
    is_floating,
    is_integral,
    is_numeric,
    is_struct,
)
from millstream.spark.native_calls import _has_near_positions

_ROUGH = {
    *("exp", "ln", "log", "log2", "log10", "power", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("atan2", "degrees", "radians"),
}


def _holds_floats(type: pa.DataType) -> bool:
    if is_array(type):
        return _holds_floats(type.value_type)
    if is_struct(type):
        return any(_holds_floats(field.type) for field in type)
    return is_floating(type)


def _is_rough(part: Expression) -> bool:
    return isinstance(part, Call) and part.function in _ROUGH


def _writes_floats(part: Expression) -> bool:
    return isinstance(part, Cast) and _made_text(part.operand.type, part.type)


def _made_text(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a float in a value becomes text."""
    if is_array(source) and is_array(target):
        return _made_text(source.value_type, target.value_type)
    return target == STRING and _holds_floats(source)


def _rounds_floats(part: Expression) -> bool:
    to_decimal = isinstance(part, Cast) and is_decimal(part.type)
    rounded = isinstance(part, Call) and part.function == "round"
    return (to_decimal or rounded) and is_floating(operands(part)[0].type)


def _divides_long_decimals(part: Expression) -> bool:
    divided = isinstance(part, Call) and part.function == "div"
    return divided and not is_integral(operands(part)[0].type)


def _compares_beyond_integers(part: Expression) -> bool:
    if not isinstance(part, Call) or part.function not in ("=", "<", "<=", ">", ">=", "<>", "<=>"):
        return False
    constants = [a.value for a in part.arguments if isinstance(a, Literal)]
    whole = any(isinstance(a, Cast) and is_integral(a.operand.type) for a in part.arguments)
    return whole and any(isinstance(v, Decimal) and abs(v) >= 2**63 for v in constants)


def _tries_timestamps(part: Expression) -> bool:
    """Also of texts that were computed, and may have the digits of a later year."""
    if not isinstance(part, Cast) or not part.attempt or part.type not in (DATE, TIMESTAMP):
        return False
    given = isinstance(part.operand, Column | Literal)
    return is_numeric(part.operand.type) or (part.operand.type == STRING and not given)


def _looks_far_away(part: Expression) -> bool:
    return isinstance(part, Call) and part.function == "substring" and not _has_near_positions(part)


def _reads_bytes(part: Expression) -> bool:
    return isinstance(part, Cast) and _read(part.operand.type, part.type)


def _read(source: pa.DataType, target: pa.DataType) -> bool:
    if is_array(source) and is_array(target):
        return _read(source.value_type, target.value_type)
    return source == BINARY and target == STRING


def _writes_intervals(part: Expression) -> bool:
    if not isinstance(part, Cast) or STRING not in (part.type, getattr(part.type, "value_type", 0)):
        return False
    written = [p for p in walk(part.operand) if p.type in (INTERVAL, pa.list_(INTERVAL))]
    return any(not isinstance(p, Column) for p in written)


def _has_long_quotient(part: Expression) -> bool:
    if not isinstance(part, Call) or part.function != "%" or not is_decimal(part.type):
        return False
    a, b = (argument.type for argument in part.arguments)
    return bool(a.precision - a.scale + b.scale > 34)


def _changes_sign_of_long_decimals(part: Expression) -> bool:
    signed = isinstance(part, Call) and part.function in ("negate", "abs")
    return signed and is_decimal(part.type) and part.type.precision > 34


def _cuts_long_decimals(part: Expression) -> bool:
    return isinstance(part, Cast) and _cut(part.operand.type, part.type)


def _cut(source: pa.DataType, target: pa.DataType) -> bool:
    if is_array(source) and is_array(target):
        return _cut(source.value_type, target.value_type)
    return is_decimal(source) and bool(source.precision > 15) and target == INT


def _cuts_small_decimals(part: Expression) -> bool:
    """Columns are not affected: Spark reads them as decimals with many digits."""
    if not isinstance(part, Cast) or isinstance(part.operand, Column):
        return False
    return is_decimal(part.operand.type) and part.operand.type.scale > 18 and part.type == BIGINT


def _indexes_with_bigint(part: Expression) -> bool:
    if not isinstance(part, Call) or part.function != "element":
        return False
    index = part.arguments[1]
    return isinstance(index, Cast) and index.operand.type == BIGINT


def _moves_dates(part: Expression) -> bool:
    """By an interval that is neither a literal in days nor a difference of dates."""
    if not isinstance(part, Call) or part.function not in ("+", "-") or part.type != TIMESTAMP:
        return False
    dates = [a for a in part.arguments if isinstance(a, Cast) and a.operand.type == DATE]
    return bool(dates) and any(isinstance(a, Cast | Call) for a in part.arguments if a not in dates)


class Meant(NamedTuple):
    """A difference: its reason, and the parts of expressions that show it. If it is in the digits
    alone, expressions whose outermost part shows it are compared but for their last digits."""

    reason: str
    shown_by: Callable[[Expression], bool]
    in_digits: bool = False


MEANT = {
    "last digits": Meant(
        "EXP and the like are those of the C library, not of Java", _is_rough, in_digits=True
    ),
    "digits of floats": Meant(
        "a DOUBLE as text has the fewest digits that name it; before version 19 Java's has more",
        _writes_floats,
        in_digits=True,
    ),
    "rounded floats": Meant(
        "ROUND and CAST to DECIMAL of a DOUBLE round these digits", _rounds_floats, in_digits=True
    ),
    "integers beside large decimals": Meant(
        "NULL beside a literal that is larger than any BIGINT is NULL; Spark says TRUE or FALSE",
        _compares_beyond_integers,
    ),
    "DIV of decimals and intervals": Meant(
        "a quotient that is no BIGINT is an overflow; Spark keeps its lowest 64 bits",
        _divides_long_decimals,
    ),
    "attempted timestamps": Meant(
        "a number or text that is no TIMESTAMP of the years 1 to 9999 makes TRY_CAST NULL",
        _tries_timestamps,
    ),
    "intervals of days": Meant(
        "the type INTERVAL does not say that it has whole days, so CASE and the like make a "
        "TIMESTAMP of a date",
        _moves_dates,
    ),
    "far positions": Meant(
        "Spark's sum of position and length overflows at -2147483648", _looks_far_away
    ),
    "remainders of long quotients": Meant(
        "Spark gives up where the whole quotient has more than 38 digits", _has_long_quotient
    ),
    "intervals as text": Meant(
        "an INTERVAL is written DAY TO SECOND, whatever its literal said", _writes_intervals
    ),
    "bytes as text": Meant("Spark keeps bytes in a STRING that are no UTF-8", _reads_bytes),
    "sign of long decimals": Meant(
        "Spark rounds a DECIMAL to 34 digits where it changes its sign",
        _changes_sign_of_long_decimals,
    ),
    "long decimals as INT": Meant(
        "Spark makes a DOUBLE of it first: 99.999999999999999999 becomes 100",
        _cuts_long_decimals,
    ),
    "small decimals as BIGINT": Meant(
        "Spark fails with ArrayIndexOutOfBoundsException for some computed decimals with more "
        "than 18 digits after the point",
        _cuts_small_decimals,
    ),
    "arrays with a BIGINT index": Meant(
        "an index that is no INT fails; Spark takes its lowest 32 bits, so that a[4294967297] is "
        "a[1]",
        _indexes_with_bigint,
    ),
}

# Rows that fail here with such a message, and have a value in Spark.
_OUT_OF_YEARS = re.compile(r"^(date|timestamp) overflow|is not within the years 1 to 9999")
_TIME_OF_DAY = re.compile(r'^cannot cast "\s*(T\d|\d{1,2}:\d)[^"]*" to TIMESTAMP')
MEANT_FAILURES = {
    "years beyond 9999": (_OUT_OF_YEARS, "DATE and TIMESTAMP have the years 1 to 9999"),
    "times of day": (
        _TIME_OF_DAY,
        "a text with a time of day alone is no TIMESTAMP; in Spark it is that time of the day on "
        "which the query runs",
    ),
}


# What Spark refuses, and we do not.
MEANT_REFUSALS = {
    "ROUND to a column": ("NON_FOLDABLE_INPUT", "the digits that ROUND keeps may be a column"),
    "implicit casts": (
        "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
        "arguments are cast where an INSERT would cast them: a STRING for a BOOLEAN, a DECIMAL for "
        "a BIGINT, a bare NULL for anything",
    ),
    "bare NULL": ("DATATYPE_MISMATCH.NULL_TYPE", "a bare NULL is taken where Spark wants a type"),
    "constants that fail": ("SQLSTATE: 22", "each row fails, where Spark refuses the query"),
    "arrays of strings": ("BINARY_OP_DIFF_TYPES", "their elements are cast as strings are"),
}


def is_meant_refusal(message: str) -> bool:
    return any(word in message for word, _ in MEANT_REFUSALS.values())


def is_meant_failure(message: str) -> bool:
    return any(pattern.search(message) for pattern, _ in MEANT_FAILURES.values())


def excluded(expression: Expression) -> str | None:
    """The name of a difference that keeps an expression from being compared."""
    inner = [part for operand in operands(expression) for part in walk(operand)]
    for name, meant in MEANT.items():
        parts = inner if meant.in_digits else [expression, *inner]
        if any(meant.shown_by(part) for part in parts):
            return name
    return None


def is_rough(expression: Expression) -> bool:
    """Whether the outermost part shows a difference in the last digits."""
    return any(meant.in_digits and meant.shown_by(expression) for meant in MEANT.values())
