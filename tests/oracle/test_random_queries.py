"""Random queries over random streams have the judge's answer, and can be printed and summed.

The usual run draws the same examples each time. MILLSTREAM_EXAMPLES=3000 draws so many new ones.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings

from oracle.agreement import Bench
from oracle.judged_streams import JudgedStream
from oracle.query_generator import cases

EXAMPLES = os.environ.get("MILLSTREAM_EXAMPLES")


@settings(
    max_examples=int(EXAMPLES or 300),
    derandomize=EXAMPLES is None,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
@given(cases())
def test_random_query(case: tuple[list[JudgedStream], str]) -> None:
    streams, text = case
    bench = Bench(streams)
    bench.check_definition(text)
    bench.check(text)
    bench.check_printing(text)
    bench.check_changes(text)
