"""Random plans and random queries, cut into fragments, have the answer of the definition.

The usual run draws the same examples each time. MILLSTREAM_EXAMPLES=3000 draws so many new ones.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from fragments.fragment_agreement import check
from oracle.agreement import Bench
from oracle.judged_streams import JudgedStream
from oracle.query_generator import cases
from oracle.random_streams import Tape
from runtime.random_plans import case_of
from runtime.schedule_agreement import Expected, Trial, expected_of

SETTINGS = settings(max_examples=examples(60))


@SETTINGS
@given(st.binary(min_size=160, max_size=160), st.binary(min_size=300, max_size=300))
def test_random_plan_in_fragments(case: bytes, trial: bytes) -> None:
    check(Expected(*case_of(Tape(case))), Trial(Tape(trial)))


@SETTINGS
@given(cases(), st.binary(min_size=300, max_size=300))
def test_random_query_in_fragments(case: tuple[list[JudgedStream], str], trial: bytes) -> None:
    streams, text = case
    check(expected_of(Bench(streams), text), Trial(Tape(trial)))
