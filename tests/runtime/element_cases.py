"""Plans over hand-written elements, checked under several ways to feed them."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.logical.catalog import Catalog, Stream
from millstream.logical.plan import Field, Plan
from millstream.model.elements import Element
from millstream.model.time import RAW_TIME
from millstream.sql.plan_text import parse_plan
from oracle.random_streams import Tape
from runtime.random_plans import BIGINT
from runtime.schedule_agreement import Expected, Trial

FORMS = [bytes([approach, emit]) for approach in (0, 2, 3) for emit in (0, 1, 2)]
ROW_BY_ROW = bytes(8) + bytes([1, 0, 0, 0, 4])  # in order, with a restart before each


def plan_of(text: str) -> Plan:
    """S and R have rows that live one instant; I and J have rows that bring their interval."""
    catalog = Catalog()
    columns = (Field("k", BIGINT), Field("v", BIGINT))
    for name, time in (("S", ("t",)), ("R", ("t",)), ("I", ("a", "b")), ("J", ("a", "b"))):
        catalog.add_stream(Stream(name, columns, RAW_TIME, time, bounded=True))
    return parse_plan(text, catalog)


def check(text: str, **inputs: Sequence[Element]) -> Expected:
    """In every form, all at once and row by row with restarts."""
    expected = Expected(plan_of(text), inputs)
    for form in FORMS:
        expected.check(Trial(Tape(form)))
        expected.check(Trial(Tape(form + ROW_BY_ROW)))
    return expected


def at(instant: int, k: int | None, v: int | None = 1) -> Element:
    return Element((k, v), instant, instant + 1)
