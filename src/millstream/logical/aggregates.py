"""Aggregate functions and their meaning.

Except for the ordered functions, results do not depend on the order of the rows, to the last bit:
doubles are summed exactly and rounded once. All except COUNT(*), FIRST and LAST ignore NULLs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from millstream.logical.functions.casts import EXACT, fit_decimal
from millstream.logical.functions.facts import Argument
from millstream.logical.functions.function import (
    EvaluationError,
    Resolve,
    Signature,
    Types,
    argument_error,
    check_count,
    fixed,
)
from millstream.model import types
from millstream.model.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTERVAL,
    MAX_PRECISION,
    NULL,
    STRING,
    decimal_type,
    sql_name,
)
from millstream.model.values import NAN, order_key

Rows = Sequence[tuple[Any, ...]]
Evaluate = Callable[[Signature, Rows], Any]


@dataclass(frozen=True)
class AggregateFunction:
    """An aggregate function.

    `evaluate(signature, rows)` takes the arguments of every row of the group, cast to
    `signature.arguments`, in order, each row repeated by its weight, NULLs included.

    By default an aggregate may fail, keeps all rows, and counts duplicates.
    """

    name: str
    signature: Resolve
    evaluate: Evaluate
    ordered: bool = False  # the result depends on the order of the rows
    empty: Any = None  # the result over no rows; if that is not NULL, no result is NULL
    #: It never fails: always, or if `total(result type, *arguments)` is true.
    total: bool | Callable[..., bool] = False
    constant_state: bool = False  # its state has a constant size if no row ever leaves
    ignores_duplicates: bool = False  # DISTINCT makes no difference
    chooses: bool = False  # the result is the first argument of one of the rows

    def is_total(self, result: pa.DataType, arguments: Iterable[Argument]) -> bool:
        return self.total if isinstance(self.total, bool) else self.total(result, *arguments)


def lookup(name: str) -> AggregateFunction | None:
    """The aggregate function of that canonical name."""
    return _FUNCTIONS.get(name.lower())


def names() -> list[str]:
    """The canonical names of all aggregate functions, sorted."""
    return sorted(_FUNCTIONS)


def _present(rows: Rows) -> list[Any]:
    """The values of the first argument that are not NULL."""
    return [row[0] for row in rows if row[0] is not None]


# --- counting ---------------------------------------------------------------------------------


def _count_signature(given: Types) -> Signature:
    return Signature(given, BIGINT)


def _count(signature: Signature, rows: Rows) -> int:
    """The rows without a NULL among the arguments; with no arguments, all rows."""
    return sum(None not in row for row in rows)


def _count_if(signature: Signature, rows: Rows) -> int:
    return sum(row[0] is True for row in rows)


# --- sums and averages ------------------------------------------------------------------------


def _summed(name: str, digits: int, fraction: int, integral: pa.DataType) -> Resolve:
    """Decimals gain `digits` digits, `fraction` of them in the fraction."""

    def resolve(given: Types) -> Signature:
        check_count(name, given, 1, 1)
        type = DOUBLE if given[0] in (STRING, NULL) else given[0]
        if types.is_decimal(type):
            return Signature((type,), _bounded(type.precision + digits, type.scale + fraction))
        if type == INTERVAL:
            return Signature((type,), type)
        if not types.is_numeric(type):
            raise argument_error(name, 1, type, "a number or an interval")
        wide = integral if types.is_integral(type) else DOUBLE
        return Signature((wide,), wide)

    return resolve


def _bounded(precision: int, scale: int) -> pa.DataType:
    return decimal_type(min(MAX_PRECISION, precision), min(MAX_PRECISION, scale))


def _sum(signature: Signature, rows: Rows) -> Any:
    values = _present(rows)
    if not values:
        return None
    if signature.result == DOUBLE:
        return _exact_sum(values)
    if types.is_decimal(signature.result):
        return fit_decimal(_decimal_sum(values), signature.result)
    total = sum(values)
    least, most = types.integral_range(BIGINT)
    if not least <= total <= most:
        raise EvaluationError(f"the sum {total} does not fit {sql_name(signature.result)}")
    return total


def _exact_sum(values: Sequence[float]) -> float:
    """The sum of doubles, rounded once at the end; infinity if that overflows.

    If there are infinities or NaN, finite values do not matter.
    """
    odd = [value for value in values if not math.isfinite(value)]
    if odd:
        total = sum(odd)
        return NAN if total != total else total
    try:
        return math.fsum(values)
    except OverflowError:
        return _float(_fraction_sum(values))


def _fraction_sum(values: Sequence[float]) -> Fraction:
    return sum(map(Fraction, values), Fraction(0))


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _decimal_sum(values: Sequence[Decimal]) -> Decimal:
    total = Decimal(0)
    for value in values:
        total = EXACT.add(total, value)
    return total


def _avg(signature: Signature, rows: Rows) -> Any:
    values = _present(rows)
    if not values:
        return None
    if signature.result == DOUBLE:
        total = _exact_sum(values)
        return total / len(values) if math.isfinite(total) else _infinite_mean(values, total)
    if signature.result == INTERVAL:
        mean = Decimal(sum(values)) / len(values)
        return int(mean.to_integral_value(ROUND_HALF_UP))
    quotient = EXACT.divide(_decimal_sum(values), Decimal(len(values)))
    return fit_decimal(quotient, signature.result)


def _infinite_mean(values: Sequence[float], total: float) -> float:
    """Infinite or NaN if a value is, and else only the sum overflowed."""
    if all(map(math.isfinite, values)):
        return _float(_fraction_sum(values) / len(values))
    return total


# --- extremes ---------------------------------------------------------------------------------


def _same_as_first(name: str, count: int) -> Resolve:
    def resolve(given: Types) -> Signature:
        check_count(name, given, count, count)
        return Signature(given, given[0])

    return resolve


def _extreme(choose: Callable[..., Any]) -> Evaluate:
    def evaluate(signature: Signature, rows: Rows) -> Any:
        return choose(_present(rows), key=order_key, default=None)

    return evaluate


def _extreme_by(choose: Callable[..., Any]) -> Evaluate:
    """The first argument of the row with the extreme second argument.

    Ties are broken by the extreme first argument, so that order does not matter.
    """

    def evaluate(signature: Signature, rows: Rows) -> Any:
        candidates = [row for row in rows if row[1] is not None]
        best = choose(candidates, key=lambda r: (order_key(r[1]), order_key(r[0])), default=None)
        return None if best is None else best[0]

    return evaluate


def _decided_by(decisive: bool) -> Callable[[Signature, Rows], bool | None]:
    """BOOL_AND, which one FALSE decides, or BOOL_OR, which one TRUE decides."""

    def evaluate(signature: Signature, rows: Rows) -> bool | None:
        values = _present(rows)
        if not values:
            return None
        return decisive if decisive in values else not decisive

    return evaluate


# --- statistics -------------------------------------------------------------------------------


def _moment(spare: int, root: bool) -> Callable[[Signature, Rows], float | None]:
    """Variance or its root over n - spare rows; computed exactly, rounded once."""

    def evaluate(signature: Signature, rows: Rows) -> float | None:
        values = _present(rows)
        divisor = len(values) - spare
        if divisor < 1:
            return None
        if not all(map(math.isfinite, values)):
            return NAN
        variance = _float(_squared_deviations(values) / divisor)
        return math.sqrt(variance) if root else variance

    return evaluate


def _squared_deviations(values: Sequence[float]) -> Fraction:
    squares = sum((Fraction(value) ** 2 for value in values), Fraction(0))
    return squares - _fraction_sum(values) ** 2 / len(values)


def _quantile(signature: Signature, rows: Rows) -> float | None:
    """Interpolated between the two values nearest to the rank."""
    share = next((row[1] for row in rows if row[1] is not None), None)
    if share is None:
        return None
    if not 0 <= share <= 1:
        raise EvaluationError(f"a quantile must lie between 0 and 1, not at {share}")
    return _interpolated(_present(rows), share)


def _median(signature: Signature, rows: Rows) -> float | None:
    return _interpolated(_present(rows), 0.5)


def _interpolated(values: list[float], share: float) -> float | None:
    if not values:
        return None
    ordered = sorted(values, key=order_key)
    rank = (len(ordered) - 1) * share
    below, above = ordered[math.floor(rank)], ordered[math.ceil(rank)]
    if order_key(below) == order_key(above):
        return below
    weight = rank - math.floor(rank)
    result = below * (1 - weight) + above * weight
    return NAN if result != result else result


# --- ordered ----------------------------------------------------------------------------------


def _first(signature: Signature, rows: Rows) -> Any:
    return rows[0][0] if rows else None


def _last(signature: Signature, rows: Rows) -> Any:
    return rows[-1][0] if rows else None


def _array_agg_signature(given: Types) -> Signature:
    check_count("array_agg", given, 1, 1)
    return Signature(given, pa.list_(given[0]))


def _array_agg(signature: Signature, rows: Rows) -> tuple[Any, ...] | None:
    """NULLs are skipped, as in Spark; over no rows it is NULL, like other aggregates."""
    return tuple(_present(rows)) if rows else None


# --- the table --------------------------------------------------------------------------------


def _doubles(name: str) -> Resolve:
    return fixed(name, DOUBLE, [DOUBLE])


def _sums_doubles(result: pa.DataType, value: Argument) -> bool:
    return bool(result == DOUBLE)


def _has_share(result: pa.DataType, value: Argument, share: Argument) -> bool:
    constant = share.value
    return constant is None or (isinstance(constant, float) and 0 <= constant <= 1)


def _counting(name: str, signature: Resolve, evaluate: Evaluate) -> AggregateFunction:
    return AggregateFunction(name, signature, evaluate, empty=0, total=True, constant_state=True)


def _summing(name: str, signature: Resolve, evaluate: Evaluate) -> AggregateFunction:
    return AggregateFunction(name, signature, evaluate, total=_sums_doubles, constant_state=True)


def _spread(name: str, spare: int, root: bool) -> AggregateFunction:
    evaluate = _moment(spare, root)
    return AggregateFunction(name, _doubles(name), evaluate, total=True, constant_state=True)


def _choosing(
    name: str,
    evaluate: Evaluate,
    arguments: int = 1,
    ordered: bool = False,
    ignores_duplicates: bool = True,
) -> AggregateFunction:
    return AggregateFunction(
        *(name, _same_as_first(name, arguments), evaluate, ordered),
        total=True,
        constant_state=True,
        ignores_duplicates=ignores_duplicates,
        chooses=True,
    )


def _deciding(name: str, decisive: bool) -> AggregateFunction:
    return AggregateFunction(
        *(name, fixed(name, BOOLEAN, [BOOLEAN]), _decided_by(decisive)),
        total=True,
        constant_state=True,
        ignores_duplicates=True,
    )


_ALL = [
    _counting("count", _count_signature, _count),
    _counting("count_if", fixed("count_if", BIGINT, [BOOLEAN]), _count_if),
    _summing("sum", _summed("sum", 10, 0, BIGINT), _sum),
    _summing("avg", _summed("avg", 4, 4, DOUBLE), _avg),
    _choosing("min", _extreme(min)),
    _choosing("max", _extreme(max)),
    _choosing("min_by", _extreme_by(min), arguments=2),
    _choosing("max_by", _extreme_by(max), arguments=2),
    _deciding("bool_and", decisive=False),
    _deciding("bool_or", decisive=True),
    _spread("var_samp", 1, root=False),
    _spread("var_pop", 0, root=False),
    _spread("stddev_samp", 1, root=True),
    _spread("stddev_pop", 0, root=True),
    AggregateFunction("median", _doubles("median"), _median, total=True),
    AggregateFunction(
        "quantile", fixed("quantile", DOUBLE, [DOUBLE, DOUBLE]), _quantile, total=_has_share
    ),
    _choosing("first", _first, ordered=True),
    # DISTINCT keeps the first of equal rows, so it may change which row is the last.
    _choosing("last", _last, ordered=True, ignores_duplicates=False),
    AggregateFunction("array_agg", _array_agg_signature, _array_agg, ordered=True, total=True),
]

_FUNCTIONS = {function.name: function for function in _ALL}
