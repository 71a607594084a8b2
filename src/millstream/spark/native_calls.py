"""The functions that Spark computes exactly as we do, and how they are written there.

What is not here is not here for a reason: the case of letters follows another version of Unicode,
logarithms and sines differ in the last bit, regular expressions are of another kind, and a DOUBLE
has other digits as text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import pyarrow as pa
from sqlglot import exp

from millstream.logical.expressions import Call, Literal
from millstream.model.types import (
    REAL,
    TIMESTAMP,
    is_atomic,
    is_decimal,
    is_floating,
    is_integral,
    is_numeric,
)
from millstream.spark.native_ranges import Range, value_range

Build = Callable[..., exp.Expression]


class Rule(NamedTuple):
    """How a call is written, of those calls for which `holds` is true."""

    build: Build
    holds: Callable[[Call], bool] = lambda call: True

    def written(self, call: Call, arguments: Sequence[exp.Expression]) -> exp.Expression:
        if call.function in _COMPARISONS:
            arguments = shielded(call, arguments)
        return self.build(*arguments)


# --- how calls are written --------------------------------------------------------------------

_SELF_CONTAINED = (
    *(exp.Column, exp.Literal, exp.HexString, exp.Boolean, exp.Null, exp.Paren, exp.Func),
)


def bracketed(part: exp.Expression) -> exp.Expression:
    """In brackets, unless nothing around it can tear it apart."""
    alone = isinstance(part, _SELF_CONTAINED) and not isinstance(part, exp.Binary)
    return part if alone else exp.Paren(this=part)


def _operator(kind: type[exp.Binary]) -> Build:
    def build(*operands: exp.Expression) -> exp.Expression:
        return reduce(lambda a, b: kind(this=a, expression=b), map(bracketed, operands))

    return build


def _prefix(kind: type[exp.Unary]) -> Build:
    return lambda operand: kind(this=bracketed(operand))


def _function(name: str) -> Build:
    return lambda *arguments: exp.Anonymous(this=name, expressions=list(arguments))


def _is_null(operand: exp.Expression) -> exp.Expression:
    return exp.Is(this=bracketed(operand), expression=exp.Null())


def _in(value: exp.Expression, *items: exp.Expression) -> exp.Expression:
    return exp.In(this=bracketed(value), expressions=list(items))


def _case(*parts: exp.Expression) -> exp.Expression:
    branches = zip(parts[::2], parts[1::2], strict=False)
    return exp.Case(
        ifs=[exp.If(this=condition, true=value) for condition, value in branches],
        default=parts[-1] if len(parts) % 2 else None,
    )


def _like(text: exp.Expression, pattern: exp.Expression, *escape: exp.Expression) -> exp.Expression:
    like = exp.Like(this=bracketed(text), expression=pattern)
    return exp.Escape(this=like, expression=escape[0]) if escape else like


def _trim(position: str, *parts: exp.Expression) -> exp.Expression:
    if len(parts) == 1:
        parts = (exp.Literal.string(" "), *parts)
    characters, text = parts
    return exp.Trim(this=text, expression=characters, position=position)


def _extract_second(time: exp.Expression) -> exp.Expression:
    return exp.Extract(this=exp.var("SECOND"), expression=time)


# --- pruning ----------------------------------------------------------------------------------


def shielded(call: Call, operands: Sequence[exp.Expression]) -> list[exp.Expression]:
    """The operands of a comparison, so written that no source prunes by it where it must not.

    Spark hands comparisons of columns with constants to sources such as Parquet, and to what it
    caches. There NaN and -0.0 are not among the values that a minimum, a maximum or a dictionary
    tells of; and of times that a file has in milliseconds, a constant between two of them is taken
    for the one before. So their rows were lost, if the column stood there by itself.
    """
    type = call.arguments[0].type
    constants: list[Any] = [a.value for a in call.arguments if isinstance(a, Literal)]
    if is_floating(type) and constants:
        zero = exp.Literal.number("0F" if type == REAL else "0D")
        return [
            operand if isinstance(a, Literal) else exp.Add(this=bracketed(operand), expression=zero)
            for a, operand in zip(call.arguments, operands, strict=True)
        ]
    if type == TIMESTAMP and any(value is not None and value % 1000 for value in constants):
        return [exp.Anonymous(this="UNIX_MICROS", expressions=[operand]) for operand in operands]
    return list(operands)


# --- for which types --------------------------------------------------------------------------


def _of(*kinds: Callable[[pa.DataType], bool]) -> Callable[[Call], bool]:
    """Of arguments that are all of such types."""
    return lambda call: all(any(kind(a.type) for kind in kinds) for a in call.arguments)


def _hashes_alike(type: pa.DataType) -> bool:
    """A long list becomes a hash set in Spark, in which 0.0 and -0.0 are two."""
    return is_atomic(type) and not is_floating(type)


def _keeps_digits(type: pa.DataType) -> bool:
    """Spark rounds a decimal to 34 digits where it changes its sign."""
    return is_decimal(type) and type.precision <= 34


def _has_near_positions(call: Call) -> bool:
    """Far from the text Spark adds position and length with an overflow."""
    return all(value_range(position).within(_NEAR) for position in call.arguments[1:])


_NEAR = Range(-(2**30), 2**30)


def _is_unary(call: Call) -> bool:
    return len(call.arguments) == 1


def _rounds_decimals(call: Call) -> bool:
    """To no digits, or to a constant number of them: then the type is that of Spark."""
    constant = all(isinstance(digits, Literal) for digits in call.arguments[1:])
    return is_decimal(call.type) and constant


# --- the table --------------------------------------------------------------------------------

_ANY_TYPE: dict[str, Build] = {
    "case": _case,
    "is null": _is_null,
    **{name: _function(name.upper()) for name in ("if", "nvl2", "coalesce", "array")},
    "size": _function("ARRAY_SIZE"),
}

_COMPARISONS: dict[str, Build] = {
    "=": _operator(exp.EQ),
    "<>": _operator(exp.NEQ),
    "<": _operator(exp.LT),
    "<=": _operator(exp.LTE),
    ">": _operator(exp.GT),
    ">=": _operator(exp.GTE),
    "<=>": _operator(exp.NullSafeEQ),
    "in": _in,
}

_OF_ONE_PLAIN_TYPE = ["nullif", "greatest", "least"]

_LOGIC: dict[str, Build] = {
    "and": _operator(exp.And),
    "or": _operator(exp.Or),
    "not": _prefix(exp.Not),
}

_ARITHMETIC: dict[str, Build] = {
    "+": _operator(exp.Add),
    "-": _operator(exp.Sub),
    "*": _operator(exp.Mul),
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
    "||": _function("CONCAT"),
    "position": _function("LOCATE"),
    "instr_from": _function("INSTR"),
    "like": _like,
    "trim": partial(_trim, "BOTH"),
    "ltrim": partial(_trim, "LEADING"),
    "rtrim": partial(_trim, "TRAILING"),
    "extract_second": _extract_second,
    "to_date": lambda date: date,
}

CALLS: dict[str, Rule] = {
    **{name: Rule(build) for name, build in (_ANY_TYPE | _LOGIC | _WRITTEN_DIFFERENTLY).items()},
    **{name: Rule(_function(name.upper())) for name in _NAMED},
    **{name: Rule(build, _of(is_atomic)) for name, build in _COMPARISONS.items()},
    **{name: Rule(_function(name.upper()), _of(is_atomic)) for name in _OF_ONE_PLAIN_TYPE},
    **{name: Rule(build, _of(is_numeric)) for name, build in _ARITHMETIC.items()},
    "substring": Rule(_function("SUBSTRING"), _has_near_positions),
    "in": Rule(_in, _of(_hashes_alike)),
    "negate": Rule(_prefix(exp.Neg), _of(is_integral, is_floating, _keeps_digits)),
    "abs": Rule(_function("ABS"), _of(is_integral, is_floating, _keeps_digits)),
    "/": Rule(_operator(exp.Div), _of(is_floating)),
    "%": Rule(_operator(exp.Mod), _of(is_integral, is_floating)),
    "div": Rule(_operator(exp.IntDiv), _of(is_integral)),
    "ceil": Rule(_function("CEIL"), _of(is_integral, is_decimal)),
    "floor": Rule(_function("FLOOR"), _of(is_integral, is_decimal)),
    "round": Rule(_function("ROUND"), _rounds_decimals),
}


def rule_of(function: str) -> Rule | None:
    if function.startswith("."):
        return Rule(partial(_field, function[1:]))
    return CALLS.get(function)


def _field(name: str, struct: exp.Expression) -> exp.Expression:
    return exp.Dot(this=bracketed(struct), expression=exp.to_identifier(name, quoted=True))
