"""The forms of sweep areas by name, and which one an input of a join gets.

The update pattern of the input decides: a ring where elements go in the order in which they come, a
calendar everywhere else. A choice may name another form, also one that was registered from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from millstream.model.errors import QueryError, one_of
from millstream.physical.joins.areas.area import Area, Probing
from millstream.physical.joins.areas.calendar import CalendarArea, Closing
from millstream.physical.joins.areas.ring import RingArea
from millstream.physical.operator import Pattern, PhysicalPlan

RING, CALENDAR = "ring", "calendar"


@dataclass(frozen=True)
class AreaChoice:
    """How the elements of an input are kept. `form` is the name of a form; without one it follows
    from the pattern of the input, or is a calendar also where a ring would do."""

    probing: Probing = Probing.HASH
    closing: Closing = Closing.KEYED
    lazy: int = 0
    partitions: int = 64
    calendar: bool = False
    form: str | None = None

    def form_for(self, pattern: Pattern) -> str:
        if self.form is not None:
            return self.form
        in_order = pattern in (Pattern.WEAKEST, Pattern.MONOTONIC)
        return RING if in_order and not self.calendar else CALENDAR

    def name(self, pattern: Pattern) -> str:
        """What `explain` shows."""
        form = self.form_for(pattern)
        if form == RING and pattern is Pattern.MONOTONIC:
            return "append-only"
        if form == CALENDAR and pattern is Pattern.STRICT:
            return f"{self.closing.value} calendar"
        return form

    def open(self, input: PhysicalPlan) -> Area:
        """An empty area for an input."""
        return _opener(self.form_for(input.pattern))(input.types, input.pattern, self)


OpenArea: TypeAlias = Callable[[Sequence[pa.DataType], Pattern, AreaChoice], Area]


def register_area(name: str, open: OpenArea) -> None:
    """Make a form of area known. `open` gets the types of the columns, the update pattern of the
    input, and the choice, and returns an empty area.

    Elements of a STRICT input may have a negative weight: such an area must accept them and return
    them from `times` with that weight, or cut short what they retract."""
    if name in _FORMS:
        raise ValueError(f'area "{name}" is registered already')
    _FORMS[name] = open


def area_forms() -> list[str]:
    """The names of all forms."""
    return list(_FORMS)


def _opener(name: str) -> OpenArea:
    if name not in _FORMS:
        raise QueryError(f'area "{name}" does not exist', help=one_of(name, area_forms(), "area"))
    return _FORMS[name]


def _ring(types: Sequence[pa.DataType], pattern: Pattern, choice: AreaChoice) -> Area:
    return RingArea(types, choice.probing, choice.lazy)


def _calendar(types: Sequence[pa.DataType], pattern: Pattern, choice: AreaChoice) -> Area:
    closing = choice.closing if pattern is Pattern.STRICT else None
    return CalendarArea(types, choice.probing, choice.lazy, closing, choice.partitions)


_FORMS: dict[str, OpenArea] = {RING: _ring, CALENDAR: _calendar}
