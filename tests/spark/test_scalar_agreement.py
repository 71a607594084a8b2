"""Scalar expressions mean the same in the local engine, in the reference and in Spark's ANSI mode,
including which rows fail.

MILLSTREAM_EXAMPLES=100000 draws so many new expressions.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import scalar_judge
from scalar_grammar import expressions
from scalar_judge import Rows, judge, shrunk

from effort import WANTED, examples
from scalar_values import rows

pytestmark = pytest.mark.xdist_group("spark")

AT_ONCE = 300  # expressions over the same rows


def test_cases() -> None:
    """Expressions that were once computed differently, each shrunk from a random one."""
    lines = (Path(__file__).parent / "scalar_cases.txt").read_text().splitlines()
    texts = [line for line in lines if line and not line.startswith("#")]
    verdict = judge(texts, Rows.of(rows(random.Random(0), 150)))
    assert not verdict.differences, "\n".join(map(str, verdict.differences))
    assert verdict.refused == 0


def test_random_expressions() -> None:
    wanted = examples(400)
    first = random.randrange(10**9) if WANTED else 1
    for seed in range(first, first + -(-wanted // AT_ONCE)):
        drawn = random.Random(seed)
        table = Rows.of(rows(drawn, 24))
        trees = {tree.text: tree for tree in expressions(drawn, min(AT_ONCE, wanted))}
        verdict = judge(list(trees), table)
        found = [str(shrunk(trees[d.text], table)) for d in verdict.differences[:5]]
        before = (seed - first) * AT_ONCE
        assert not found, f"seed {seed}, after {before} expressions:\n" + "\n".join(found)


def test_a_difference_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """With another meaning of ABS in the reference, the judge complains of ABS alone."""
    honest = scalar_judge.by_reference

    def lying(expression, rows):  # type: ignore[no-untyped-def]
        values = honest(expression, rows)
        calls_abs = "function='abs'" in repr(expression)
        return [None] * len(values) if calls_abs else values

    monkeypatch.setattr(scalar_judge, "by_reference", lying)
    drawn = random.Random(3)
    table = Rows.of(rows(drawn, 24))
    tree = next(t for t in expressions(drawn, 5000) if "ABS(" in t.text and t.text.count("(") > 2)
    if judge([tree.text], table).differences:
        assert shrunk(tree, table).text.startswith("ABS(")
