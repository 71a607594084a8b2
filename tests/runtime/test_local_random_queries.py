"""Random queries over random streams have the answer of the definition under random schedules.

The usual run draws the same examples each time. MILLSTREAM_EXAMPLES=3000 draws so many new ones.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from oracle.agreement import Bench
from oracle.judged_streams import JudgedStream
from oracle.query_generator import cases
from oracle.random_streams import Tape
from runtime.schedule_agreement import Trial, expected_of


@settings(max_examples=examples(150))
@given(cases(), st.binary(min_size=200, max_size=200), st.binary(min_size=200, max_size=200))
def test_random_query_under_schedules(
    case: tuple[list[JudgedStream], str], one: bytes, other: bytes
) -> None:
    streams, text = case
    expected = expected_of(Bench(streams), text)
    expected.check(Trial(Tape(one)))
    expected.check(Trial(Tape(other)))
