"""Every table of the papers, on every engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.optimizer.choice import Approach
from millstream.optimizer.multi_way import multi_way
from papers.cases import Case, Engine, Query, read_cases, reference
from papers.local_engine import interval_elements, local

ENGINES: dict[str, Engine] = {
    "reference": reference,
    "local": local(Approach.HYBRID),
    "local, intervals": local(Approach.INTERVALS),
    "local, signed": local(Approach.SIGNED),
    "local, joins of many": local(Approach.HYBRID, multi_way),
}

FILES = sorted(Path(__file__).parent.glob("*/*.case"))
RUNS = [(case, query) for file in FILES for case in read_cases(file) for query in case.queries]


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
@pytest.mark.parametrize(
    ("case", "query"), RUNS, ids=[f"{case}, {query.language}" for case, query in RUNS]
)
def test_case(case: Case, query: Query, engine: Engine) -> None:
    case.check(engine, query)


EXACT = [(case, query) for case, query in RUNS if case.answer.as_elements]


@pytest.mark.parametrize(
    ("case", "query"), EXACT, ids=[f"{case}, {query.language}" for case, query in EXACT]
)
def test_elements(case: Case, query: Query) -> None:
    case.check_elements(interval_elements, query)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_case_has_a_name_of_its_own(file: Path) -> None:
    names = [case.name for case in read_cases(file)]
    assert len(names) == len(set(names))
