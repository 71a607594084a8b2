"""The papers' plans run, and what was found is held against what the papers say."""

from __future__ import annotations

import pytest
from benchmarks.papers import intervals_or_signs, kraemer
from benchmarks.papers.who_wins import FIGURES, Claim, Figure, cost, verdict


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_the_plans_of_a_figure_run(figure: Figure) -> None:
    assert {name for claim in figure.claims for name in (claim.less, claim.more)} <= {*figure.plans}
    for plan in figure.plans.values():
        assert cost(plan, 100).state > 0


@pytest.mark.parametrize("query", kraemer.QUERIES)
def test_the_approaches_run(query: str) -> None:
    costs = intervals_or_signs.by_approach(kraemer.QUERIES[query], kraemer.streams(bids=600))
    assert list(costs) == ["TIA", "PNA", "hybrid"]


@pytest.mark.parametrize(
    ("less", "more", "found"),
    [
        ([1, 1], [2, 3], "agrees"),
        ([2, 3], [1, 1], "DIFFERS"),
        ([1, 2], [2, 1], "agrees at some windows"),
        ([1, 2], [1, 2.1], "no difference here"),
        ([0], [0], "no difference here"),
    ],
)
def test_verdicts(less: list[float], more: list[float], found: str) -> None:
    costs = [{"a": a, "b": b} for a, b in zip(less, more, strict=True)]
    assert verdict(Claim("a", "b"), costs) == found
