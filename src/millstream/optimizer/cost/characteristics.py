"""What flows on an edge of a plan: K's stream characteristics, and what more is known of its rows.

K's triple (§22.2): `distance` d between the starts of successive rows, `length` l of their
validity, `granule` g of the time at which they come and go, all in chronons. K's assumptions hold
here too: rates are steady, and what a row says has nothing to do with when it comes.

d counts rows that come. An edge may carry more elements than that: one that takes a row back for
each that is retracted (K §25.5). `retracted` is how many of those there are for each row that
comes: none between operators that know ends, one where all is signed, the share of early
retractions in a hybrid plan (G5 §5.4).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from millstream.logical.plan import Schema
from millstream.optimizer.statistics import DISTINCT, width_of

INFINITE = math.inf
Key = tuple[str, str]  # qualifier and name of a column


@dataclass(frozen=True)
class ColumnFacts:
    """`distinct` values; a number or time lies between `low` and `high` where they are known."""

    distinct: float
    width: float = 8.0
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Characteristics:
    """`fixed`: all rows live equally long, so that they go in the order in which they come.
    `regular`: they come at equal distances. `paired`: one goes just when another comes (K remark
    22.1; windows over counts). `following` is the share of rows that begin where an
    equal one ends: pieces of a row that stays. `written` is how far ahead the end lies that an
    element comes with: its validity, unless it may be retracted before; INFINITE where each end is
    an element of its own."""

    distance: float
    length: float
    granule: float = 1.0
    columns: Mapping[Key, ColumnFacts] = field(default_factory=dict)
    retracted: float = 0.0
    fixed: bool = False
    regular: bool = False
    paired: bool = False
    following: float = 0.0
    written: float | None = None
    batches: float = 0.0  # a chronon

    @property
    def rate(self) -> float:
        """Rows that come, a chronon."""
        return 1 / self.distance

    @property
    def elements(self) -> float:
        """Elements on the edge, a chronon."""
        return (1 + self.retracted) / self.distance

    @property
    def present(self) -> float:
        """How many rows hold at an instant (K §22.4.3: l/d)."""
        return self.length / self.distance

    @property
    def ahead(self) -> float:
        """How many ends that elements came with lie ahead at an instant."""
        written = self.length if self.written is None else self.written
        return 0.0 if written == INFINITE else self.elements * written

    @property
    def width(self) -> float:
        """Bytes of a row."""
        return sum(column.width for column in self.columns.values())

    def column(self, key: Key) -> ColumnFacts:
        return self.columns.get(key) or ColumnFacts(DISTINCT)

    def distinct_rows(self) -> float:
        """How many different rows there are in the long run: any combination of values."""
        return product(column.distinct for column in self.columns.values())

    def with_rate(
        self, rate: float, length: float | None = None, **changes: object
    ) -> Characteristics:
        """So many rows a chronon; at least one in an age, so that nothing is divided by zero."""
        rate = max(rate, 1e-300)
        length = self.length if length is None else length
        return replace(self, distance=1 / rate, length=length, **changes)  # type: ignore[arg-type]


def product(values: Iterable[float]) -> float:
    return min(math.prod(values), 1e300)


def facts_of(schema: Schema, known: Mapping[Key, ColumnFacts]) -> dict[Key, ColumnFacts]:
    """The facts of the columns of a schema, defaults where nothing is known."""
    return {
        field.key: known.get(field.key) or ColumnFacts(DISTINCT, width_of(field.type))
        for field in schema
    }
