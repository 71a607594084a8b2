"""Every rule on its own: what it makes of plans, and what it must leave alone."""

from __future__ import annotations

import pytest

from millstream.logical.plan import Filter, Plan
from millstream.logical.text import plan_text
from millstream.model.errors import QueryError
from millstream.optimizer.facts.sharing import Consumers
from millstream.optimizer.optimize import RULES, optimize, steps
from optimizer.rule_cases import FOLDER, Case, check_same, plan_of, read_cases

BY_NAME = {rule.__name__: rule for rule in RULES}
CASES = [case for file in sorted(FOLDER.glob("*.plan")) for case in read_cases(file)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rule(case: Case) -> None:
    before = plan_of(case.before)
    after = optimize(before, (BY_NAME[case.rule],))
    assert plan_text(after) == case.after
    check_same(before, after)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_rules_together_keep_the_answer(case: Case) -> None:
    plan = plan_of(case.before)
    optimized = optimize(plan)
    check_same(plan, optimized)
    assert optimize(optimized) == optimized


def test_every_rule_has_cases() -> None:
    assert {case.rule for case in CASES} == {*BY_NAME}


def test_rules_that_go_to_and_fro_are_told() -> None:
    plan = plan_of("Filter where=R.k = 1\n  Source stream=R")
    other = plan_of("Filter where=R.k = 2\n  Source stream=R")

    def there(plan: Plan, consumers: Consumers) -> Plan:
        return other if plan == FIRST else FIRST

    FIRST = plan
    with pytest.raises(QueryError) as error:
        list(steps(plan, (there,)))
    assert error.value.diagnostic.message == (
        "the rules of the optimizer do not settle; they alternate between\n"
        f"{plan_text(other)}\nand\n{plan_text(plan)}"
    )
    assert isinstance(plan, Filter)
