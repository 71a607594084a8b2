"""Estimates hold: of each kind of query one or two, over seeded streams, against what they do."""

from __future__ import annotations

import pytest
from benchmarks.estimates import QUERIES, Comparison, compare

CHOSEN = (
    "filter and",
    "window, changes",
    "rows, slide",
    "join u",
    "join rows, time",
    "semi join, count",
    "full join",
    "max by k",
    "sum by u",
    "count of regular rows",
    "count, slide",
    "distinct of join",
    "except all",
    "top",
    "join of aggregates",
    "count by count",
)


@pytest.fixture(scope="module")
def compared() -> dict[str, Comparison]:
    return {each.name: each for each in compare(16, CHOSEN)}


@pytest.mark.parametrize("name", CHOSEN)
def test_rates_and_rows_of_state(compared: dict[str, Comparison], name: str) -> None:
    each = compared[name]
    assert each.rate_error is None or each.rate_error < 0.1
    assert each.rows_error is None or each.rows_error < 0.15


def test_on_average(compared: dict[str, Comparison]) -> None:
    for kind, most in (("rate_error", 0.04), ("rows_error", 0.05), ("bytes_error", 0.3)):
        errors = [e for e in (getattr(each, kind) for each in compared.values()) if e is not None]
        assert sum(errors) / len(errors) < most


def test_there_are_enough_queries() -> None:
    assert len(QUERIES) >= 40
