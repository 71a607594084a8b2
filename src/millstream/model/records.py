"""The rows of a stream, checked and typed, each with the interval in which it is valid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millstream.model.arrays import gather
from millstream.model.elements import Element
from millstream.model.long_texts import cuts, is_wide, narrowed, offsets_of
from millstream.model.values import to_plain

Ints = NDArray[np.int64]


@dataclass
class Records:
    """Typed columns and the validity of each row; without weights, each row counts once. `number`
    is the arrival number of each row of a table: a deleted row has the number of the inserted row.
    Rows of a stream have none; their position is their number."""

    columns: list[pa.Array]
    start: Ints
    end: Ints
    weight: Ints | None = None
    number: Ints | None = None

    def __len__(self) -> int:
        return len(self.start)

    def take(self, index: Ints) -> Records:
        columns = [gather(column, index) for column in self.columns]
        weight = None if self.weight is None else self.weight[index]
        number = None if self.number is None else self.number[index]
        return Records(columns, self.start[index], self.end[index], weight, number)

    def slice(self, first: int, stop: int) -> Records:
        columns = [column.slice(first, stop - first) for column in self.columns]
        weight = None if self.weight is None else self.weight[first:stop]
        number = None if self.number is None else self.number[first:stop]
        return Records(columns, self.start[first:stop], self.end[first:stop], weight, number)

    def part(self, first: int, stop: int) -> Records:
        """Like `slice`, but with fewer rows if their strings are too long for one array."""
        texts = [column for column in self.columns if is_wide(column.type)]
        if not texts or first >= stop:
            return self.slice(first, stop)
        parts = (np.diff(offsets_of(text.slice(first, stop - first))) for text in texts)
        _, count = next(cuts(np.maximum.reduce(list(parts))))
        part = self.slice(first, first + count)
        part.columns = [narrowed(column) for column in part.columns]
        return part

    def parts(self, rows: int, size: int) -> Iterator[Records]:
        """The same rows in parts of limited rows and bytes; a row with more bytes is a part of its
        own. At least one part."""
        first = 0
        while True:
            part = self.part(first, min(first + rows, len(self)))
            while len(part) > 1 and part.nbytes > size:
                part = part.slice(0, len(part) // 2)
            yield part
            first += len(part)
            if first >= len(self):
                return

    @property
    def nbytes(self) -> int:
        return 16 * len(self) + sum(int(column.nbytes) for column in self.columns)

    def until(self, instant: int) -> Records:
        """Of records in time order, those that start at or before an instant."""
        return self.slice(0, int(np.searchsorted(self.start, instant, "right")))

    def in_order(self) -> Records:
        """Sorted by time; rows of one instant keep their order."""
        if len(self) < 2 or (self.start[1:] >= self.start[:-1]).all():
            return self
        return self.take(np.argsort(self.start, kind="stable"))

    def save(self) -> dict[str, Any]:
        """As plain values and arrays."""
        return {
            "columns": self.columns,
            "start": self.start,
            "end": self.end,
            "weight": self.weight,
            "number": self.number,
        }

    @staticmethod
    def restored(state: dict[str, Any]) -> Records:
        times = state["start"], state["end"], state["weight"]
        return Records(state["columns"], *times, state["number"])

    def elements(self) -> list[Element]:
        plain = [to_plain(column, column.type) for column in self.columns]
        rows: Iterator[tuple[Any, ...]] = (
            zip(*plain, strict=True) if plain else iter([()] * len(self))
        )
        weights = np.ones(len(self), np.int64) if self.weight is None else self.weight
        numbers = [None] * len(self) if self.number is None else self.number.tolist()
        times = zip(self.start.tolist(), self.end.tolist(), weights.tolist(), numbers, strict=True)
        return [Element(row, *when) for row, when in zip(rows, times, strict=True)]


@dataclass(frozen=True)
class BadRow:
    """A rejected row: its number, counted from 1, and the reason."""

    number: int
    message: str
    help: str | None = None


@dataclass(frozen=True)
class Checked:
    """Typed rows, and the rejected ones, by their number among both."""

    records: Records
    bad: Sequence[BadRow] = ()

    def __len__(self) -> int:
        return len(self.records) + len(self.bad)

    @property
    def nbytes(self) -> int:
        return self.records.nbytes + sum(len(row.message) for row in self.bad)
