"""Random plans and queries have, after all rules, the answer and the errors of the definition.

The usual run draws the same examples each time. MILLSTREAM_EXAMPLES=3000 draws so many new ones.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from millstream.logical.plan import Join
from millstream.logical.reference import Reference
from millstream.logical.text import plan_text
from millstream.model.errors import QueryError
from millstream.optimizer.optimize import optimize
from oracle.agreement import Bench
from oracle.judged_streams import JudgedStream
from oracle.query_generator import cases
from oracle.random_streams import Tape
from runtime.random_plans import case_of
from runtime.schedule_agreement import Expected, expected_of

drawn = settings(max_examples=examples(200))


@drawn
@given(st.binary(min_size=160, max_size=160))
def test_random_plan(tape: bytes) -> None:
    check(Expected(*case_of(Tape(tape))))


@drawn
@given(cases())
def test_random_query(case: tuple[list[JudgedStream], str]) -> None:
    streams, text = case
    check(expected_of(Bench(streams), text))


def check(expected: Expected) -> None:
    """A plan that never settles may settle without the rows that it has no use for."""
    optimized = optimize(expected.plan)
    told = f"{plan_text(expected.plan)}\nbecame\n{plan_text(optimized)}"
    reference = Reference(optimized, expected.inputs)
    try:
        answer = reference.result()
    except QueryError:
        assert expected.answer is None, told
        return
    assert expected.answer is None or answer == expected.answer, told
    if expected.answer is not None:
        assert {*reference.errors} <= expected.possible_errors, told
        if not any(isinstance(node, Join) for node in expected.plan.walk()):
            assert {*reference.errors} >= expected.errors, told
    assert optimize(optimized) == optimized, told
