"""The flow on an edge of a plan: K's stream characteristics, and further facts about its rows.

K's triple (§22.2): `distance` d between the starts of successive rows, `length` l of their
validity, `granule` g of their starts and ends, all in chronons. K's assumptions apply here too:
rates are steady, and values are independent of time.

d counts inserted rows. An edge may carry more elements: one more for each row that is retracted (K
§25.5). `retracted` is the number of retractions per inserted row: none between operators that know
ends, one if all elements are signed, the share of early retractions in a hybrid plan (G5 §5.4).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from millstream.logical.plan import Schema
from millstream.optimizer.statistics import DISTINCT, width_of

INFINITE = math.inf
AGE, MOMENT = 1e30, 1e-9  # chronons
Key = tuple[str, str]  # qualifier and name of a column


@dataclass(frozen=True)
class ColumnFacts:
    """`distinct` values; a number or time lies between `low` and `high` if these are known;
    `same_as` is another column that always has the same value. With a `deviation`, values have a
    normal distribution around the middle; otherwise they are equally frequent."""

    distinct: float
    width: float = 8.0
    low: float | None = None
    high: float | None = None
    same_as: Key | None = None
    deviation: float | None = None


@dataclass(frozen=True)
class Clump:
    """Rows that start at the same instant because one row causes them all: `size` of them on
    average, with equal values in these columns. A `share` of all rows arrives this way."""

    share: float
    size: float
    columns: frozenset[Key]


@dataclass(frozen=True)
class Characteristics:
    """Besides d, l and g:

    - `fixed`: all rows have the same length of validity, so they expire in order of arrival.
    - `regular`: they arrive at equal intervals.
    - `paired`: a row expires exactly when another row with equal values in these columns arrives (K
      remark 22.1, and count windows); None if not.
    - `following`: the share of rows that begin where an equal one ends: pieces of one longer row.
    - `written`: the distance to the end in an element. That is its validity, unless it may be
      retracted earlier; INFINITE if each end is an element of its own.
    - `lead`: the distance to the start of an element when it is emitted.
    - `different`: the number of different rows at an instant, if that is known better than from the
      values of columns.
    - `clumps`: rows that arrive together.
    - `batches`: the number of batches per chronon.
    """

    distance: float
    length: float
    granule: float = 1.0
    columns: Mapping[Key, ColumnFacts] = field(default_factory=dict)
    retracted: float = 0.0
    fixed: bool = False
    regular: bool = False
    paired: frozenset[Key] | None = None
    following: float = 0.0
    written: float | None = None
    lead: float = 0.0
    different: float | None = None
    clumps: tuple[Clump, ...] = ()
    batches: float = 0.0

    @property
    def rate(self) -> float:
        """Inserted rows per chronon."""
        return 1 / self.distance

    @property
    def elements(self) -> float:
        """Elements on the edge per chronon."""
        return (1 + self.retracted) / self.distance

    @property
    def busy(self) -> float:
        """Batches with rows per chronon; rows that arrive together are in one."""
        return min(self.batches, self.steps() * (1 + self.retracted))

    @property
    def present(self) -> float:
        """The number of rows that are valid at an instant (K §22.4.3: l/d)."""
        return self.length / self.distance

    @property
    def ahead(self) -> float:
        """The number of known future starts and ends at an instant."""
        written = self.length if self.written is None else self.written
        ends = 0.0 if written == INFINITE else self.elements * (written + self.lead)
        return ends + self.elements * self.lead

    @property
    def variety(self) -> float:
        """The number of different rows at an instant."""
        by_values = occupied(self.distinct_rows(), self.present)
        return by_values if self.different is None else min(self.different, by_values)

    def steps(self, columns: Iterable[Key] = ()) -> float:
        """Arrivals per chronon, where rows of one instant with equal values in these columns count
        once, and rows that replace an equal one do not count."""
        own = frozenset(columns)
        spared = sum(c.share * (1 - 1 / c.size) for c in self.clumps if own <= c.columns)
        return self.rate * max((1 - spared) * (1 - self.following), 1e-9)

    @property
    def width(self) -> float:
        """Bytes per row."""
        return sum(column.width for column in self.columns.values())

    def column(self, key: Key) -> ColumnFacts:
        return self.columns.get(key) or ColumnFacts(DISTINCT)

    def distinct_rows(self) -> float:
        """The number of different rows in the long run: all combinations of values."""
        own = (c for c in self.columns.values() if c.same_as not in self.columns)
        return product(column.distinct for column in own)

    def with_rate(
        self, rate: float, length: float | None = None, **changes: object
    ) -> Characteristics:
        """The flow with a number of rows per chronon. It is never zero, to avoid division by
        zero."""
        length = max(self.length if length is None else length, MOMENT)
        rate = max(rate, 1 / AGE)
        return replace(self, distance=1 / rate, length=length, **changes)  # type: ignore[arg-type]

    def given_anew(
        self,
        rate: float,
        length: float | None = None,
        following: float = 0.0,
        **changes: object,
    ) -> Characteristics:
        """The same rows, arriving at random instants: neither at equal intervals, nor when another
        row expires."""
        return self.with_rate(
            rate, length, following=following, regular=False, paired=None, **changes
        )


def occupied(places: float, balls: float) -> float:
    """The expected number of occupied bins among n bins with b random balls (Cardenas):
    n(1 - e^(-b/n)), the limit of n(1 - (1 - 1/n)^b) for streams with random arrivals.

    >>> round(occupied(50, 1000), 1), round(occupied(1e9, 1000), 1), occupied(1e300, 1e-30)
    (50.0, 1000.0, 1e-30)
    """
    if places <= 0 or balls <= 0:
        return 0.0
    if balls < 1e-12 * places:
        return balls  # also if the share underflows
    return -places * math.expm1(-balls / places)


def product(values: Iterable[float]) -> float:
    return min(math.prod(values), 1e300)


def facts_of(schema: Schema, known: Mapping[Key, ColumnFacts]) -> dict[Key, ColumnFacts]:
    """The facts of the columns of a schema, defaults where nothing is known."""
    return {
        field.key: known.get(field.key) or ColumnFacts(DISTINCT, width_of(field.type))
        for field in schema
    }
