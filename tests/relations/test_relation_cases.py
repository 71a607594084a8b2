"""What each kind of relation means, in every engine."""

from __future__ import annotations

import pytest
from relation_cases import ENGINES, Case, accept, cases

CASES = [pytest.param(case, id=str(case)) for case in cases()]


@pytest.mark.parametrize("case", CASES)
def test_case(case: Case, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--accept"):
        accept(case, case.given(**ENGINES["reference"]))
        return
    for engine, options in ENGINES.items():
        assert case.given(**options) == case.answer, engine


def test_titles_are_unique() -> None:
    titles = [(case.file, case.title) for case in cases()]
    assert len(set(titles)) == len(titles)
