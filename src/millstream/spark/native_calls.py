"""The functions that Spark computes exactly as Millstream does, and their Spark SQL.

Other functions are left out on purpose: upper and lower case follow another Unicode version,
logarithms and sines differ in the last bit, regular expressions have another dialect, and a DOUBLE
has other digits as text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from millstream.logical.expression_facts import ExpressionFacts
from millstream.logical.expressions import Call, Literal
from millstream.logical.functions.ranges import Range
from millstream.model.types import (
    REAL,
    TIMESTAMP,
    is_atomic,
    is_decimal,
    is_floating,
    is_integral,
    is_numeric,
)
from millstream.spark.sql_text import (
    Build,
    SqlText,
    called,
    case,
    dot,
    extract,
    function,
    is_in,
    is_null,
    like,
    operator,
    prefix,
    trim,
)


class Rule(NamedTuple):
    """How to write a call, for calls where `holds` is true."""

    build: Build
    holds: Callable[[Call], bool] = lambda call: True

    def written(self, call: Call, arguments: Sequence[SqlText]) -> SqlText:
        if call.function in _COMPARISONS:
            arguments = shielded(call, arguments)
        return self.build(*arguments)


_plus = operator("+")


# --- pruning ----------------------------------------------------------------------------------


def shielded(call: Call, operands: Sequence[SqlText]) -> list[SqlText]:
    """The operands of a comparison, written so that sources prune only where that is safe.

    Spark pushes comparisons of columns with constants down to sources such as Parquet and to its
    cache. Their minimum, maximum and dictionary do not cover NaN and -0.0; and for times stored in
    milliseconds, a constant between two of them is rounded down. A bare column would therefore lose
    rows.
    """
    type = call.arguments[0].type
    constants: list[Any] = [a.value for a in call.arguments if isinstance(a, Literal)]
    if is_floating(type) and constants:
        zero = SqlText("0F" if type == REAL else "0D")
        return [
            operand if isinstance(a, Literal) else _plus(operand, zero)
            for a, operand in zip(call.arguments, operands, strict=True)
        ]
    if type == TIMESTAMP and any(value is not None and value % 1000 for value in constants):
        return [called("UNIX_MICROS", [operand]) for operand in operands]
    return list(operands)


# --- for which types --------------------------------------------------------------------------


def _of(*kinds: Callable[[pa.DataType], bool]) -> Callable[[Call], bool]:
    """All arguments have such types."""
    return lambda call: all(any(kind(a.type) for kind in kinds) for a in call.arguments)


def _hashes_alike(type: pa.DataType) -> bool:
    """Spark turns a long list into a hash set, in which 0.0 and -0.0 differ."""
    return is_atomic(type) and not is_floating(type)


def _keeps_digits(type: pa.DataType) -> bool:
    """Spark rounds a decimal to 34 digits when it negates it."""
    return is_decimal(type) and type.precision <= 34


def _has_near_positions(call: Call) -> bool:
    """For large positions Spark overflows when it adds position and length."""
    ranges = (ExpressionFacts(position).range for position in call.arguments[1:])
    return all(range is not None and range.within(_NEAR) for range in ranges)


_NEAR = Range(-(2**30), 2**30)


def _is_unary(call: Call) -> bool:
    return len(call.arguments) == 1


def _rounds_decimals(call: Call) -> bool:
    """To no digits, or a constant number of them: then Spark's result type is the same."""
    constant = all(isinstance(digits, Literal) for digits in call.arguments[1:])
    return is_decimal(call.type) and constant


# --- the table --------------------------------------------------------------------------------

_ANY_TYPE: dict[str, Build] = {
    "case": case,
    "is null": is_null,
    **{name: function(name.upper()) for name in ("if", "nvl2", "coalesce", "array")},
    "size": function("ARRAY_SIZE"),
}

_COMPARISONS: dict[str, Build] = {
    "=": operator("="),
    "<>": operator("<>"),
    "<": operator("<"),
    "<=": operator("<="),
    ">": operator(">"),
    ">=": operator(">="),
    "<=>": operator("<=>"),
    "in": is_in,
}

_OF_ONE_PLAIN_TYPE = ["nullif", "greatest", "least"]

_LOGIC: dict[str, Build] = {
    "and": operator("AND"),
    "or": operator("OR"),
    "not": prefix("NOT "),
}

_ARITHMETIC: dict[str, Build] = {
    "+": operator("+"),
    "-": operator("-"),
    "*": operator("*"),
}

_NAMED = [
    *("sqrt", "sign", "isnan"),
    *("concat", "concat_ws", "length", "left", "right", "btrim", "replace"),
    *("startswith", "endswith", "contains", "translate", "reverse", "ascii", "chr", "split_part"),
    *("md5", "sha2", "crc32"),
    *("year", "quarter", "month", "day", "weekday", "dayofweek", "dayofyear", "weekofyear"),
    *("hour", "minute", "second", "unix_seconds", "unix_millis", "unix_micros"),
    *("timestamp_seconds", "timestamp_millis", "timestamp_micros", "datediff", "date_add"),
    *("date_sub", "array_contains"),
]

_WRITTEN_DIFFERENTLY: dict[str, Build] = {
    "||": function("CONCAT"),
    "position": function("LOCATE"),
    "instr_from": function("INSTR"),
    "like": like,
    "trim": partial(trim, "BOTH"),
    "ltrim": partial(trim, "LEADING"),
    "rtrim": partial(trim, "TRAILING"),
    "extract_second": partial(extract, "SECOND"),
    "to_date": lambda date: date,
}

CALLS: dict[str, Rule] = {
    **{name: Rule(build) for name, build in (_ANY_TYPE | _LOGIC | _WRITTEN_DIFFERENTLY).items()},
    **{name: Rule(function(name.upper())) for name in _NAMED},
    **{name: Rule(build, _of(is_atomic)) for name, build in _COMPARISONS.items()},
    **{name: Rule(function(name.upper()), _of(is_atomic)) for name in _OF_ONE_PLAIN_TYPE},
    **{name: Rule(build, _of(is_numeric)) for name, build in _ARITHMETIC.items()},
    "substring": Rule(function("SUBSTRING"), _has_near_positions),
    "in": Rule(is_in, _of(_hashes_alike)),
    "negate": Rule(prefix("-"), _of(is_integral, is_floating, _keeps_digits)),
    "abs": Rule(function("ABS"), _of(is_integral, is_floating, _keeps_digits)),
    "/": Rule(operator("/"), _of(is_floating)),
    "%": Rule(operator("%"), _of(is_integral, is_floating)),
    "div": Rule(operator("DIV"), _of(is_integral)),
    "ceil": Rule(function("CEIL"), _of(is_integral, is_decimal)),
    "floor": Rule(function("FLOOR"), _of(is_integral, is_decimal)),
    "round": Rule(function("ROUND"), _rounds_decimals),
}


def rule_of(function: str) -> Rule | None:
    if function.startswith("."):
        return Rule(lambda struct: dot(struct, function[1:]))
    return CALLS.get(function)
