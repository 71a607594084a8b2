"""Bound expressions as Spark SQL, where Spark gives exactly the same value for every row.

An expression that may fail is never given to Spark: here a row that fails goes to the errors of the
query, while there it would end the job. The texts are for sessions whose time zone is UTC and
whose mode is ANSI, as those of `starting.for_batches` are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from millstream.logical.expression_facts import ExpressionFacts, can_fail
from millstream.logical.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    conjunction,
    conjuncts,
    nullable,
)
from millstream.logical.functions import cast_facts, to_string
from millstream.model import types
from millstream.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FIRST_TIMESTAMP,
    INT,
    LAST_TIMESTAMP,
    MICROS_PER_DAY,
    REAL,
    STRING,
    TIMESTAMP,
    is_floating,
)
from millstream.optimizer.rules.fold_constants import folded
from millstream.spark.native_calls import rule_of
from millstream.spark.sql_text import SqlText, cast, quoted, string

# What Spark calls a column, by its qualifier and name.
Names: TypeAlias = Mapping[tuple[str, str], str]


class _NotNativeError(Exception):
    """Part of the expression is nothing that Spark does as we do."""


def spark_sql(expression: Expression, columns: Names) -> str | None:
    """The expression in Spark's SQL, or None if Spark might give another value, or fail, or does
    not have the columns."""
    expression = folded(expression)
    if can_fail(expression):
        return None
    try:
        text = _translated(expression, columns).text
    except _NotNativeError:
        return None
    return None if "${" in text else text  # Spark would put the value of a setting there


def native_conjuncts(condition: Expression, columns: Names) -> tuple[list[str], Expression | None]:
    """What Spark can take of a condition, and what remains to be asked of the rows that it keeps.

    No row is lost that the condition would fail for: a part is never taken past one before it that
    may fail; and past one after it, it keeps the rows where it is NULL too, since the condition
    goes on there to what fails. Such a part remains.
    """
    parts = conjuncts(condition)
    taken: list[str] = []
    rest: list[Expression] = []
    for number, part in enumerate(parts):
        fails_later = any(map(can_fail, parts[number + 1 :]))
        text = spark_sql(part, columns)
        if text is None or any(map(can_fail, rest)):
            rest.append(part)
        elif fails_later and nullable(part):
            taken.append(f"({text}) IS NOT FALSE")
            rest.append(part)
        else:
            taken.append(text)
    return taken, conjunction(rest)


def _translated(expression: Expression, columns: Names) -> SqlText:
    match expression:
        case Column(key=key) if key in columns:
            return SqlText(quoted(columns[key]))
        case Literal(value=value, type=type):
            return _literal(value, type)
        case Cast(operand=operand, type=type) if _casts_alike(operand, type):
            return cast(_translated(operand, columns), _type(type))
        case Call(function=function, arguments=arguments):
            rule = rule_of(function)
            if rule is not None and rule.holds(expression):
                return rule.written(expression, [_translated(a, columns) for a in arguments])
    raise _NotNativeError


# --- literals and casts -----------------------------------------------------------------------


def _literal(value: Any, type: pa.DataType) -> SqlText:
    if not types.is_atomic(type):
        raise _NotNativeError
    if value is None:
        return cast(SqlText("NULL"), _type(type))
    if type == BOOLEAN:
        return SqlText("TRUE" if value else "FALSE")
    if type == INT:
        return _number(value)
    if type == STRING:
        return string(value)
    if type == BINARY:
        return SqlText(f"X'{value.hex()}'")
    return cast(_number(value) if type == BIGINT else _text(value, type), _type(type))


def _number(value: int) -> SqlText:
    return SqlText(str(value), whole=value >= 0)


def _text(value: Any, type: pa.DataType) -> SqlText:
    """The text of a value, which Spark reads back."""
    if type in (DATE, TIMESTAMP):
        micros = value * MICROS_PER_DAY if type == DATE else value
        if not FIRST_TIMESTAMP <= micros <= LAST_TIMESTAMP:
            raise _NotNativeError
    return string(to_string(value, type) + ("Z" if type == TIMESTAMP else ""))


def _type(type: pa.DataType) -> str:
    """TIMESTAMP by its full name, whatever a session means by the short one."""
    return {TIMESTAMP: "TIMESTAMP_LTZ", REAL: "FLOAT"}.get(type) or types.sql_name(type)


def _casts_alike(operand: Expression, target: pa.DataType) -> bool:
    """Whether Spark gives the same value; also of a TRY_CAST, if there is nothing to try.

    It does not for floats as text, which depends on the version of Java; for floats made of numbers
    with more digits than they hold, which it rounds once where we round twice, and an INT that
    becomes a DOUBLE by way of a REAL not even once; and for bytes that are no text.
    """
    source = operand.type
    plain = types.is_atomic(target) and (types.is_atomic(source) or source == types.NULL)
    if not plain or not cast_facts.is_total(ExpressionFacts(operand), target):
        return False
    if target == STRING:
        return not is_floating(source) and source != BINARY
    if target == REAL:
        return source in (DOUBLE, BOOLEAN)
    return bool(target != DOUBLE or source != TIMESTAMP)
