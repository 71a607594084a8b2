"""Facts about plans: K table 12.1 and what the binder warns of."""

from __future__ import annotations

import pyarrow as pa
import pytest

from millstream.logical.analysis import (
    granule,
    growing,
    lives_one_instant,
    only_now,
    seeing_only_now,
)
from millstream.logical.catalog import Catalog, Stream
from millstream.logical.plan import Field, Plan
from millstream.model.time import RAW_TIME
from millstream.sql.plan_text import parse_plan

COLUMNS = (Field("e", pa.string()), Field("n", pa.int32()))


def _catalog() -> Catalog:
    """C is a chronon stream and bounded, L is one that is live; V has validity intervals."""
    catalog = Catalog()
    catalog.add_stream(Stream("C", COLUMNS, RAW_TIME, ("t",), bounded=True))
    catalog.add_stream(Stream("L", COLUMNS, RAW_TIME, ("t",), bounded=False))
    catalog.add_stream(Stream("V", COLUMNS, RAW_TIME, ("a", "b"), bounded=True))
    return catalog


CATALOG = _catalog()


def plan(text: str) -> Plan:
    return parse_plan(text, CATALOG)


def over(operator: str, *inputs: str) -> str:
    """The text of an operator over inputs, each the name of a stream or a text."""
    texts = [f"Source stream={i}" if i in ("C", "L", "V") else i for i in inputs]
    lines = [line for text in texts for line in text.split("\n")]
    return "\n".join([operator, *(f"  {line}" for line in lines)])


# --- rows that live one instant (K table 12.1, right column) --------------------------------------

TABLE_12_1: list[tuple[str, str, bool]] = [
    # filter: its input is
    ("filter", over("Filter where=C.n > 1", "C"), True),
    ("filter", over("Filter where=V.n > 1", "V"), False),
    # map: its input is
    ("map", over("Map columns=[C.n]", "C"), True),
    ("map", over("Map columns=[V.n]", "V"), False),
    # split, our RSTREAM: its output intervals have length 1, or its input is
    ("split", over("Rstream", "V"), True),
    ("split", over("Rstream granule=5", "C"), True),
    ("split", over("Rstream granule=5", "V"), False),
    # union: both inputs are
    ("union", over("Union", "C", "L"), True),
    ("union", over("Union", "C", "V"), False),
    ("union", over("Union", "V", "C"), False),
    # join: one input is
    ("join", over("Join kind=inner on=C.n = V.n", "C", "V"), True),
    ("join", over("Join kind=inner on=C.n = V.n", "V", "C"), True),
    ("join", over("Join kind=inner", over("TimeWindow range=5", "C"), "V"), False),
    # duplicate elimination: its input is
    ("distinct", over("Distinct", "C"), True),
    ("distinct", over("Distinct", "V"), False),
    # difference: its first input is
    ("difference", over("Difference", "C", "V"), True),
    ("difference", over("Difference", "V", "C"), False),
    # grouping with aggregation: its input is
    ("grouping", over("Aggregate by=[C.e] compute=[count(*) AS n]", "C"), True),
    ("grouping", over("Aggregate by=[V.e] compute=[count(*) AS n]", "V"), False),
    # partitioned window: never
    ("partitioned window", over("PartitionedWindow by=[C.e] rows=1 order=[C.n]", "C"), False),
    # coalesce: it is a way to cut a stream, and has no node here
    # time-based window: a now-window
    ("time-based window", over("TimeWindow range=1", "C"), True),
    ("time-based window", over("TimeWindow range=2", "C"), False),
    ("time-based window", over("TimeWindow range=1 slide=2", "C"), False),
    # count-based window: never
    ("count-based window", over("CountWindow rows=1 order=[C.n]", "C"), False),
    # scalar aggregation: never, where K has it if its input is; ours has a row at every instant
    ("scalar aggregation", over("Aggregate compute=[count(*) AS n]", "C"), False),
]

OURS: list[tuple[str, str, bool]] = [
    ("source", "Source stream=C", True),
    ("source with intervals", "Source stream=V", False),
    ("left join", over("Join kind=left on=C.n = V.n", "C", "V"), True),
    ("left join", over("Join kind=left on=C.n = V.n", "V", "C"), False),
    ("right join", over("Join kind=right on=C.n = V.n", "V", "C"), True),
    ("right join", over("Join kind=right on=C.n = V.n", "C", "V"), False),
    ("full join", over("Join kind=full on=C.n = L.n", "C", "L"), True),
    ("full join", over("Join kind=full on=C.n = V.n", "C", "V"), False),
    ("semi-join", over("Join kind=semi on=C.n = V.n", "C", "V"), True),
    ("semi-join", over("Join kind=semi on=C.n = V.n", "V", "C"), False),
    ("anti-join", over("Join kind=anti on=C.n = V.n", "C", "V"), True),
    ("anti-join", over("Join kind=anti on=C.n = V.n", "V", "C"), False),
    ("max-union", over("MaxUnion", "C", "L"), True),
    ("max-union", over("MaxUnion", "C", "V"), False),
    ("strict difference", over("StrictDifference", "C", "V"), True),
    ("strict difference", over("StrictDifference", "V", "C"), False),
    ("intersection", over("Intersection", "V", "C"), True),
    ("intersection", over("Intersection", "V", "V"), False),
    ("top n", over("TopN limit=1 order=[C.n]", "C"), True),
    ("top n", over("TopN limit=1 order=[V.n]", "V"), False),
    ("istream", over("Istream", "V"), True),
    ("dstream", over("Dstream", "V"), True),
    ("granularity", over("Granularity granule=5", "C"), False),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [case[1:] for case in TABLE_12_1 + OURS],
    ids=[case[0] for case in TABLE_12_1 + OURS],
)
def test_rows_that_live_one_instant(text: str, expected: bool) -> None:
    assert lives_one_instant(plan(text)) is expected


def test_the_closing_prices_live_one_instant() -> None:
    """K §12.3.2: the split over the ClosingPriceStream is not needed, "due to the now-window over
    the ClosedAuctionStream"."""
    windowed = over("TimeWindow range=100", "Source stream=C as=B")
    joined = over("Join kind=inner on=B.n = C.n", windowed, "C")
    assert lives_one_instant(plan(over("Aggregate by=[B.e] compute=[max(B.n) AS n]", joined)))


# --- granules -------------------------------------------------------------------------------------

G4 = over("Granularity granule=4", "C")
G6 = over("Granularity granule=6", "V")

GRANULES: list[tuple[str, str, int]] = [
    ("source", "Source stream=C", 1),
    ("granularity", G4, 4),
    ("coarser granularity", over("Granularity granule=8", G4), 8),
    ("filter", over("Filter where=C.n > 1", G4), 4),
    ("scalar aggregation", over("Aggregate compute=[count(*) AS n]", G4), 4),
    ("two granules", over("Union", G4, G6), 2),
    ("a granule and none", over("Union", G4, "V"), 1),
    ("window over granules", over("TimeWindow range=8 granule=4", G4), 4),
    ("window that slides", over("TimeWindow range=8 slide=4", "C"), 1),
    ("count window over granules", over("CountWindow rows=2 order=[C.n] granule=4", G4), 4),
    ("istream", over("Istream", G4), 1),
    ("dstream", over("Dstream", G4), 1),
    ("rstream", over("Rstream granule=4", G4), 4),
]


@pytest.mark.parametrize(
    ("text", "expected"), [case[1:] for case in GRANULES], ids=[case[0] for case in GRANULES]
)
def test_granule(text: str, expected: int) -> None:
    assert granule(plan(text)) == expected


# --- only the present -----------------------------------------------------------------------------

JOIN_OF_NOW = over("Join kind=inner on=C.n = L.n", "C", "L")
WINDOWED = over("TimeWindow range=5", "C")

NOW: list[tuple[str, str, bool]] = [
    ("source", "Source stream=C", True),
    ("source with intervals", "Source stream=V", False),
    ("join", JOIN_OF_NOW, True),
    ("one window", over("Join kind=inner on=C.n = L.n", WINDOWED, "L"), False),
    ("one with intervals", over("Join kind=inner on=C.n = V.n", "C", "V"), False),
    ("count window", over("CountWindow rows=1 order=[C.n]", "C"), False),
    ("partitioned window", over("PartitionedWindow by=[C.e] rows=1 order=[C.n]", "C"), False),
    ("granularity", over("Granularity granule=4", "C"), False),
    ("rstream", over("Rstream granule=4", "C"), False),
    ("istream", over("Istream", "C"), True),
]


@pytest.mark.parametrize(
    ("text", "expected"), [case[1:] for case in NOW], ids=[case[0] for case in NOW]
)
def test_only_now(text: str, expected: bool) -> None:
    assert only_now(plan(text)) is expected


def test_the_operators_that_see_only_now() -> None:
    distinct = plan(over("Distinct", JOIN_OF_NOW))
    assert list(seeing_only_now(distinct)) == [distinct, distinct.inputs[0]]
    counted = plan(over("Map columns=[n]", over("Aggregate compute=[count(*) AS n]", "C")))
    assert list(seeing_only_now(counted)) == [counted.inputs[0]]
    below = plan(over("Join kind=inner", over("Distinct", "Source stream=C as=D"), WINDOWED))
    assert list(seeing_only_now(below)) == [below.inputs[0]]


@pytest.mark.parametrize(
    "text",
    [over("Filter where=C.n > 1", "C"), over("Union", "C", "L"), over("Distinct", WINDOWED)],
    ids=["filter", "union", "window"],
)
def test_who_does_not_mind_to_see_only_now(text: str) -> None:
    assert list(seeing_only_now(plan(text))) == []


# --- what grows -----------------------------------------------------------------------------------

EVER = over("TimeWindow range=UNBOUNDED", "L")
BOUNDED = over("TimeWindow range=UNBOUNDED", "C")


def grown(text: str) -> list[str]:
    whole = plan(text)
    found = list(growing(whole))
    assert all(source.stream == "L" for _, _, source in found)
    assert all(any(node is operator for node in whole.walk()) for operator, _, _ in found)
    return [what for _, what, _ in found]


GROWING: list[tuple[str, str, list[str]]] = [
    ("join", over("Join kind=inner on=L.n = C.n", EVER, "C"), ["the inner join"]),
    ("semi-join", over("Join kind=semi on=C.n = L.n", "C", EVER), ["the semi join"]),
    ("left join", over("Join kind=left on=L.n = C.n", EVER, WINDOWED), ["the left join"]),
    ("distinct", over("Distinct", EVER), ["DISTINCT"]),
    ("difference", over("Difference", "L", EVER), ["EXCEPT"]),
    ("strict difference", over("StrictDifference", EVER, "L"), ["EXCEPT"]),
    ("intersection", over("Intersection", EVER, "L"), ["INTERSECT"]),
    ("max-union", over("MaxUnion", EVER, "L"), ["the max-union"]),
    ("both inputs", over("Difference", EVER, EVER), ["EXCEPT", "EXCEPT"]),
    (
        "aggregate of all values",
        over("Aggregate compute=[array_agg(L.n) AS x]", EVER),
        ["ARRAY_AGG"],
    ),
    (
        "distinct aggregate",
        over("Aggregate compute=[count(DISTINCT L.n) AS x]", EVER),
        ["COUNT(DISTINCT …)"],
    ),
    (
        "through filter, map and granularity",
        over(
            "Distinct",
            over(
                "Map columns=[L.n]",
                over("Filter where=L.n > 1", over("Granularity granule=5", EVER)),
            ),
        ),
        ["DISTINCT"],
    ),
    ("through a union", over("Distinct", over("Union", "C", EVER)), ["DISTINCT"]),
    (
        "through a join of two",
        over(
            "Distinct",
            over(
                "Join kind=inner", EVER, over("TimeWindow range=UNBOUNDED", "Source stream=L as=M")
            ),
        ),
        ["DISTINCT", "the inner join", "the inner join"],
    ),
    (
        "only the semi-join",
        over("Distinct", over("Join kind=semi on=C.n = L.n", "C", EVER)),
        ["the semi join"],
    ),
    (
        "only the left join",
        over("Distinct", over("Join kind=left on=C.n = L.n", WINDOWED, EVER)),
        ["the left join"],
    ),
    (
        "rows unbounded",
        over("Distinct", over("CountWindow rows=UNBOUNDED order=[L.n]", "L")),
        ["DISTINCT"],
    ),
]

CONSTANT: list[tuple[str, str]] = [
    ("bounded input", over("Distinct", BOUNDED)),
    ("bounded window", over("Distinct", over("TimeWindow range=5", "L"))),
    ("stateless", over("Filter where=L.n > 1", EVER)),
    ("union", over("Union", EVER, "C")),
    ("aggregate of constant size", over("Aggregate by=[L.e] compute=[max(L.n) AS n]", EVER)),
    ("above such an aggregate", over("Distinct", over("Aggregate compute=[sum(L.n) AS n]", EVER))),
    ("top n", over("TopN limit=3 order=[L.n]", EVER)),
    ("what comes in", over("Distinct", over("Istream", EVER))),
]


@pytest.mark.parametrize(
    ("text", "expected"), [case[1:] for case in GROWING], ids=[case[0] for case in GROWING]
)
def test_state_that_grows_for_ever(text: str, expected: list[str]) -> None:
    assert grown(text) == expected


@pytest.mark.parametrize("text", [case[1] for case in CONSTANT], ids=[case[0] for case in CONSTANT])
def test_state_that_does_not_grow(text: str) -> None:
    assert grown(text) == []
