"""Random queries over random streams have the judge's answer, and can be printed and summed.

The usual run draws the same examples each time. MILLSTREAM_EXAMPLES=3000 draws so many new ones.
"""

from __future__ import annotations

from hypothesis import given, settings

from effort import examples
from oracle.agreement import Bench
from oracle.judged_streams import JudgedStream
from oracle.query_generator import cases


@settings(max_examples=examples(300))
@given(cases())
def test_random_query(case: tuple[list[JudgedStream], str]) -> None:
    streams, text = case
    bench = Bench(streams)
    bench.check_definition(text)
    bench.check(text)
    bench.check_printing(text)
    bench.check_changes(text)
