"""The queries of which the gain is measured: what is chosen for them is estimated to cost less."""

from __future__ import annotations

import pytest
from benchmarks.gain import QUERIES, Problem, problems


@pytest.fixture(scope="module")
def all_problems() -> dict[str, Problem]:
    return {problem.name: problem for problem in problems()}


def test_there_are_enough() -> None:
    assert len(QUERIES) >= 40


@pytest.mark.parametrize("name", QUERIES)
def test_what_is_chosen_costs_no_more(name: str, all_problems: dict[str, Problem]) -> None:
    problem = all_problems[name]
    chosen, written = problem.cost(problem.chosen()), problem.cost(problem.written())
    assert chosen <= written * 1.0001
