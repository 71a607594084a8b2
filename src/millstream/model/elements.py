"""Rows, elements and their normal form.

A row is a tuple of plain values. An element is a row that is valid `weight` times in [start, end).
Two multisets of elements are equivalent if every row has the same weight at every instant; their
normal forms are then equal.

>>> for element in normal_form([Element(("a",), 1, 5), Element(("a",), 3, 8)]):
...     print(element)
('a',) [1, 3) 1
('a',) [3, 5) 2
('a',) [5, 8) 1
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from millstream.model.time import INFINITY
from millstream.model.values import order_key

Row: TypeAlias = tuple[object, ...]
Snapshot: TypeAlias = Counter[Row]


@dataclass(frozen=True)
class Element:
    """`number` is the arrival number of a table's row, the same for its insertion and its deletion.
    Without one, the element's position in its stream is its number."""

    row: Row
    start: int
    end: int
    weight: int = 1
    number: int | None = None

    def __str__(self) -> str:
        end = "∞" if self.end == INFINITY else str(self.end)
        return f"{self.row} [{self.start}, {end}) {self.weight}"


def normal_form(elements: Iterable[Element]) -> list[Element]:
    """Maximal pieces of constant, non-zero weight; ordered by start, then by row."""
    steps: dict[Row, Counter[int]] = defaultdict(Counter)
    for element in elements:
        steps[element.row][element.start] += element.weight
        steps[element.row][element.end] -= element.weight
    pieces = []
    for row, changes in steps.items():
        weight = 0
        instants = sorted(instant for instant, change in changes.items() if change)
        for start, end in pairwise(instants):
            weight += changes[start]
            if weight:
                pieces.append(Element(row, start, end, weight))
    return sorted(pieces, key=lambda e: (e.start, e.end, row_key(e.row)))


def elements_of(snapshots: Mapping[int, Snapshot]) -> list[Element]:
    """The normal form of snapshots that are valid until the next instant, the last without end."""
    instants = [*sorted(snapshots), INFINITY]
    return normal_form(
        Element(row, start, end, weight)
        for start, end in pairwise(instants)
        for row, weight in snapshots[start].items()
    )


def shown(row: Row) -> Row:
    """The representative of all equal rows: without negative zeros."""
    return tuple(0.0 if isinstance(value, float) and value == 0 else value for value in row)


def row_key(row: Row) -> list[object]:
    """The sort key of rows: their columns, from left to right."""
    return [order_key(value) for value in row]
