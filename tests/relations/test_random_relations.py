"""Streams and tables at random: the local operators under any schedule, and plans in fragments,
give the answer of the definition; and that is, for tables that are not retroactive, what one gets
who looks the version of each row up by hand.

The usual run draws the same examples each time. MILLSTREAM_EXAMPLES=3000 draws so many new ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_relations import RelationCase

from effort import examples
from fragments.fragment_agreement import check
from millstream.model.elements import Element, normal_form
from oracle.random_streams import Tape
from runtime.schedule_agreement import Expected, Trial

SETTINGS = settings(max_examples=examples(60))
tapes = st.binary(min_size=160, max_size=160)

pytestmark = pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")


def expected_of(case: RelationCase) -> Expected:
    session = case.filled(engine="local")
    plan = session.sql(case.text).plan
    inputs = session._origins.inputs(plan)
    return Expected(plan, {name: records.elements() for name, records in inputs.items()})


@SETTINGS
@given(tapes, tapes)
def test_under_any_schedule(case: bytes, trial: bytes) -> None:
    drawn = RelationCase(Tape(case))
    try:
        expected_of(drawn).check(Trial(Tape(trial)))
    except Exception as error:
        raise AssertionError(f"{error}\n{drawn}") from error


@SETTINGS
@given(tapes, tapes)
def test_in_fragments(case: bytes, trial: bytes) -> None:
    drawn = RelationCase(Tape(case))
    try:
        check(expected_of(drawn), Trial(Tape(trial)))
    except Exception as error:
        raise AssertionError(f"{error}\n{drawn}") from error


# --- by hand --------------------------------------------------------------------------------------

Version = list[dict[str, Any]]
Row = dict[str, Any]


def _matches(row: Row, version: Version) -> Version:
    return [other for other in version if row["k"] is not None and other["k"] == row["k"]]


def _total(values: list[int]) -> int | None:
    return sum(values) if values else None


# What a row gives that meets a version, as tuples.
BY_HAND: dict[str, Callable[[Row, Version], list[tuple[Any, ...]]]] = {
    "join": lambda s, r: [(s["k"], s["x"], m["v"]) for m in _matches(s, r)],
    "left join": lambda s, r: [(s["k"], s["x"], m["v"]) for m in _matches(s, r) or [{"v": None}]],
    "semi join": lambda s, r: [(s["k"], s["x"])] if _matches(s, r) else [],
    "anti join": lambda s, r: [] if _matches(s, r) else [(s["k"], s["x"])],
    "exists": lambda s, r: [(s["k"], s["x"])] if _matches(s, r) else [],
    "not exists": lambda s, r: (
        [] if any(m["v"] > s["x"] for m in _matches(s, r)) else [(s["k"], s["x"])]
    ),
    "in": lambda s, r: [(s["k"], s["x"])] if _matches(s, r) else [],
    "not in": lambda s, r: (
        [(s["k"], s["x"])]
        if not r or (s["k"] is not None and all(m["k"] not in (None, s["k"]) for m in r))
        else []
    ),
    "scalar": lambda s, r: [(s["k"], max((m["v"] for m in r), default=None))],
    "correlated": lambda s, r: [(s["k"], _total([m["v"] for m in _matches(s, r)]))],
    "table first": lambda s, r: [(s["x"], m["v"]) for m in _matches(s, r)],
    "right join": lambda s, r: [(s["x"], m["v"]) for m in _matches(s, r) or [{"v": None}]],
    "smaller": lambda s, r: [(s["x"], m["v"]) for m in r if s["x"] < m["v"]],
    "product": lambda s, r: [(s["x"], m["v"]) for m in r],
    "filtered": lambda s, r: [
        (s["x"] + 1, m["v"]) for m in _matches(s, r) if s["x"] > 1 and m["v"] < 5
    ],
}


def version_at(case: RelationCase, instant: int) -> Version:
    """What the table holds once all changes up to an instant are made."""
    rows: Version = []
    for change in case.changes:
        if change.at is not None and change.at > instant:
            continue
        present = [row for row in rows if row["k"] == change.k]
        if change.kind == "delete":
            if present:
                rows.remove(present[0])
        else:
            if case.has_key and present:
                rows.remove(present[0])
            rows.append(change.row())
    return rows


@SETTINGS
@given(tapes)
def test_versions_are_those_looked_up_by_hand(tape: bytes) -> None:
    case = RelationCase(Tape(tape), kind="non retroactive", shape=Tape(tape[::-1]).pick(*BY_HAND))
    session = case.filled(engine="reference")
    elements = [
        Element(given, row["t"], row["t"] + case.width)
        for row in case.streams["S"]
        for given in BY_HAND[case.shape](row, version_at(case, row["t"]))
    ]
    answer = session.sql(case.text).run().to_pylist()
    ours = [Element(tuple(row.values())[:-2], row["valid_from"], row["valid_to"]) for row in answer]
    assert normal_form(ours) == normal_form(elements), case
