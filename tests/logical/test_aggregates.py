"""Aggregate functions on exact values, with the meaning of Spark's ANSI mode.

Sums and moments of doubles are rounded once, so their last digits may differ from Spark's, which
depend on the order of the rows; ties of MAX_BY and MIN_BY are settled by value, not by order.
"""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.logical.aggregates import lookup, names
from millstream.logical.functions import EvaluationError, SignatureError
from millstream.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    decimal_type,
)
from millstream.model.values import NAN, order_key

INF = math.inf
MONEY = decimal_type(10, 2)


def aggregate(name: str, types: list[pa.DataType], rows: list[tuple[Any, ...]]) -> Any:
    function = lookup(name)
    assert function is not None
    return function.evaluate(function.signature(tuple(types)), rows)


def column(*values: Any) -> list[tuple[Any, ...]]:
    return [(value,) for value in values]


ONE_ARGUMENT: list[tuple[str, pa.DataType, list[Any], Any]] = [
    ("count", INT, [1, None, 2], 2),
    ("count", INT, [], 0),
    ("count_if", BOOLEAN, [True, None, False], 1),
    ("sum", BIGINT, [1, 2, None], 3),
    ("sum", BIGINT, [], None),
    ("sum", BIGINT, [None], None),
    ("sum", DOUBLE, [0.1] * 10, 1.0),
    ("sum", DOUBLE, [INF, -INF], NAN),
    ("sum", DOUBLE, [INF, 1.0], INF),
    ("sum", DOUBLE, [1e308, 1e308], INF),
    ("sum", DOUBLE, [1e308, 1e308, -1e308], 1e308),
    ("sum", DOUBLE, [NAN, 1.0], NAN),
    ("sum", DOUBLE, [1e308, 1e308, INF], INF),
    ("sum", DOUBLE, [1e308, 1e308, -INF], -INF),
    ("sum", DOUBLE, [1e308, 1e308, NAN], NAN),
    ("sum", DOUBLE, [1e308, 1e308, INF, -INF], NAN),
    ("sum", MONEY, [Decimal("1.50"), Decimal("2.25")], Decimal("3.75")),
    ("sum", INTERVAL, [1, 2], 3),
    ("avg", INT, [1.0, 2.0, None], 1.5),
    ("avg", DOUBLE, [1e308, 1e308], 1e308),
    ("avg", DOUBLE, [INF, 1.0], INF),
    ("avg", DOUBLE, [1e308, 1e308, -INF], -INF),
    ("avg", DOUBLE, [1e308, 1e308, NAN], NAN),
    ("avg", MONEY, [Decimal("1.00"), Decimal("1.00"), Decimal("0.00")], Decimal("0.666667")),
    ("avg", INTERVAL, [1, 2], 2),
    ("avg", INTERVAL, [-1, -2], -2),
    ("min", DOUBLE, [NAN, 1.0], 1.0),
    ("max", DOUBLE, [NAN, 1.0], NAN),
    ("max", STRING, ["a", None, "b"], "b"),
    ("min", pa.list_(INT), [(1,), (0, 5)], (0, 5)),
    ("max", DATE, [None], None),
    ("bool_and", BOOLEAN, [True, None], True),
    ("bool_and", BOOLEAN, [True, False], False),
    ("bool_or", BOOLEAN, [None], None),
    ("bool_or", BOOLEAN, [False, True], True),
    ("var_samp", DOUBLE, [1.0], None),
    ("var_pop", DOUBLE, [1.0], 0.0),
    ("var_pop", DOUBLE, [INF], NAN),
    ("var_samp", DOUBLE, [1e15 + 1, 1e15 + 2, 1e15 + 3], 1.0),
    ("stddev_samp", DOUBLE, [1.0, 2.0, 4.0], math.sqrt(7 / 3)),
    ("stddev_pop", DOUBLE, [1.0, 3.0], 1.0),
    ("median", DOUBLE, [1.0, 10.0, None, 4.0, 2.0], 3.0),
    ("median", DOUBLE, [], None),
    ("median", DOUBLE, [INF, INF], INF),
    ("first", INT, [None, 2], None),
    ("last", INT, [None, 2], 2),
    ("array_agg", INT, [None, 2, 1], (2, 1)),
    ("array_agg", INT, [], None),
]


@pytest.mark.parametrize(("name", "type", "values", "expected"), ONE_ARGUMENT)
def test_value(name: str, type: pa.DataType, values: list[Any], expected: Any) -> None:
    got = aggregate(name, [type], column(*values))
    assert got is NAN if expected is NAN else got == expected


TWO_ARGUMENTS: list[tuple[str, list[tuple[Any, Any]], Any]] = [
    ("count", [(1, 2), (3, None)], 1),
    ("max_by", [(1, 2), (3, None), (5, 2), (9, 1)], 5),
    ("min_by", [(5, 2), (3, None), (1, 2)], 1),
    ("max_by", [(3, None)], None),
    ("max_by", [(None, 2), (1, 1)], None),
]


@pytest.mark.parametrize(("name", "rows", "expected"), TWO_ARGUMENTS)
def test_value_of_two_arguments(name: str, rows: list[tuple[Any, Any]], expected: Any) -> None:
    assert aggregate(name, [INT, INT], rows) == expected


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (0.3, 1.9), (0.5, 3.0), (1.0, 10.0)])
def test_quantile(share: float, expected: float) -> None:
    rows = [(value, share) for value in (1.0, 2.0, 4.0, 10.0)]
    assert aggregate("quantile", [DOUBLE, DOUBLE], rows) == pytest.approx(expected, rel=1e-15)


def test_count_of_all_rows() -> None:
    assert aggregate("count", [], [(), (), ()]) == 3


RESULT_TYPES = [
    ("sum", INT, BIGINT),
    ("sum", STRING, DOUBLE),
    ("sum", MONEY, decimal_type(20, 2)),
    ("sum", decimal_type(38, 2), decimal_type(38, 2)),
    ("avg", INT, DOUBLE),
    ("avg", MONEY, decimal_type(14, 6)),
    ("avg", decimal_type(38, 10), decimal_type(38, 14)),
    ("avg", INTERVAL, INTERVAL),
    ("max", DATE, DATE),
    ("median", MONEY, DOUBLE),
    ("array_agg", INT, pa.list_(INT)),
    ("count", STRING, BIGINT),
]


@pytest.mark.parametrize(("name", "type", "expected"), RESULT_TYPES)
def test_result_type(name: str, type: pa.DataType, expected: pa.DataType) -> None:
    function = lookup(name)
    assert function is not None
    assert function.signature((type,)).result == expected


def test_sum_that_overflows() -> None:
    with pytest.raises(EvaluationError, match="the sum 9223372036854775808 does not fit BIGINT"):
        aggregate("sum", [BIGINT], column(2**63 - 1, 1))


def test_quantile_outside_its_range() -> None:
    with pytest.raises(EvaluationError, match=r"lie between 0 and 1, not at 2\.0$"):
        aggregate("quantile", [DOUBLE, DOUBLE], [(1.0, 2.0)])


@pytest.mark.parametrize(
    ("name", "types", "message"),
    [
        ("sum", [DATE], 'argument 1 of "sum" must be a number or an interval, not DATE'),
        ("avg", [INT, INT], '"avg" takes 1 argument, not 2'),
        ("count_if", [INT], 'argument 1 of "count_if" must be BOOLEAN, not INT'),
    ],
)
def test_signature_error(name: str, types: list[pa.DataType], message: str) -> None:
    function = lookup(name)
    assert function is not None
    with pytest.raises(SignatureError) as raised:
        function.signature(tuple(types))
    assert str(raised.value) == message


@given(
    st.sampled_from(["sum", "avg", "min", "max", "var_samp", "stddev_pop", "median"]),
    st.lists(st.one_of(st.none(), st.floats()), max_size=8),
    st.randoms(use_true_random=False),
)
def test_order_of_rows_does_not_matter(
    name: str, values: list[float | None], shuffle: random.Random
) -> None:
    values = [NAN if value != value else value for value in values]
    shuffled = list(values)
    shuffle.shuffle(shuffled)
    one, other = (aggregate(name, [DOUBLE], column(*rows)) for rows in (values, shuffled))
    assert order_key(one) == order_key(other)


@pytest.mark.parametrize("name", names())
def test_empty_value(name: str) -> None:
    function = lookup(name)
    assert function is not None
    types = (BOOLEAN,) if "bool" in name or name == "count_if" else (DOUBLE,)
    if name in ("quantile", "max_by", "min_by"):
        types = (DOUBLE, DOUBLE)
    assert function.evaluate(function.signature(types), []) == function.empty
