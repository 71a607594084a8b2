"""Random plans have the answer of the definition under random schedules.

The usual run draws the same examples each time. MILLSTREAM_EXAMPLES=3000 draws so many new ones.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local.random_plans import case_of
from local.schedule_agreement import Expected, Trial
from oracle.random_streams import Tape

EXAMPLES = os.environ.get("MILLSTREAM_EXAMPLES")


@settings(
    max_examples=int(EXAMPLES or 500),
    derandomize=EXAMPLES is None,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
@given(st.binary(min_size=160, max_size=160), st.binary(min_size=160, max_size=160))
def test_random_plan_under_schedules(case: bytes, trial: bytes) -> None:
    Expected(*case_of(Tape(case))).check(Trial(Tape(trial)))
