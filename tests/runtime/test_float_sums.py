"""Sums of doubles stay right after 1e17, NaN and infinities have come and gone."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import millstream as ms

VALUES = [0.1, 1e17, 0.2, -1e17, math.nan, 0.3, math.inf, 1e-3, -math.inf, 2.5, 1e308, 1e308, 7.0]
WINDOW = 4


@pytest.mark.parametrize("approach", ["hybrid", "intervals", "signed"])
@pytest.mark.parametrize("window", [f"RANGE {WINDOW}", f"ROWS {WINDOW}"])
def test_a_sum_is_that_of_the_values_in_the_window(window: str, approach: str) -> None:
    values = VALUES * 3 + [0.1] * WINDOW
    session = ms.Session(approach=approach)
    session.stream("S", [{"t": t, "x": x} for t, x in enumerate(values)], time="t")
    query = session.sql(f"SELECT SUM(x) AS s, AVG(x) AS a FROM S WINDOW({window})")
    for t in range(len(values)):
        inside = values[max(0, t - WINDOW + 1) : t + 1]
        (row,) = query.snapshot(t).to_pylist()
        assert same(row["s"], total(inside)), (t, inside)
        if math.isfinite(total(inside)):
            assert same(row["a"], total(inside) / len(inside)), (t, inside)


def total(values: list[float]) -> float:
    """By exact fractions, rounded once."""
    if any(math.isnan(x) for x in values):
        return math.nan
    signs = {x for x in values if math.isinf(x)}
    if signs:
        return math.nan if len(signs) == 2 else signs.pop()
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def same(a: float, b: float) -> bool:
    if math.isnan(b):
        return math.isnan(a)
    return a == b or math.isclose(a, b, rel_tol=1e-9)
