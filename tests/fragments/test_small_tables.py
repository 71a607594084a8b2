"""A small table goes to where the rows of streams are; a large one meets them by key."""

from __future__ import annotations

import pytest

import millstream as ms
from millstream.fragments.cutting import fragments_of
from millstream.fragments.edges import Exchange
from millstream.optimizer.choice import Choices, choose

JOINED = """SELECT a.k, a.g, name FROM A WINDOW(RANGE 5) a JOIN B WINDOW(RANGE 5) b ON a.k = b.k
            {join} JOIN T ON a.g = T.g"""


@pytest.fixture
def session() -> ms.Session:
    session = ms.Session("local")
    for name in "AB":
        session.feed(name, {"t": "BIGINT", "k": "BIGINT", "g": "BIGINT"}, time="t")
    session.table("T", schema={"g": "BIGINT", "name": "STRING"}, key="g")
    return session


def exchanges(session: ms.Session, text: str, *small: str) -> list[Exchange]:
    plan = choose(session.sql(text).optimized_plan, "ELEMENTS", Choices(small=frozenset(small)))
    return [e for f in fragments_of(plan) for e in f.exchanges if e.consumer is not None]


@pytest.mark.parametrize("join", ["", "LEFT"])
def test_a_small_table_goes_everywhere(session: ms.Session, join: str) -> None:
    found = exchanges(session, JOINED.format(join=join), "T")
    assert [e.everywhere for e in found].count(True) == 1
    assert len({e.consumer for e in found}) == 1  # the joined rows stay where they are


def test_a_large_table_meets_rows_by_key(session: ms.Session) -> None:
    found = exchanges(session, JOINED.format(join=""))
    assert not any(e.everywhere for e in found)
    assert len({e.consumer for e in found}) == 2


def test_rows_kept_without_a_partner_are_in_one_place(session: ms.Session) -> None:
    found = exchanges(session, JOINED.format(join="RIGHT"), "T")
    assert not any(e.everywhere for e in found)


def test_where_the_key_fits_anyway_nothing_goes_everywhere(session: ms.Session) -> None:
    text = JOINED.replace("a.g = T.g", "a.k = T.g").format(join="")
    assert not any(e.everywhere for e in exchanges(session, text, "T"))
