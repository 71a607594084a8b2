"""Relations on Spark: the papers' cases, and a few tables that change while a query runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_relations import check_as_it_changes
from relation_cases import Case, cases

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning"),
]

CASES = [pytest.param(case, id=case.title) for case in cases() if case.file.stem == "papers"]


@pytest.mark.parametrize("case", CASES)
def test_case_on_spark(case: Case) -> None:
    assert case.given(engine="spark") == case.answer


@pytest.mark.parametrize("shape", ["join", "full"])
def test_as_it_changes_on_spark(shape: str, tmp_path: Path) -> None:
    check_as_it_changes(shape, 3, tmp_path, engine="spark")
