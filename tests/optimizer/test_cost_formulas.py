"""The papers' formulas on the papers' numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.optimizer.cost.aggregation import group_steps
from millstream.optimizer.cost.characteristics import occupied
from millstream.optimizer.cost.counting import level_changes, unequal
from millstream.optimizer.cost.joins import product_distance_length, side_rows
from millstream.optimizer.cost.model import held_keys
from millstream.optimizer.cost.multi_way import joint_rate_length
from millstream.optimizer.cost.pieces import split_distance_length
from millstream.optimizer.cost.pointwise import distinct_rate_length
from millstream.optimizer.cost.ranking import contenders, top_rate
from millstream.optimizer.cost.stateless import (
    filter_distance,
    granularity_distance_length,
    union_distance_length,
)
from millstream.optimizer.cost.windows import count_length
from millstream.papers.cost_formulas import (
    distinct_length,
    grouped_distance_length,
    partial_aggregates,
    scalar_distance,
)

positive = st.floats(0.01, 1e6)
shares = st.floats(1e-6, 1.0)


def test_scalar_aggregation_eq_22_6() -> None:
    assert scalar_distance(10, 1000, 1) == pytest.approx(5.514, abs=0.001)
    assert scalar_distance(10, 1000, 100) == pytest.approx(100.0, abs=0.001)
    assert scalar_distance(10, 5, 1) == 10


def test_partial_aggregates_eq_22_30() -> None:
    assert partial_aggregates(10, 1000, 1) == pytest.approx(95.2, abs=0.05)
    assert partial_aggregates(10, 1000, 100) == pytest.approx(10.0, abs=0.05)
    assert partial_aggregates(10, 5, 1) == 1


def test_join_eq_22_4_and_22_18() -> None:
    """K §24.3: 100 rows per second, values 0 to 49, windows of 10 seconds; in milliseconds."""
    assert side_rows(10, 10_000, 10) == 1000.5
    distance, length = product_distance_length(10, 10_000, 10, 10_000)
    assert 1000 / distance / 50 == pytest.approx(4000)
    assert length == 5000


def test_filter_union_split_granularity_windows() -> None:
    assert filter_distance(10, 0.25) == 40
    assert union_distance_length([(10, 100), (30, 20)]) == pytest.approx((7.5, 80))
    assert split_distance_length(10, 100, 20) == (2, 20)
    assert split_distance_length(10, 100, 200) == (10, 100)
    assert granularity_distance_length(10, 100, 50) == (10, 100)
    assert granularity_distance_length(10, 100, 400) == (40, 400)
    assert count_length(10, 100) == 1000
    assert count_length(10, 100, partitions=5) == 5000


def test_distinct_eq_22_5() -> None:
    assert distinct_length(10, 1000, 20) == 200
    assert distinct_length(10, 1000, 200) == 1000


@pytest.mark.parametrize("n", [1, 20])
def test_ours_for_many_rows_a_value_is_that_of_the_paper(n: int) -> None:
    rate, length = distinct_rate_length(10, 10_000, 0.001, n, fixed=True)
    assert (1 / rate, length) == pytest.approx((10, distinct_length(10, 10_000, n)), rel=0.001)
    moving, born = group_steps(10, 10_000, 1, n)
    paper, _ = grouped_distance_length(10, 10_000, 1, n)
    assert moving + born == pytest.approx(1 / paper, rel=0.02)


def test_ours_for_few_rows_a_value_is_that_of_the_paper() -> None:
    n = 1_000_000
    rate, length = distinct_rate_length(10, 1000, 1, n, fixed=True)
    assert (1 / rate, length) == pytest.approx((10, 1000), rel=0.001)
    moving, born = group_steps(10, 1000, 1, n)
    assert moving + born == pytest.approx(0.1, rel=0.001)


@given(positive, positive, positive, positive)
def test_a_join_of_many_inputs_is_one_of_two(d1: float, l1: float, d2: float, l2: float) -> None:
    rate, length = joint_rate_length([(d1, l1), (d2, l2)], 1.0)
    distance, other = product_distance_length(d1, l1, d2, l2)
    assert (rate, length) == pytest.approx((1 / distance, other), rel=1e-6)


@given(positive, positive, st.floats(1, 1e4), st.floats(1, 1e6))
def test_groups_give_at_most_two_rows_for_each_that_comes(
    d: float, life: float, g: float, n: float
) -> None:
    moving, born = group_steps(d, max(life, g), g, n)
    assert moving >= 0
    assert born >= 0
    assert moving + born <= 2 / d * (1 + 1e-6)
    assert moving + born <= n / g * (1 + 1e-6)


@given(positive, positive, st.integers(1, 10_000), st.booleans())
def test_distinct_has_no_more_rows_than_values_and_than_rows(
    d: float, life: float, n: int, fixed: bool
) -> None:
    rate, length = distinct_rate_length(d, life, 1, n, fixed)
    assert rate <= 1 / d * (1 + 1e-9)
    assert rate * length <= min(n, life / d) * (1 + 1e-9)


@given(st.floats(0, 1e7))
def test_the_chance_that_counts_differ_is_one(mean: float) -> None:
    assert 0 <= unequal(mean) <= 1
    assert unequal(mean) <= unequal(mean * 1.5 + 1e-9) + 1e-3


@given(st.floats(0, 50), st.floats(0, 50))
def test_levels_of_two_counts(left: float, right: float) -> None:
    mean, by_left, by_right = level_changes(lambda a, b: (a - b) * (a > b), left, right)
    assert -1e-9 <= mean <= left + 1e-6
    assert 0 <= by_right <= by_left <= 1 + 1e-9
    assert mean >= left - right - 1e-6


@given(st.floats(1e-9, 1e9), st.floats(1, 1e9))
def test_no_more_places_than_there_are(balls: float, places: float) -> None:
    assert 0 <= occupied(places, balls) <= min(balls, places) * (1 + 1e-9)
    live = occupied(places, balls)
    assert held_keys(live, places) >= min(live, places) * (1 - 1e-9)
    assert held_keys(live, places) <= places


@given(st.floats(1, 1e6), st.integers(1, 1000))
def test_top_rows_are_no_more_than_rows(rows: float, limit: int) -> None:
    assert top_rate(1.0, rows, limit) <= 1
    assert contenders(rows, limit) <= rows * (1 + 1e-9) or rows <= limit * math.e
