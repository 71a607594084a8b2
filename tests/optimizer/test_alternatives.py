"""Every alternative on its own: which plans it gives, and of which plans it gives none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from millstream.logical.reference import Reference
from millstream.logical.text import plan_text
from millstream.optimizer.alternatives import ALTERNATIVES, alternatives
from optimizer.rule_cases import ALTERNATIVE_CASES, Case, check_same, plan_of, read_cases
from oracle.random_streams import Tape
from runtime.random_plans import case_of
from runtime.schedule_agreement import Expected

BY_NAME = {rule.__name__: rule for rule in ALTERNATIVES}
CASES = [case for file in sorted(ALTERNATIVE_CASES.glob("*.plan")) for case in read_cases(file)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_alternatives(case: Case) -> None:
    plan = plan_of(case.before)
    given = [other for _, other in alternatives(plan, (BY_NAME[case.rule],))]
    assert "\n----\n".join(map(plan_text, given)) == ("" if case.after == "none" else case.after)
    for other in given:
        check_same(plan, other)


def test_every_rule_has_cases() -> None:
    assert {case.rule for case in CASES} == {*BY_NAME}


@settings(max_examples=examples(100))
@given(st.binary(min_size=160, max_size=160))
def test_random_plans(tape: bytes) -> None:
    expected = Expected(*case_of(Tape(tape)))
    if expected.answer is None:
        return
    for rule, other in alternatives(expected.plan):
        reference = Reference(other, expected.inputs)
        assert expected.agrees(reference.result()), f"{rule}\n{plan_text(expected.plan)}"
        assert [f.key for f in other.schema] == [f.key for f in expected.plan.schema]
