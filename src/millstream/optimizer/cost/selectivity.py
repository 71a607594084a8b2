"""The selectivity of conditions, and the number of values of expressions.

Values are assumed to be equally frequent and columns to be independent, as in the papers (G3 §4.2).
A comparison with a constant uses the minimum and maximum of its column if they are known; other
conditions have the defaults below. A measured or declared selectivity takes precedence.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from statistics import NormalDist

from millstream.logical.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    conjuncts,
    walk,
)
from millstream.logical.text import expression_text
from millstream.model import types
from millstream.optimizer.cost.characteristics import Characteristics, ColumnFacts, Key, product
from millstream.optimizer.cost.model import Model
from millstream.optimizer.statistics import DISTINCT, width_of

RANGE = 1 / 3  # of rows satisfy an unknown comparison
PATTERN = 1 / 10  # … a LIKE
RARE = 1 / 1000  # … are outside the range of the sample, which was of other rows
NULLS = 1 / 20  # … IS NULL of a column that may be NULL
OTHER = 1 / 3

_RANGES = ("<", "<=", ">", ">=")
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def filtered(
    condition: Expression, input: Characteristics, model: Model
) -> tuple[float, Mapping[Key, ColumnFacts]]:
    """The share of rows that satisfy a condition, and the facts of their columns."""
    share = selectivity(condition, input, model)
    columns = dict(input.columns)
    for part in conjuncts(condition):
        for key, facts in _narrowed(part, replace(input, columns=columns), model).items():
            columns[key] = facts
    return share, columns


def selectivity(condition: Expression, input: Characteristics, model: Model) -> float:
    """The share of rows that satisfy a condition, between 0 and 1."""
    known = model.statistics.selectivities
    if known and (given := known.get(expression_text(condition))) is not None:
        return given
    parts = conjuncts(condition)
    if len(parts) > 1:
        return _conjunction(parts, input, model)
    return min(1.0, max(0.0, _part(condition, input, model)))


def _conjunction(parts: list[Expression], input: Characteristics, model: Model) -> float:
    """Several conditions on one column narrow it one after the other."""
    share, columns = 1.0, dict(input.columns)
    for part in parts:
        left = replace(input, columns=columns)
        share *= selectivity(part, left, model)
        columns |= _narrowed(part, left, model)
    return share


def _part(condition: Expression, input: Characteristics, model: Model) -> float:
    match condition:
        case Literal(value=value):
            return 1.0 if value is True else 0.0
        case Call(function="not", arguments=(operand,)):
            return 1 - selectivity(operand, input, model)
        case Call(function="or", arguments=alternatives):
            missed = product(1 - selectivity(each, input, model) for each in alternatives)
            return 1 - missed
        case Call(function="=" | "<=>", arguments=(left, right)):
            return equality(facts_of_value(left, input), facts_of_value(right, input))
        case Call(function="<>", arguments=(left, right)):
            return 1 - equality(facts_of_value(left, input), facts_of_value(right, input))
        case Call(function="in", arguments=(operand, *values)):
            return len(values) / facts_of_value(operand, input).distinct
        case Call(function=function) if function in _RANGES:
            return _range(condition, input)
        case Call(function="like"):
            return PATTERN
        case Call(function="is null"):
            return NULLS
        case Column():
            return 1 / max(1.0, min(2.0, input.column(condition.key).distinct))
    return OTHER


def equality(left: ColumnFacts, right: ColumnFacts) -> float:
    """Two values are equal: 1 / the larger number of distinct values (G3 §5.1)."""
    return 1 / max(1.0, left.distinct, right.distinct)


def _comparison(condition: Expression) -> tuple[str, Column, float] | None:
    """`column op number`, with the column on either side."""
    if not isinstance(condition, Call) or condition.function not in _RANGES:
        return None
    function, (left, right) = condition.function, condition.arguments
    if isinstance(_plain(right), Column):
        function, left, right = _TURNED[function], right, left
    column, literal = _plain(left), _plain(right)
    if not isinstance(column, Column) or not isinstance(literal, Literal):
        return None
    number = as_number(literal.value)
    return None if number is None else (function, column, number)


def _plain(expression: Expression) -> Expression:
    return _plain(expression.operand) if isinstance(expression, Cast) else expression


def _range(condition: Call, input: Characteristics) -> float:
    found = _comparison(condition)
    if found is None:
        return _column_range(condition, input)
    function, column, value = found
    facts = input.column(column.key)
    if facts.low is None or facts.high is None:
        return RANGE
    step = 1.0 if types.is_integral(column.type) else 0.0
    span = facts.high - facts.low + step
    if span <= 0:
        return RANGE
    up_to = (value - facts.low + (step if function in ("<=", ">") else 0.0)) / span
    if facts.deviation is not None:
        middle = (facts.low + facts.high) / 2
        edge = value + (0.5 if function in ("<=", ">") else -0.5)
        up_to = NormalDist(middle, facts.deviation).cdf(edge)
    below = min(1 - RARE, max(RARE, up_to))
    return below if function in ("<", "<=") else 1 - below


def _column_range(condition: Call, input: Characteristics) -> float:
    """Two columns with the same range: each is larger equally often."""
    left, right = map(_plain, condition.arguments)
    if not isinstance(left, Column) or not isinstance(right, Column):
        return RANGE
    one, other = input.column(left.key), input.column(right.key)
    if None in (one.low, one.high) or (one.low, one.high) != (other.low, other.high):
        return RANGE
    equal = equality(one, other)
    return (1 - equal) / 2 + (equal if "=" in condition.function else 0.0)


def _narrowed(
    condition: Expression, input: Characteristics, model: Model
) -> dict[Key, ColumnFacts]:
    """The facts of the columns of a condition's rows."""
    found = _comparison(condition)
    if found is not None:
        function, column, value = found
        facts = input.column(column.key)
        share = _range(condition, input)  # type: ignore[arg-type]
        low, high = facts.low, facts.high
        if low is not None and high is not None:
            if function in ("<", "<="):
                high = max(low, min(high, value))
            else:
                low = min(high, max(low, value))
        distinct = max(1.0, facts.distinct * share)
        return {column.key: replace(facts, distinct=distinct, low=low, high=high, deviation=None)}
    match condition:
        case Call(function="=" | "<=>", arguments=(left, right)):
            sides = [(left, right), (right, left)]
        case _:
            return {}
    narrowed = {}
    for side, other in sides:
        if isinstance(side, Column):
            facts, beside = input.column(side.key), facts_of_value(other, input)
            narrowed[side.key] = replace(facts, distinct=min(facts.distinct, beside.distinct))
    return narrowed


def facts_of_value(expression: Expression, input: Characteristics) -> ColumnFacts:
    """The facts of the values of an expression."""
    width = width_of(expression.type)
    match expression:
        case Column():
            return input.columns.get(expression.key) or ColumnFacts(DISTINCT, width)
        case Literal(value=value):
            number = as_number(value)
            return ColumnFacts(1.0, width, number, number)
        case Cast(operand=operand):
            return replace(facts_of_value(operand, input), width=width)
        case Call(function="%", arguments=(operand, Literal(value=value))):
            modulus = as_number(value)
            if modulus:
                distinct = min(abs(modulus), facts_of_value(operand, input).distinct)
                return ColumnFacts(distinct, width, 0.0, abs(modulus) - 1)
    if expression.type == types.BOOLEAN:
        return ColumnFacts(2.0, width)
    columns = {part.key for part in walk(expression) if isinstance(part, Column)}
    return ColumnFacts(product(input.column(key).distinct for key in columns), width)


def as_number(value: object) -> float | None:
    """A number or time as a float, to compute distances."""
    match value:
        case bool():
            return None
        case int() | float() | Decimal():
            return float(value)
        case datetime.datetime():
            return value.replace(tzinfo=datetime.UTC).timestamp() * 1e6
    return None


def parts_of(expression: Expression) -> float:
    """The number of evaluated parts of an expression per row; a plain column costs nothing."""
    return sum(1.0 for part in walk(expression) if not isinstance(part, Column | Literal))
