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
AGE, MOMENT = 1e30, 1e-9  # chronons
Key = tuple[str, str]  # qualifier and name of a column


@dataclass(frozen=True)
class ColumnFacts:
    """`distinct` values; a number or time lies between `low` and `high` where they are known;
    `same_as` is another column that always has the same value. With a `deviation`, values are
    those of a normal distribution about the middle; else they are equally frequent."""

    distinct: float
    width: float = 8.0
    low: float | None = None
    high: float | None = None
    same_as: Key | None = None
    deviation: float | None = None


@dataclass(frozen=True)
class Clump:
    """Rows that come at one instant because one row brings them all: `size` of them on average, in
    which these columns are the same. It is a `share` of all rows that come so."""

    share: float
    size: float
    columns: frozenset[Key]


@dataclass(frozen=True)
class Characteristics:
    """Beside d, l and g:

    - `fixed`: all rows live equally long, so that they go in the order in which they come.
    - `regular`: they come at equal distances.
    - `paired`: one goes just when another comes that agrees in these columns (K remark 22.1, and
      windows over counts); None if not.
    - `following`: the share of rows that begin where an equal one ends: pieces of one that stays.
    - `written`: how far ahead the end lies that an element comes with. That is its validity, unless
      it may be retracted before; INFINITE where each end is an element of its own.
    - `lead`: how far ahead its start lies when an element is given.
    - `different`: how many different rows there are at an instant, where that is known better than
      from the values of columns.
    - `clumps`: rows that come together.
    - `batches`: how many there are, a chronon.
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
        """Rows that come, a chronon."""
        return 1 / self.distance

    @property
    def elements(self) -> float:
        """Elements on the edge, a chronon."""
        return (1 + self.retracted) / self.distance

    @property
    def busy(self) -> float:
        """How many batches have rows, a chronon; rows that come together are in one."""
        return min(self.batches, self.steps() * (1 + self.retracted))

    @property
    def present(self) -> float:
        """How many rows hold at an instant (K §22.4.3: l/d)."""
        return self.length / self.distance

    @property
    def ahead(self) -> float:
        """How many starts and ends that elements came with lie ahead at an instant."""
        written = self.length if self.written is None else self.written
        ends = 0.0 if written == INFINITE else self.elements * (written + self.lead)
        return ends + self.elements * self.lead

    @property
    def variety(self) -> float:
        """How many different rows there are at an instant."""
        by_values = occupied(self.distinct_rows(), self.present)
        return by_values if self.different is None else min(self.different, by_values)

    def steps(self, columns: Iterable[Key] = ()) -> float:
        """How often rows come, a chronon, if those that come at one instant and agree in these
        columns count once, and those not that take the place of an equal one."""
        own = frozenset(columns)
        spared = sum(c.share * (1 - 1 / c.size) for c in self.clumps if own <= c.columns)
        return self.rate * max((1 - spared) * (1 - self.following), 1e-9)

    @property
    def width(self) -> float:
        """Bytes of a row."""
        return sum(column.width for column in self.columns.values())

    def column(self, key: Key) -> ColumnFacts:
        return self.columns.get(key) or ColumnFacts(DISTINCT)

    def distinct_rows(self) -> float:
        """How many different rows there are in the long run: any combination of values."""
        own = (c for c in self.columns.values() if c.same_as not in self.columns)
        return product(column.distinct for column in own)

    def with_rate(
        self, rate: float, length: float | None = None, **changes: object
    ) -> Characteristics:
        """So many rows a chronon; at least one in an age, which lives for a moment, so that nothing
        is divided by zero."""
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
        """The rows of these that come at instants of their own: at other distances, and not just
        when another goes."""
        return self.with_rate(
            rate, length, following=following, regular=False, paired=None, **changes
        )


def occupied(places: float, balls: float) -> float:
    """How many of so many places have a ball when balls fall by chance (Cardenas): n(1 - e^(-b/n)),
    the limit of n(1 - (1 - 1/n)^b) for streams whose rows come by chance.

    >>> round(occupied(50, 1000), 1), round(occupied(1e9, 1000), 1), occupied(1e300, 1e-30)
    (50.0, 1000.0, 1e-30)
    """
    if places <= 0 or balls <= 0:
        return 0.0
    if balls < 1e-12 * places:
        return balls  # also where the share is too small for a number
    return -places * math.expm1(-balls / places)


def product(values: Iterable[float]) -> float:
    return min(math.prod(values), 1e300)


def facts_of(schema: Schema, known: Mapping[Key, ColumnFacts]) -> dict[Key, ColumnFacts]:
    """The facts of the columns of a schema, defaults where nothing is known."""
    return {
        field.key: known.get(field.key) or ColumnFacts(DISTINCT, width_of(field.type))
        for field in schema
    }
