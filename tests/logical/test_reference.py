"""The reference: what the tables of the papers leave open, operator by operator.

Answers are written as elements in normal form, one line each: row, [start, end), weight.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from millstream.logical.catalog import Catalog, Stream
from millstream.logical.plan import Field, Plan
from millstream.logical.reference import Reference
from millstream.model.elements import Element
from millstream.model.errors import QueryError
from millstream.model.time import INFINITY, RAW_TIME
from millstream.sql.plan_text import parse_plan
from papers.cases import snapshot

COLUMNS = (Field("e", pa.string()), Field("n", pa.int32()))


def _catalog() -> Catalog:
    """S and R have rows that live one instant; I and J have rows that bring their interval."""
    catalog = Catalog()
    for name, time in (("S", ("t",)), ("R", ("t",)), ("I", ("a", "b")), ("J", ("a", "b"))):
        catalog.add_stream(Stream(name, COLUMNS, RAW_TIME, time, bounded=True))
    return catalog


CATALOG = _catalog()


def at(instant: int, e: str | None, n: int | None = 1, weight: int = 1) -> Element:
    return Element((e, n), instant, instant + 1, weight)


def during(start: int, end: int, e: str | None, n: int | None = 1, weight: int = 1) -> Element:
    return Element((e, n), start, end, weight)


def reference(plan: str, **inputs: list[Element]) -> Reference:
    names = [stream.name for stream in CATALOG.streams]
    return Reference(parse_plan(plan, CATALOG), {name: inputs.get(name, []) for name in names})


def result(plan: str, **inputs: list[Element]) -> list[str]:
    return list(map(str, reference(plan, **inputs).result()))


# --- joins ----------------------------------------------------------------------------------------


def join(kind: str, on: str = "I.e = J.e") -> str:
    condition = f" on={on}" if on else ""
    return f"Join kind={kind}{condition}\n  Source stream=I\n  Source stream=J"


LEFT = [during(1, 10, "a", 1), during(2, 4, "b", 2)]
RIGHT = [during(3, 6, "a", 5), during(5, 8, "a", 6), during(3, 9, "c", 7)]


def test_left_join_pads_while_there_is_no_partner() -> None:
    assert result(join("left"), I=LEFT, J=RIGHT) == [
        "('a', 1, None, None) [1, 3) 1",
        "('b', 2, None, None) [2, 4) 1",
        "('a', 1, 'a', 5) [3, 6) 1",
        "('a', 1, 'a', 6) [5, 8) 1",
        "('a', 1, None, None) [8, 10) 1",
    ]


def test_right_join_pads_while_there_is_no_partner() -> None:
    assert result(join("right"), I=LEFT, J=RIGHT) == [
        "('a', 1, 'a', 5) [3, 6) 1",
        "(None, None, 'c', 7) [3, 9) 1",
        "('a', 1, 'a', 6) [5, 8) 1",
    ]


def test_full_join_pads_both_sides() -> None:
    assert result(join("full"), I=LEFT, J=RIGHT) == [
        "('a', 1, None, None) [1, 3) 1",
        "('b', 2, None, None) [2, 4) 1",
        "('a', 1, 'a', 5) [3, 6) 1",
        "(None, None, 'c', 7) [3, 9) 1",
        "('a', 1, 'a', 6) [5, 8) 1",
        "('a', 1, None, None) [8, 10) 1",
    ]


def test_full_join_without_a_condition_pads_only_over_nothing() -> None:
    left, right = [during(1, 5, "a", 1)], [during(3, 8, "b", 2)]
    assert result(join("full", ""), I=left, J=right) == [
        "('a', 1, None, None) [1, 3) 1",
        "('a', 1, 'b', 2) [3, 5) 1",
        "(None, None, 'b', 2) [5, 8) 1",
    ]


def test_null_has_no_partner() -> None:
    nulls = [during(1, 3, None, 1)]
    assert result(join("inner"), I=nulls, J=nulls) == []
    assert result(join("semi"), I=nulls, J=nulls) == []
    assert result(join("anti"), I=nulls, J=nulls) == ["(None, 1) [1, 3) 1"]
    assert result(join("full"), I=nulls, J=nulls) == [
        "(None, None, None, 1) [1, 3) 1",
        "(None, 1, None, None) [1, 3) 1",
    ]


def test_multiplicities_of_joins() -> None:
    """An inner join multiplies; a semi-join and padding keep those of the left."""
    left = [during(1, 5, "a", 1, 2)]
    right = [during(3, 9, "a", 5, 3)]
    assert result(join("left"), I=left, J=right) == [
        "('a', 1, None, None) [1, 3) 2",
        "('a', 1, 'a', 5) [3, 5) 6",
    ]
    assert result(join("semi"), I=left, J=right) == ["('a', 1) [3, 5) 2"]
    assert result(join("anti"), I=left, J=right) == ["('a', 1) [1, 3) 2"]


def test_semi_and_anti_join_without_a_condition_ask_whether_there_is_anything() -> None:
    left, right = [during(1, 5, "a")], [during(3, 9, "z")]
    assert result(join("semi", ""), I=left, J=right) == ["('a', 1) [3, 5) 1"]
    assert result(join("anti", ""), I=left, J=right) == ["('a', 1) [1, 3) 1"]


# --- aggregates -----------------------------------------------------------------------------------


def test_a_group_that_is_empty_has_no_row() -> None:
    plan = "Aggregate by=[I.e] compute=[sum(I.n) AS total]\n  Source stream=I"
    rows = [during(1, 4, "a", 1), during(2, 6, "a", 2), during(8, 9, "a", 3), during(2, 3, None, 5)]
    assert result(plan, I=rows) == [
        "('a', 1) [1, 2) 1",
        "(None, 5) [2, 3) 1",
        "('a', 3) [2, 4) 1",
        "('a', 2) [4, 6) 1",
        "('a', 3) [8, 9) 1",
    ]


def test_without_keys_there_is_a_row_at_every_instant() -> None:
    plan = "Aggregate compute=[count(*) AS n, max(S.n) AS top]\n  Source stream=S"
    assert result(plan, S=[at(2, "a", 7, 3), at(5, "b", 8)]) == [
        "(3, 7) [2, 3) 1",
        "(0, None) [3, 5) 1",
        "(1, 8) [5, 6) 1",
        "(0, None) [6, ∞) 1",
    ]


# --- top n ----------------------------------------------------------------------------------------


def test_top_n_as_rows_come_and_go() -> None:
    plan = "TopN limit=2 order=[I.n DESC, I.e]\n  Source stream=I"
    rows = [during(1, 5, "a", 3), during(1, 9, "b", 3), during(1, 9, "c", 1), during(3, 4, "d", 4)]
    assert result(plan, I=rows) == [
        "('b', 3) [1, 3) 1",
        "('a', 3) [1, 5) 1",
        "('d', 4) [3, 4) 1",
        "('b', 3) [4, 9) 1",
        "('c', 1) [5, 9) 1",
    ]


def test_top_n_counts_a_row_as_often_as_it_occurs() -> None:
    plan = "TopN limit=2 order=[I.n]\n  Source stream=I"
    rows = [during(1, 5, "a", 1, 3), during(3, 9, "b", 2)]
    assert result(plan, I=rows) == ["('a', 1) [1, 5) 2", "('b', 2) [5, 9) 1"]


def test_top_n_of_every_group() -> None:
    plan = "TopN by=[I.e] limit=1 order=[I.n DESC]\n  Source stream=I"
    rows = [during(1, 9, "a", 1), during(2, 5, "a", 2), during(3, 4, "b", 0)]
    assert result(plan, I=rows) == [
        "('a', 1) [1, 2) 1",
        "('a', 2) [2, 5) 1",
        "('b', 0) [3, 4) 1",
        "('a', 1) [5, 9) 1",
    ]


@pytest.mark.parametrize(
    ("order", "first"),
    [
        ("I.n", "null"),
        ("I.n DESC", "large"),
        ("I.n NULLS LAST", "small"),
        ("I.n DESC NULLS FIRST", "null"),
    ],
)
def test_nulls_in_an_order(order: str, first: str) -> None:
    rows = [during(1, 2, "small", 1), during(1, 2, "null", None), during(1, 2, "large", 9)]
    (answer,) = reference(f"TopN limit=1 order=[{order}]\n  Source stream=I", I=rows).result()
    assert answer.row[0] == first


# --- windows over time ----------------------------------------------------------------------------


def window(properties: str, stream: str = "S") -> str:
    return f"{properties}\n  Source stream={stream}"


def test_time_window_slides_over_negative_times() -> None:
    """The window changes at …, -11, -1, 9, …: the last instants of its slides."""
    rows = [at(-11, "a"), at(-10, "b"), at(-3, "c"), at(0, "d")]
    assert result(window("TimeWindow range=10 slide=10"), S=rows) == [
        "('a', 1) [-11, -1) 1",
        "('b', 1) [-1, 9) 1",
        "('c', 1) [-1, 9) 1",
        "('d', 1) [9, 19) 1",
    ]


def test_time_window_shorter_than_its_slide() -> None:
    """Of every ten instants the last three."""
    rows = [at(6, "a"), at(7, "b"), at(9, "c"), at(10, "d"), at(17, "e")]
    assert result(window("TimeWindow range=3 slide=10"), S=rows) == [
        "('b', 1) [9, 19) 1",
        "('c', 1) [9, 19) 1",
        "('e', 1) [19, 29) 1",
    ]


def test_time_window_that_is_no_multiple_of_its_slide() -> None:
    """At 9, the rows of 2 to 9 (there is none before); at 14, those of 7 to 14; at 19, of 12 on."""
    rows = [at(1, "a"), at(2, "b"), at(7, "c"), at(11, "d")]
    assert result(window("TimeWindow range=8 slide=5"), S=rows) == [
        "('a', 1) [4, 9) 1",
        "('b', 1) [4, 14) 1",
        "('c', 1) [9, 19) 1",
        "('d', 1) [14, 19) 1",
    ]


def test_unbounded_window_reaches_back_to_the_beginning() -> None:
    rows = [at(-3, "a"), at(4, "b", weight=2)]
    assert result(window("TimeWindow range=UNBOUNDED"), S=rows) == [
        "('a', 1) [-3, ∞) 1",
        "('b', 1) [4, ∞) 2",
    ]


def test_unbounded_window_with_a_slide() -> None:
    rows = [at(-3, "a"), at(4, "b")]
    assert result(window("TimeWindow range=UNBOUNDED slide=10"), S=rows) == [
        "('a', 1) [-1, ∞) 1",
        "('b', 1) [9, ∞) 1",
    ]


# --- windows over rows ----------------------------------------------------------------------------

LETTERS = [at(i, letter, i) for i, letter in enumerate("abcdefg", 1)]


def test_count_window_shorter_than_its_slide() -> None:
    """K §17.1.2 with A > N: every third row, alone, until the third after it."""
    assert result(window("CountWindow rows=1 order=[S.n] slide=3"), S=LETTERS) == [
        "('c', 3) [3, 6) 1",
        "('f', 6) [6, ∞) 1",
    ]


def test_count_window_longer_than_its_slide() -> None:
    assert result(window("CountWindow rows=3 order=[S.n] slide=2"), S=LETTERS[:6]) == [
        "('a', 1) [2, 4) 1",
        "('b', 2) [2, 6) 1",
        "('c', 3) [4, 6) 1",
        "('d', 4) [4, ∞) 1",
        "('e', 5) [6, ∞) 1",
        "('f', 6) [6, ∞) 1",
    ]


def test_rows_of_one_instant_enter_a_count_window_in_its_order() -> None:
    rows = [at(1, "x", 3), at(1, "y", 2), at(1, "z", 1), at(4, "w", 0)]
    assert result(window("CountWindow rows=2 order=[S.n]"), S=rows) == [
        "('y', 2) [1, 4) 1",
        "('x', 3) [1, ∞) 1",
        "('w', 0) [4, ∞) 1",
    ]
    assert result(window("CountWindow rows=2 order=[S.n] slide=2"), S=rows) == [
        "('y', 2) [1, 4) 1",
        "('z', 1) [1, 4) 1",
        "('w', 0) [4, ∞) 1",
        "('x', 3) [4, ∞) 1",
    ]


def test_the_place_in_the_stream_is_a_hidden_column() -> None:
    """By time, then by arrival: what an order that is empty otherwise falls back to."""
    plan = """
Map columns=[S.e]
  CountWindow rows=2 order=[S.`$arrival`]
    Source stream=S arrival=yes"""
    rows = [at(1, "x", 3), at(1, "y", 2), at(1, "z", 1)]
    assert result(plan, S=rows) == ["('y',) [1, ∞) 1", "('z',) [1, ∞) 1"]


def test_a_row_of_weight_n_is_n_rows_of_a_count_window() -> None:
    rows = [at(1, "a", weight=3), at(2, "b")]
    assert result(window("CountWindow rows=2 order=[S.e]"), S=rows) == [
        "('a', 1) [1, 2) 2",
        "('a', 1) [2, ∞) 1",
        "('b', 1) [2, ∞) 1",
    ]


def test_partitioned_window_with_a_slide() -> None:
    """Every partition slides with its own second, fourth, … row; a third one waits."""
    rows = [at(1, "a", 1), at(2, "b", 2), at(3, "a", 3), at(4, "a", 4), at(5, "b", 5),
            at(6, "a", 6)]  # fmt: skip
    assert result(window("PartitionedWindow by=[S.e] rows=1 order=[S.n] slide=2"), S=rows) == [
        "('a', 3) [3, 6) 1",
        "('b', 5) [5, ∞) 1",
        "('a', 6) [6, ∞) 1",
    ]


def test_null_is_a_partition() -> None:
    rows = [at(1, None, 1), at(2, "a", 2), at(3, None, 3)]
    assert result(window("PartitionedWindow by=[S.e] rows=1 order=[S.n]"), S=rows) == [
        "(None, 1) [1, 3) 1",
        "('a', 2) [2, ∞) 1",
        "(None, 3) [3, ∞) 1",
    ]


# --- granularity ----------------------------------------------------------------------------------


def test_granularity_over_negative_times() -> None:
    """The grid continues below zero: …, -10, -5, 0, …"""
    rows = [
        during(-12, -9, "a"),
        during(-7, -3, "b"),
        during(-4, -1, "dropped"),
        during(-1, 1, "c"),
    ]
    assert result(window("Granularity granule=5", "I"), I=rows) == [
        "('a', 1) [-10, -5) 1",
        "('b', 1) [-5, 0) 1",
        "('c', 1) [0, 5) 1",
    ]


def test_window_over_granules() -> None:
    """A row of [0, 10) is there in the granules of 0 and of 5; the window has two granules."""
    plan = """
TimeWindow range=10 granule=5
  Granularity granule=5
    Source stream=I"""
    assert result(plan, I=[during(0, 10, "a")]) == [
        "('a', 1) [0, 5) 1",
        "('a', 1) [5, 10) 2",
        "('a', 1) [10, 15) 1",
    ]


def test_window_over_granules_with_a_slide() -> None:
    """Two granules of 5, moved every ten instants: at 5 those of 0 and 5, at 15 those of 10, 15."""
    plan = """
TimeWindow range=10 slide=10 granule=5
  Granularity granule=5
    Source stream=I"""
    assert result(plan, I=[during(0, 11, "a")]) == [
        "('a', 1) [5, 15) 2",
        "('a', 1) [15, 25) 1",
    ]


def test_count_window_over_granules() -> None:
    """The row of [0, 10) arrives with every granule, at 0 and at 5; b comes with that of 5."""
    plan = """
CountWindow rows=2 order=[I.e] granule=5
  Granularity granule=5
    Source stream=I"""
    assert result(plan, I=[during(0, 10, "a"), during(5, 6, "b")]) == [
        "('a', 1) [0, ∞) 1",
        "('b', 1) [5, ∞) 1",
    ]


def test_partitioned_window_over_granules() -> None:
    plan = """
PartitionedWindow by=[I.e] rows=2 order=[I.n] granule=5
  Granularity granule=5
    Source stream=I"""
    rows = [during(0, 10, "a", 1), during(10, 15, "a", 2), during(5, 6, "b", 3)]
    assert result(plan, I=rows) == [
        "('a', 1) [0, 5) 1",
        "('a', 1) [5, 10) 2",
        "('b', 3) [5, ∞) 1",
        "('a', 1) [10, ∞) 1",
        "('a', 2) [10, ∞) 1",
    ]


def test_granules_before_the_beginning_do_not_count() -> None:
    """Time begins at 3; the granule of 2 began before. The count is 1 in the granules of 4 and 6,
    and 0 from 8 on."""
    plan = """
TimeWindow range=4 granule=2
  Granularity granule=2
    Aggregate compute=[count(*) AS n]
      TimeWindow range=4
        Source stream=S"""
    assert result(plan, S=[at(3, "a")]) == [
        "(1,) [4, 6) 1",
        "(1,) [6, 8) 2",
        "(0,) [8, 10) 1",
        "(1,) [8, 10) 1",
        "(0,) [10, ∞) 2",
    ]


# --- streams of changes ---------------------------------------------------------------------------


def test_istream_and_dstream_count_copies() -> None:
    rows = [during(1, 5, "a"), during(3, 5, "a", weight=2), during(5, 7, "b")]
    assert result("Istream\n  Source stream=I", I=rows) == [
        "('a', 1) [1, 2) 1",
        "('a', 1) [3, 4) 2",
        "('b', 1) [5, 6) 1",
    ]
    assert result("Dstream\n  Source stream=I", I=rows) == [
        "('a', 1) [5, 6) 3",
        "('b', 1) [7, 8) 1",
    ]


def test_what_holds_on_is_neither_new_nor_gone() -> None:
    rows = [during(1, 4, "a"), during(4, 6, "a")]
    assert result("Istream\n  Source stream=I", I=rows) == ["('a', 1) [1, 2) 1"]
    assert result("Dstream\n  Source stream=I", I=rows) == ["('a', 1) [6, 7) 1"]


def test_rstream_has_the_snapshots_of_its_input() -> None:
    rows = [during(1, 4, "a"), during(2, 6, "b")]
    expected = ["('a', 1) [1, 4) 1", "('b', 1) [2, 6) 1"]
    assert result("Rstream\n  Source stream=I", I=rows) == expected
    assert result("Rstream granule=2\n  Source stream=I", I=rows) == expected


# --- the beginning --------------------------------------------------------------------------------

COUNT = "Aggregate compute=[count(*) AS n]\n  Source stream=S"


def test_an_answer_begins_with_its_first_input() -> None:
    count = reference(COUNT, S=[at(5, "a")], R=[at(1, "not read")])
    assert count.beginning == 5
    assert count.answer(4) == {}
    assert count.answer(5) == {(1,): 1}
    assert count.answer(6) == {(0,): 1}


def test_the_first_input_of_any_stream_counts() -> None:
    plan = """
Join kind=inner
  Aggregate compute=[count(*) AS n]
    Source stream=S
  Aggregate compute=[count(*) AS m]
    Source stream=R"""
    assert result(plan, S=[at(5, "a")], R=[at(3, "b")]) == [
        "(0, 1) [3, 4) 1",
        "(0, 0) [4, 5) 1",
        "(1, 0) [5, 6) 1",
        "(0, 0) [6, ∞) 1",
    ]


def test_over_no_input_time_never_begins() -> None:
    count = reference(COUNT)
    assert count.beginning == INFINITY
    assert count.result() == []
    assert count.answer(0) == {}


# --- errors of evaluation -------------------------------------------------------------------------

ZERO = [at(1, "a", 0), at(1, "b", 5), at(2, "a", 0)]
DIVIDED = {(("a", 0), "division by zero"): None}


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ("Filter where=10 / S.n > 1\n  Source stream=S", ["('b', 5) [1, 2) 1"]),
        ("Map columns=[10 / S.n AS x]\n  Source stream=S", ["(2.0,) [1, 2) 1"]),
        (
            "Aggregate by=[10 / S.n AS k] compute=[count(*) AS n]\n  Source stream=S",
            ["(2.0, 1) [1, 2) 1"],
        ),
        (
            "Aggregate by=[S.e] compute=[sum(10 / S.n) AS x]\n  Source stream=S",
            ["('b', 2.0) [1, 2) 1"],
        ),
        (
            "Aggregate compute=[count(*) FILTER (WHERE 10 / S.n > 1) AS n]\n  Source stream=S",
            ["(1,) [1, 2) 1", "(0,) [2, ∞) 1"],
        ),
    ],
    ids=["filter", "map", "key", "argument", "filter of an aggregate"],
)
def test_a_row_that_cannot_be_evaluated_is_left_out_and_noted_once(
    plan: str, expected: list[str]
) -> None:
    evaluated = reference(plan, S=ZERO)
    assert list(map(str, evaluated.result())) == expected
    assert evaluated.errors == DIVIDED


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("inner", ["('b', 5, 'c', 1) [1, 2) 1"]),
        ("left", ["('b', 5, 'c', 1) [1, 2) 1"]),
        ("semi", ["('b', 5) [1, 2) 1"]),
        ("anti", []),
    ],
)
def test_a_pair_that_cannot_be_evaluated_is_no_match_and_no_lack_of_one(
    kind: str, expected: list[str]
) -> None:
    plan = f"Join kind={kind} on=10 / S.n > R.n\n  Source stream=S\n  Source stream=R"
    evaluated = reference(plan, S=[at(1, "a", 0), at(1, "b", 5)], R=[at(1, "c", 1)])
    assert list(map(str, evaluated.result())) == expected
    assert evaluated.errors == {(("a", 0, "c", 1), "division by zero"): None}


def test_a_snapshot_notes_the_errors_that_it_met() -> None:
    evaluated = reference("Map columns=[10 / S.n AS x]\n  Source stream=S", S=ZERO)
    assert evaluated.errors == {}
    evaluated.answer(2)
    assert evaluated.errors == DIVIDED


# --- answers that never settle --------------------------------------------------------------------

FOREVER = [during(0, INFINITY, "a"), during(0, INFINITY, "b", 2)]
UNSETTLED = """\
error: the answer never settles: a window keeps moving over rows that are valid forever
help: ask for a snapshot at an instant, or bound the window below"""


@pytest.mark.parametrize(
    "properties",
    [
        "TimeWindow range=UNBOUNDED granule=5",
        "CountWindow rows=UNBOUNDED order=[I.n] granule=5",
        "PartitionedWindow by=[I.e] rows=UNBOUNDED order=[I.n] granule=5",
        "CountWindow rows=1 order=[I.n] slide=3 granule=5",
    ],
)
def test_a_window_that_never_settles(properties: str) -> None:
    """The first three grow for ever; the last shows a and b in turn: the third row, the sixth, …"""
    plan = f"{properties}\n  Granularity granule=5\n    Source stream=I"
    with pytest.raises(QueryError) as error:
        reference(plan, I=FOREVER).result()
    assert str(error.value) == UNSETTLED


def test_a_window_that_never_settles_directly_over_a_source() -> None:
    with pytest.raises(QueryError) as error:
        result("CountWindow rows=1 order=[I.n] slide=3\n  Source stream=I", I=FOREVER)
    assert str(error.value) == UNSETTLED


def test_a_window_that_never_settles_has_snapshots() -> None:
    plan = """
TimeWindow range=UNBOUNDED granule=5
  Granularity granule=5
    Source stream=I"""
    assert reference(plan, I=FOREVER).answer(14) == {("a", 1): 3, ("b", 2): 3}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (
            "TimeWindow range=10 granule=5",
            ["('a', 1) [0, 5) 1", "('b', 2) [0, 5) 1", "('a', 1) [5, ∞) 2", "('b', 2) [5, ∞) 2"],
        ),
        (
            "CountWindow rows=3 order=[I.n] granule=5",
            ["('b', 2) [0, 5) 1", "('a', 1) [0, ∞) 1", "('b', 2) [5, ∞) 2"],
        ),
        (
            "CountWindow rows=2 order=[I.n] slide=4 granule=5",
            ["('a', 1) [5, ∞) 1", "('b', 2) [5, ∞) 1"],
        ),
    ],
)
def test_a_window_over_rows_that_are_valid_for_ever_may_settle(
    properties: str, expected: list[str]
) -> None:
    plan = f"{properties}\n  Granularity granule=5\n    Source stream=I"
    assert result(plan, I=FOREVER) == expected


def test_a_count_window_over_a_count_window_settles() -> None:
    """The counts of the granules are 1, 0, 0, … The inner window has 1; 0, 1; 0, 0, 1; and from 8
    on only zeros. Each granule the outer one gets all of that again, smallest first."""
    plan = """
CountWindow rows=2 order=[n] granule=2
  Granularity granule=2
    CountWindow rows=3 order=[n] granule=2
      Granularity granule=2
        Aggregate compute=[count(*) AS n]
          Source stream=S"""
    assert result(plan, S=[at(2, "a")]) == [
        "(1,) [2, 8) 1",
        "(0,) [4, 8) 1",
        "(0,) [8, ∞) 2",
    ]


def test_a_count_window_over_an_aggregate_of_nothing() -> None:
    """S is empty, so its count is 0 from the beginning on; R has one row, at 3."""
    plan = """
Union
  CountWindow rows=2 order=[n] granule=5
    Granularity granule=5
      Aggregate compute=[count(*) AS n]
        Source stream=S
  Aggregate compute=[count(*) AS n]
    Source stream=R"""
    assert result(plan, R=[at(3, "a")]) == [
        "(1,) [3, 4) 1",
        "(0,) [4, 5) 1",
        "(0,) [5, 10) 2",
        "(0,) [10, ∞) 3",
    ]


# --- every instant --------------------------------------------------------------------------------


class InstantByInstant(Reference):
    """The definitions alone: nothing is assumed of where snapshots can change."""

    def _pieces(self, plan: Plan, first: int, last: int) -> Iterator[tuple[int, int]]:
        for instant in range(first, last + 1):
            yield instant, instant + 1


SIZES = ["range=5", "range=5 slide=3", "range=3 slide=5", "range=UNBOUNDED slide=4"]
ROWS = ["rows=2", "rows=2 slide=3", "rows=3 slide=2", "rows=UNBOUNDED slide=2"]
GRANULES = ["range=6", "range=9 slide=6", "range=3 slide=9", "range=UNBOUNDED"]
UNARY = [
    *(f"TimeWindow {size}" for size in SIZES),
    *(f"CountWindow {rows} order=[{{q}}n, {{q}}e]" for rows in ROWS),
    *(f"PartitionedWindow by=[{{q}}e] {rows} order=[{{q}}n]" for rows in ROWS),
    "Granularity granule=3",
    "Istream",
    "Dstream",
    "Distinct",
    "Filter where={q}n > 1",
    "TopN limit=2 order=[{q}n DESC, {q}e]",
]
OVER_GRANULES = [
    *(f"TimeWindow {size} granule=3" for size in GRANULES),
    *(f"CountWindow {rows} order=[{{q}}n, {{q}}e] granule=3" for rows in ROWS),
    *(f"PartitionedWindow by=[{{q}}e] {rows} order=[{{q}}n] granule=3" for rows in ROWS),
]
BINARY = ["Union", "Difference", "MaxUnion", "StrictDifference", "Intersection", "Join kind=anti"]


RIGHT_HAND = [
    "TimeWindow range=3\n  Source stream=R",
    "Source stream=J",
    "Map columns=['x' AS R.e, CAST(c AS INT) AS R.n]\n"
    "  Aggregate compute=[count(*) AS c]\n"
    "    Source stream=R",
]


def _below(*texts: str) -> str:
    """A plan of which each text is one level below the one before."""
    lines = [line for i, text in enumerate(texts) for line in _indented(text, i)]
    return "\n".join(lines)


def _indented(text: str, level: int) -> list[str]:
    return ["  " * level + line for line in text.split("\n")]


@st.composite
def plans(draw: st.DrawFn) -> str:
    stream = draw(st.sampled_from("SI"))
    qualifier, plan = f"{stream}.", f"Source stream={stream}"
    for _ in range(draw(st.integers(1, 3))):
        match draw(st.sampled_from(["unary", "unary", "granules", "groups", "scalar", "binary"])):
            case "unary":
                plan = _below(draw(st.sampled_from(UNARY)).format(q=qualifier), plan)
            case "granules":
                operator = draw(st.sampled_from(OVER_GRANULES)).format(q=qualifier)
                plan = _below(operator, "Granularity granule=3", plan)
            case "groups":
                counted = f"Aggregate by=[{qualifier}e AS e] compute=[count(*) AS c]"
                plan = _below("Map columns=[e, CAST(c AS INT) AS n]", counted, plan)
                qualifier = ""
            case "scalar":
                added = f"Aggregate compute=[sum({qualifier}n) AS c]"
                plan = _below("Map columns=['x' AS e, CAST(c AS INT) AS n]", added, plan)
                qualifier = ""
            case "binary":
                right = draw(st.sampled_from(RIGHT_HAND))
                both = [*_indented(plan, 1), *_indented(right, 1)]
                plan = "\n".join([draw(st.sampled_from(BINARY)), *both])
    return plan


@st.composite
def elements(draw: st.DrawFn) -> Element:
    start, length = draw(st.integers(-7, 8)), draw(st.sampled_from([1, 3, 9, None]))
    row = draw(st.sampled_from("ab")), draw(st.integers(1, 3))
    end = INFINITY if length is None else start + length
    return Element(row, start, end, draw(st.sampled_from([1, 1, 2])))


def _instants(bag: list[Element]) -> list[Element]:
    return [Element(e.row, e.start, e.start + 1, e.weight) for e in bag]


def _ordered(bag: list[Element]) -> list[Element]:
    return sorted(bag, key=lambda element: element.start)


@given(
    plans(),
    st.lists(elements(), max_size=5).map(_instants).map(_ordered),
    st.lists(elements(), max_size=3).map(_instants).map(_ordered),
    st.lists(elements(), max_size=3).map(_ordered),
    st.lists(elements(), max_size=2).map(_ordered),
)
def test_the_result_has_every_snapshot(
    plan: str, s: list[Element], r: list[Element], i: list[Element], j: list[Element]
) -> None:
    fast = reference(plan, S=s, R=r, I=i, J=j)
    try:
        answer = fast.result()
    except QueryError:
        assume(False)
    slow = InstantByInstant(fast.plan, fast.inputs)
    for instant in range(min(slow.beginning, 30), 30):
        assert snapshot(answer, instant) == slow.snapshot(slow.plan, instant)
