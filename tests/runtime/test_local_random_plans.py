"""Random plans have the answer of the definition under random schedules.

The usual run draws the same examples each time. MILLSTREAM_EXAMPLES=3000 draws so many new ones.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from oracle.random_streams import Tape
from runtime.random_plans import case_of
from runtime.schedule_agreement import Expected, Trial


@settings(max_examples=examples(500))
@given(st.binary(min_size=160, max_size=160), st.binary(min_size=160, max_size=160))
def test_random_plan_under_schedules(case: bytes, trial: bytes) -> None:
    Expected(*case_of(Tape(case))).check(Trial(Tape(trial)))
