"""Every error in a statement has its place, its cause and a remedy."""

from __future__ import annotations

import pytest
from error_cases import Case, accept, message_of, read_cases

FILES = {"statements.txt": False, "views.txt": False, "warnings.txt": False, "strict.txt": True}

CASES = [pytest.param(file, case, id=case.title) for file in FILES for case in read_cases(file)]


@pytest.mark.parametrize(("file", "case"), CASES)
def test_message(file: str, case: Case, request: pytest.FixtureRequest) -> None:
    message = message_of(case, strict=FILES[file])
    if request.config.getoption("--accept", default=False):
        accept(file, case, message)
        return
    assert message == case.message


@pytest.mark.parametrize("file", FILES)
def test_titles_are_unique(file: str) -> None:
    titles = [case.title for case in read_cases(file)]
    assert sorted(titles) == sorted(set(titles))


@pytest.mark.parametrize(("file", "case"), CASES)
def test_style(file: str, case: Case) -> None:
    """Lower case, no full stop; help is there to be read as a sentence."""
    for line in case.message.splitlines():
        label, _, text = line.partition(": ")
        if label in ("error", "warning", "help"):
            assert not text.endswith(".")
    assert case.message.startswith(("error: ", "warning: "))
