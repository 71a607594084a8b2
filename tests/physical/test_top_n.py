"""Top-n keeps few rows of a stream in order, and gives what it gives of one in any order."""

from __future__ import annotations

from random import Random

import pytest

from millstream.logical.plan import Field, SortKey
from millstream.model import types
from millstream.model.elements import Element, normal_form
from millstream.model.time import INFINITY
from millstream.physical.operator import Pattern
from millstream.physical.operators import top_n
from millstream.physical.operators.top_n import TopN
from physical.feeding import given, random_elements, run

SCHEMA = (Field("k", types.STRING, "s"), Field("v", types.DOUBLE, "s"))
NAN = float("nan")
VALUES = (["a", "b", "c", None], [1.5, -2.0, 0.0, -0.0, NAN, 1e300, None, 7.0, 8.0])


def top(pattern: Pattern, limit: int, descending: bool, nulls_first: bool) -> TopN:
    source = given("s", SCHEMA, pattern)
    k, v = (field.column for field in SCHEMA)
    order = (SortKey(v, descending, nulls_first), SortKey(k, not descending, not nulls_first))
    return TopN(source, limit, order)


def told(elements: list[Element]) -> list[Element]:
    """In normal form; NaN is equal to itself, and 0.0 to -0.0."""
    rows = [tuple(str(value).replace("-0.0", "0.0") for value in e.row) for e in elements]
    return normal_form(
        Element(row, e.start, e.end, e.weight) for row, e in zip(rows, elements, strict=True)
    )


@pytest.mark.parametrize("pattern", [Pattern.WEAKEST, Pattern.MONOTONIC])
@pytest.mark.parametrize("seed", range(60))
def test_rows_that_are_left_out_are_never_on_top(
    pattern: Pattern, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(seed)
    monkeypatch.setattr(top_n, "_PART", chance.choice([3, 8, 1024]))
    elements = random_elements(chance, pattern, 120, VALUES)
    options = chance.choice([1, 2, 5]), chance.random() < 0.5, chance.random() < 0.5
    expected = run(top(Pattern.WEAK, *options), {"s": elements})
    found = run(top(pattern, *options), {"s": elements}, chance)
    assert told(found.elements) == told(expected.elements)


def test_a_row_that_comes_again_after_a_gap_is_not_taken_for_one_that_stays() -> None:
    """Its next element is known, but has not begun when rows come that it would outdo."""
    elements = [Element(("a", 9.0), start, end) for start, end in ((0, 4), (6, 10), (12, 20))]
    elements += [Element((k, v), 8, 18) for k, v in (("b", 1.0), ("c", 0.0), ("d", 2.0))]
    elements.sort(key=lambda element: element.start)
    options = 1, True, False
    expected = run(top(Pattern.WEAK, *options), {"s": elements})
    for seed in range(20):
        found = run(top(Pattern.WEAKEST, *options), {"s": elements}, Random(seed))
        assert told(found.elements) == told(expected.elements)


def test_of_many_rows_few_are_kept() -> None:
    chance = Random(1)
    elements = [Element(("a", chance.random()), t, INFINITY) for t in range(5000)]
    running = run(top(Pattern.MONOTONIC, 10, True, False), {"s": elements[:2000]})
    operator = running.graph.vertices[-1].operator
    before = operator.rows
    running.push("s", elements[2000:], 5000)
    assert operator.rows < before + 300
