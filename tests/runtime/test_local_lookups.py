"""Rows of a stream that look up what another input holds at their instant: the answer is that of
the join, also where plans are cut into fragments."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from fragments.fragment_agreement import check
from oracle.query_texts import texts
from oracle.random_streams import Tape
from runtime.schedule_agreement import Expected, Trial
from runtime.schedule_checks import SESSIONS, check_under_schedules

TEXTS = list(texts(Path(__file__).parent / "queries" / "lookups.sql"))


@pytest.mark.parametrize("text", TEXTS, ids=TEXTS)
def test_lookup_under_schedules(text: str) -> None:
    check_under_schedules(text)


@pytest.mark.parametrize("text", TEXTS, ids=TEXTS)
@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
def test_lookup_in_fragments(text: str) -> None:
    random = Random(text)
    for session in SESSIONS:
        plan = session.sql(text).plan
        inputs = session._origins.inputs(plan)
        expected = Expected(plan, {name: records.elements() for name, records in inputs.items()})
        check(expected, Trial(Tape(random.randbytes(400))))


@pytest.mark.parametrize("text", TEXTS, ids=TEXTS)
@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
def test_it_is_a_lookup(text: str) -> None:
    plan = SESSIONS[0].sql(text).explain(physical=True).partition("\n\n")[2]
    assert "LookupJoin" in plan
