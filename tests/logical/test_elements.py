"""Elements and their normal form."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.model.elements import Element, Row, elements_of, normal_form, row_key
from millstream.model.time import INFINITY
from millstream.model.values import NAN
from papers.cases import snapshot

A: Row = ("a",)
B: Row = ("b",)


def shown(*elements: Element) -> list[str]:
    return list(map(str, normal_form(elements)))


def test_text_of_an_element() -> None:
    assert str(Element(("a", 1, None), -3, 8)) == "('a', 1, None) [-3, 8) 1"
    assert str(Element(A, 5, INFINITY, -2)) == "('a',) [5, ∞) -2"


def test_the_same_bag_cut_in_two_ways() -> None:
    one = [Element(A, 1, 5), Element(A, 3, 8)]
    other = [Element(A, 1, 8), Element(A, 3, 5)]
    assert normal_form(one) == normal_form(other)


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ([], []),
        ([Element(A, 1, 3), Element(A, 3, 5)], ["('a',) [1, 5) 1"]),
        ([Element(A, 1, 3), Element(A, 4, 5)], ["('a',) [1, 3) 1", "('a',) [4, 5) 1"]),
        ([Element(A, 1, 3, 2), Element(A, 3, 5)], ["('a',) [1, 3) 2", "('a',) [3, 5) 1"]),
        ([Element(A, 5, INFINITY), Element(A, 9, INFINITY, -1)], ["('a',) [5, 9) 1"]),
        ([Element(A, 1, 9), Element(A, 1, 9, -1)], []),
        ([Element(A, 1, 9, 0)], []),
        ([Element(A, 4, 4)], []),
        ([Element(A, 1, 4, -1)], ["('a',) [1, 4) -1"]),
    ],
    ids=[
        "nothing",
        "adjacent",
        "gap",
        "step",
        "closed",
        "cancelled",
        "weightless",
        "empty",
        "owed",
    ],
)
def test_normal_form(elements: list[Element], expected: list[str]) -> None:
    assert shown(*elements) == expected


def test_pieces_are_in_order_of_start_end_and_row() -> None:
    elements = [Element(B, 2, 3), Element(B, 1, 9), Element(A, 2, 3), Element(A, 1, 2)]
    assert shown(*elements) == [
        "('b',) [1, 2) 1",
        "('a',) [1, 3) 1",
        "('b',) [2, 3) 2",
        "('b',) [3, 9) 1",
    ]
    assert shown(Element(B, 1, 2), Element(A, 1, 2)) == ["('a',) [1, 2) 1", "('b',) [1, 2) 1"]


def test_rows_with_nan_are_equal() -> None:
    assert shown(Element((NAN,), 1, 3), Element((NAN,), 3, 4)) == ["(nan,) [1, 4) 1"]


def test_rows_of_different_kinds_of_values_have_an_order() -> None:
    rows = [(None, "b"), (2.5, "a"), (NAN, "a"), (-1.0, None), (None, "a")]
    assert sorted(rows, key=row_key)[:2] == [(None, "a"), (None, "b")]
    assert sorted(rows, key=row_key)[-1] == (NAN, "a")


def test_elements_of_snapshots() -> None:
    """Each holds until the next, the last one for ever."""
    snapshots = {3: Counter({A: 1}), 5: Counter({A: 1, B: 2}), 9: Counter({B: 2}), 12: Counter()}
    assert list(map(str, elements_of(snapshots))) == ["('a',) [3, 9) 1", "('b',) [5, 12) 2"]
    assert list(map(str, elements_of({3: Counter({A: 1})}))) == ["('a',) [3, ∞) 1"]
    assert elements_of({}) == []


BAGS = st.lists(
    st.builds(
        lambda row, start, length, weight: Element(row, start, start + length, weight),
        st.sampled_from([A, B]),
        st.integers(-5, 10),
        st.integers(0, 8),
        st.integers(-2, 3),
    ),
    max_size=8,
)


def _weights(elements: list[Element], instant: int) -> dict[object, int]:
    """Unlike a snapshot's, weights below zero count as well."""
    weights: dict[object, int] = {}
    for element in elements:
        if element.start <= instant < element.end:
            weights[element.row] = weights.get(element.row, 0) + element.weight
    return {row: weight for row, weight in weights.items() if weight}


@given(BAGS)
def test_the_normal_form_means_the_same(bag: list[Element]) -> None:
    for instant in range(-6, 20):
        assert _weights(normal_form(bag), instant) == _weights(bag, instant)


@given(BAGS)
def test_the_normal_form_is_its_own_normal_form(bag: list[Element]) -> None:
    once = normal_form(bag)
    assert normal_form(reversed(once)) == once


@given(BAGS)
def test_pieces_are_maximal(bag: list[Element]) -> None:
    """No two pieces of one row touch with the same weight, none overlap, none are empty."""
    pieces = normal_form(bag)
    for row in (A, B):
        own = [piece for piece in pieces if piece.row == row]
        assert all(piece.start < piece.end and piece.weight for piece in own)
        for first, second in pairwise(own):
            touching = first.end == second.start and first.weight == second.weight
            assert first.end <= second.start
            assert not touching


@given(BAGS)
def test_snapshots_and_back(bag: list[Element]) -> None:
    snapshots = {instant: snapshot(bag, instant) for instant in range(-6, 20)}
    again = elements_of(snapshots)
    assert {instant: snapshot(again, instant) for instant in snapshots} == snapshots
