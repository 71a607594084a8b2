"""Translates bound expressions to Spark SQL, where Spark computes exactly the same value for every
row.

Expressions that may fail are not translated: in Millstream a failing row is added to the query's
errors, in Spark it would end the job. The SQL assumes a session in ANSI mode with time zone UTC, as
from `starting.for_batches`.
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

# Spark's name of a column, by its qualifier and name.
Names: TypeAlias = Mapping[tuple[str, str], str]


class _NotNativeError(Exception):
    """Spark computes part of the expression differently."""


def spark_sql(expression: Expression, columns: Names) -> str | None:
    """The expression in Spark SQL, or None if Spark might return another value, fail, or lack the
    columns."""
    expression = folded(expression)
    if can_fail(expression):
        return None
    try:
        text = _translated(expression, columns).text
    except _NotNativeError:
        return None
    return None if "${" in text else text  # Spark would substitute a setting


def native_conjuncts(condition: Expression, columns: Names) -> tuple[list[str], Expression | None]:
    """The conjuncts that Spark can evaluate, and the condition that remains for the rows it keeps.

    Rows for which the condition would fail are not lost. A conjunct is not pushed past an earlier
    one that may fail. If a later one may fail, the pushed conjunct also keeps the rows where it is
    NULL, since evaluation would continue to the failing one; it then also remains.
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
    """A value as text that Spark can parse."""
    if type in (DATE, TIMESTAMP):
        micros = value * MICROS_PER_DAY if type == DATE else value
        if not FIRST_TIMESTAMP <= micros <= LAST_TIMESTAMP:
            raise _NotNativeError
    return string(to_string(value, type) + ("Z" if type == TIMESTAMP else ""))


def _type(type: pa.DataType) -> str:
    """Spells out the timestamp type, since a session can redefine the short name."""
    return {TIMESTAMP: "TIMESTAMP_LTZ", REAL: "FLOAT"}.get(type) or types.sql_name(type)


def _casts_alike(operand: Expression, target: pa.DataType) -> bool:
    """Whether Spark's cast gives the same value; also for a TRY_CAST that cannot fail.

    Exceptions: floats to text, which depends on the Java version; numbers with more digits than a
    float holds, which Spark rounds once and Millstream twice (an INT to a DOUBLE via a REAL not
    even once); and bytes that are not valid text.
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
