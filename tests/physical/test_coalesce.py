"""Coalesce and Cut: other elements, the same meaning; K's tables of them."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from random import Random

import pytest

from millstream.logical.plan import Field
from millstream.model import types
from millstream.model.elements import Element, normal_form
from millstream.model.time import INFINITY
from millstream.physical.operator import Pattern, PhysicalPlan
from millstream.physical.operators.coalesce import Coalesce
from millstream.physical.operators.cut import Cut
from physical.feeding import Inputs, Run, given, random_elements, run

SCHEMA = (Field("e", types.STRING), Field("n", types.BIGINT))
KNOWN = [Pattern.WEAKEST, Pattern.WEAK, Pattern.MONOTONIC]


def source(pattern: Pattern = Pattern.WEAK) -> PhysicalPlan:
    return given("S", SCHEMA, pattern)


def stream(text: str) -> Inputs:
    """`c [1, 8), a [5, 11)` in order of start."""
    elements = []
    for part in text.split("), "):
        name, _, times = part.removesuffix(")").partition(" [")
        start, end = times.split(", ")
        elements.append(Element((name, 0), int(start), INFINITY if end == "∞" else int(end)))
    return {"S": elements}


def shown(running: Run) -> str:
    ordered = sorted(running.elements, key=lambda e: (e.start, str(e.row), e.end))
    ends = ["∞" if e.end == INFINITY else e.end for e in ordered]
    return ", ".join(f"{e.row[0]} [{e.start}, {end})" for e, end in zip(ordered, ends, strict=True))


S1 = stream("c [1, 8), a [5, 11), d [6, 14), a [9, 10), b [12, 17)")
S2 = stream("b [1, 7), d [3, 9), a [4, 5), b [7, 15), e [10, 18)")


# --- K's tables -----------------------------------------------------------------------------------


def test_split_into_chronons() -> None:
    """K table 11.14, the lines that it prints."""
    lines = shown(run(Cut(source(), 1), S1)).split("), ")
    assert lines[:9] == [
        "c [1, 2", "c [2, 3", "c [3, 4", "c [4, 5", "a [5, 6", "c [5, 6", "a [6, 7", "c [6, 7",
        "d [6, 7",
    ]  # fmt: skip
    assert lines[-1] == "b [16, 17)"
    assert len(lines) == 7 + 6 + 8 + 1 + 5


def test_coalesce() -> None:
    """K table 11.15."""
    coalesced = shown(run(Coalesce(source(), 20), S2))
    assert coalesced == "b [1, 15), d [3, 9), a [4, 5), e [10, 18)"


# --- the same meaning -----------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", KNOWN)
@pytest.mark.parametrize("seed", range(25))
def test_coalesce_means_the_same(pattern: Pattern, seed: int) -> None:
    chance = Random(f"coalesce {pattern} {seed}")
    longest = chance.choice([1, 2, 5, 12, 1000])
    inputs = {"S": random_elements(chance, pattern, 40, [("a", "b"), (1, None)])}
    running = run(Coalesce(source(pattern), longest), inputs, chance)
    assert normal_form(running.elements) == normal_form(inputs["S"])
    assert running.frontier == INFINITY
    as_they_came = {(e.row, e.start, e.end) for e in inputs["S"]}
    for e in running.elements:
        assert e.end - e.start <= longest or (e.row, e.start, e.end) in as_they_came


@pytest.mark.parametrize("pattern", KNOWN)
@pytest.mark.parametrize("seed", range(25))
def test_cut_means_the_same(pattern: Pattern, seed: int) -> None:
    chance = Random(f"cut {pattern} {seed}")
    length = chance.choice([1, 2, 5, 12, 1000])
    inputs = {"S": random_elements(chance, pattern, 25, [("a", "b"), (1, None)])}
    running = run(Cut(source(pattern), length), inputs, chance)
    assert normal_form(running.elements) == normal_form(inputs["S"])
    assert running.frontier == INFINITY
    assert all(e.end - e.start <= length for e in running.elements if e.end < INFINITY)


@pytest.mark.parametrize("seed", range(10))
def test_they_are_inverse_to_each_other(seed: int) -> None:
    """What has been cut is coalesced to maximal pieces, where nothing overlaps."""
    chance = Random(f"inverse {seed}")
    bounds = sorted(chance.sample(range(100), 12))
    inputs = {"S": [Element(("a", 1), a, b) for a, b in list(pairwise(bounds))[::2]]}
    plan = Coalesce(Cut(source(Pattern.WEAKEST), chance.choice([1, 3, 7])), 100)
    assert sorted(run(plan, inputs, chance).elements, key=lambda e: e.start) == inputs["S"]


# --- time -----------------------------------------------------------------------------------------


def test_pieces_come_when_they_begin() -> None:
    running = Run(Cut(source(), 5))
    running.push("S", [Element(("a", 1), 0, 12), Element(("b", 1), 3, INFINITY)], 2)
    assert shown(running) == "a [0, 5), b [3, 8)"
    running.push("S", [], 9)
    assert shown(running) == "a [0, 5), b [3, 8), a [5, 10), b [8, 13)"
    assert running.frontier == 9
    running.push("S", [], INFINITY)
    assert shown(running).endswith("a [10, 12), b [13, ∞)")


def test_a_piece_may_follow_until_the_frontier_has_passed() -> None:
    running = Run(Coalesce(source(Pattern.WEAKEST), 100))
    running.push("S", [Element(("a", 1), 0, 5), Element(("b", 1), 2, 7)], 2)
    assert (shown(running), running.frontier) == ("", 0)
    running.push("S", [], 5)
    assert shown(running) == "", "one that starts at 5 may come"
    running.push("S", [], 6)
    assert (shown(running), running.frontier) == ("a [0, 5)", 2)
    running.push("S", [Element(("b", 1), 7, 9)], 7)
    running.push("S", [], 10)
    assert (shown(running), running.frontier) == ("a [0, 5), b [2, 9)", 10)


def test_what_is_long_enough_does_not_wait() -> None:
    running = Run(Coalesce(source(Pattern.WEAKEST), 10))
    running.push("S", [Element(("a", 1), 0, 10), Element(("b", 1), 0, 50)], 0)
    assert (shown(running), running.frontier) == ("a [0, 10), b [0, 50)", 0)


def test_merged_pieces_are_no_longer_than_they_may_be() -> None:
    """K's listing would give [0, 16)."""
    inputs = stream("a [0, 8), a [8, 16), a [16, 18)")
    assert shown(run(Coalesce(source(), 10), inputs)) == "a [0, 8), a [8, 18)"


def test_rows_with_another_weight_do_not_merge() -> None:
    inputs = {"S": [Element(("a", 1), 0, 5, 2), Element(("a", 1), 5, 9)]}
    assert sorted(map(str, run(Coalesce(source(), 50), inputs).elements)) == [
        "('a', 1) [0, 5) 2",
        "('a', 1) [5, 9) 1",
    ]


@pytest.mark.parametrize("plan", [Coalesce(source(), 20), Cut(source(), 5)])
def test_state_is_what_lies_ahead(plan: PhysicalPlan) -> None:
    running = Run(plan)
    sizes = []
    for first in range(0, 5000, 10):
        new = [Element((str(t), t), t, t + 12) for t in range(first, first + 10)]
        running.push("S", new, first + 10)
        sizes.append(running.graph.root.operator.nbytes)
    assert running.graph.root.operator.rows < 60
    assert max(sizes) < 500_000
    by_row = defaultdict(list)
    for element in running.elements:
        by_row[element.row].append(element.start)
    assert len(by_row) > 4900


@pytest.mark.parametrize("make", [lambda input: Coalesce(input, 5), lambda input: Cut(input, 5)])
def test_retracted_input_is_settled_first(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(AssertionError, match="settle it first"):
        make(source(Pattern.STRICT))
