"""The streams that the judge and the system both see.

A stream here is an Arrow table and the names of its time columns, nothing more: the session gets
the table as a user would give it, the judge loads it into DuckDB.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa

import millstream as ms

EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)


@dataclass(frozen=True)
class JudgedStream:
    """One stream: `time` is the column that orders it, or the two columns between which each row
    is valid."""

    name: str
    table: pa.Table
    time: tuple[str, ...]

    @property
    def has_instants(self) -> bool:
        return len(self.time) == 1

    @property
    def columns(self) -> list[str]:
        return list(self.table.column_names)

    @cached_property
    def in_order(self) -> pa.Table:
        """The rows by time, those of one instant as they arrived."""
        starts = [instant(value) for value in self.table.column(self.time[0]).to_pylist()]
        order = sorted(range(len(starts)), key=lambda i: starts[i])
        return self.table.take(pa.array(order, pa.int64()))

    @cached_property
    def intervals(self) -> list[tuple[int, int | None]]:
        """When each row is valid, in order; the end is exclusive, None for ever."""
        starts = [instant(value) for value in self.in_order.column(self.time[0]).to_pylist()]
        if self.has_instants:
            return [(start, start + 1) for start in starts]
        ends = self.in_order.column(self.time[1]).to_pylist()
        return [
            (start, None if end is None else instant(end))
            for start, end in zip(starts, ends, strict=True)
        ]

    @property
    def starts(self) -> list[int]:
        return [start for start, _ in self.intervals]


def instant(value: Any) -> int:
    """A value of a time column as a count of chronons."""
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=None) - EPOCH) // MICROSECOND
    return int(value)


def session_of(
    streams: Iterable[JudgedStream], derived: Iterable[str] = (), engine: str = "local"
) -> ms.Session:
    """A session with the streams, and the derived streams that the statements create."""
    session = ms.Session(engine)
    for stream in streams:
        time = stream.time[0] if stream.has_instants else (stream.time[0], stream.time[1])
        session.stream(stream.name, stream.table, time=time)
    for statement in derived:
        session.sql(statement)
    return session


def stream_of(
    name: str, columns: dict[str, pa.DataType], rows: Sequence[Sequence[Any]], *time: str
) -> JudgedStream:
    arrays = [
        pa.array([row[index] for row in rows], type) for index, type in enumerate(columns.values())
    ]
    return JudgedStream(name, pa.table(arrays, names=list(columns)), time)


# --- the streams of the query texts ---------------------------------------------------------------

INT, TEXT, DOUBLE, BOOLEAN, DATE = pa.int64(), pa.string(), pa.float64(), pa.bool_(), pa.date32()
MONEY = pa.decimal128(8, 2)
NAN = float("nan")


def _date(text: str | None) -> datetime.date | None:
    return None if text is None else datetime.date.fromisoformat(text)


def _money(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


_BIDS = [
    # ts, item, bidder, price, fee, score, ok, day
    (-3, 1, "ann", 10, "0.50", 1.5, True, "2024-02-28"),
    (0, 2, "bob", 25, "1.25", -2.25, False, "2024-02-29"),
    (0, 2, "bob", 25, "1.25", -2.25, False, "2024-02-29"),
    (1, 1, "cid", 40, None, None, None, None),
    (1, 3, None, 7, "0.05", 0.0, True, "2024-12-31"),
    (2, None, "ann", 12, "2.00", 3.75, True, "2025-01-01"),
    (4, 2, "dan", None, "3.10", NAN, False, "2024-02-29"),
    (4, 2, "ann", 30, "3.10", 1e17, True, "2024-03-01"),
    (5, 3, "bob", -5, "-1.00", -1.0, None, "1999-07-04"),
    (5, 1, "bob", 55, "4.00", 2.5, True, "2024-03-01"),
    (5, 1, "bob", 55, "4.00", 2.5, True, "2024-03-01"),
    (7, 4, "Eve", 100, "9.99", -1e17, False, None),
    (12, 1, "ann", 60, "0.00", 0.5, True, "2024-05-05"),
    (13, 2, "cid", 33, "1.11", 4.0, None, "2024-05-06"),
    (13, 4, "dan", 101, "10.00", 8.125, False, "2024-05-06"),
    (14, None, None, None, None, None, None, None),
    (15, 3, "ann", 8, "0.07", 16.0, True, "2023-11-30"),
    (16, 1, "bob", 61, "6.10", -0.5, False, "2024-05-05"),
    (24, 5, "", 0, "0.00", 0.0, False, "1970-01-01"),
    (25, 2, "ann", 34, "-0.34", 3.0, True, "2000-02-29"),
    (25, 2, "cid", 35, "3.50", 3.0, True, "2000-02-29"),
    (26, 4, "bob%", 102, "10.20", 7.0, None, "2024-05-07"),
    (33, 1, "ann", 62, "6.20", 2.25, True, "2024-05-08"),
    (34, 3, "dan", 9, "0.09", -7.5, False, "2024-05-08"),
]

_ITEMS = [
    # tm, item, name, cost, rate
    (-1, 1, "lamp", 8, 0.5),
    (0, 2, "chair", 20, 1.0),
    (1, 3, "Desk", 6, None),
    (3, 4, "sofa", 90, 0.25),
    (3, 4, "sofa", 90, 0.25),
    (6, None, "ghost", None, 2.0),
    (6, 2, "stool", 22, 1.5),
    (9, 1, None, 9, 0.75),
    (13, 5, "rug", 0, -0.5),
    (13, 3, "desk", 5, 0.0),
    (21, 2, "chair", 21, 1.0),
    (22, 1, "lamp", 8, 0.5),
    (24, 4, "bed", 95, 3.5),
    (34, 3, "desk", 5, 0.0),
]

_PEOPLE = [
    # tp, age, bidder, city, since
    (-3, 30, "ann", "Ulm", "2020-01-31"),
    (0, 41, "bob", "Bonn", "2019-06-30"),
    (2, None, "cid", "Ulm", None),
    (5, 19, "dan", None, "2024-02-29"),
    (5, 30, "ann", "Ulm", "2020-01-31"),
    (8, 65, None, "Kiel", "1999-12-31"),
    (11, 42, "bob", "Bonn", "2019-06-30"),
    (11, 23, "Eve", "Jena", "2022-08-15"),
    (17, 31, "ann", "Kiel", "2020-01-31"),
    (19, -1, "", "", "1970-01-01"),
    (28, 20, "dan", "Ulm", "2024-02-29"),
    (29, 43, "bob", "Bonn", "2019-06-30"),
]

_RATES = [
    # lo, hi, item, pct, label
    (-2, 6, 1, 0.5, "old"),
    (0, 12, 2, 1.25, "old"),
    (0, 12, 2, 1.25, "old"),
    (3, 4, 3, None, "flash"),
    (6, 20, 1, 0.75, "new"),
    (12, None, 2, 2.0, "new"),
    (15, 30, 4, -1.0, None),
    (18, 19, None, 0.0, "flash"),
    (30, 31, 3, 4.0, "flash"),
]


def _bids(time: pa.DataType, moments: Sequence[Any], name: str) -> JudgedStream:
    columns = {
        "ts": time, "item": INT, "bidder": TEXT, "price": INT, "fee": MONEY, "score": DOUBLE,
        "ok": BOOLEAN, "day": DATE,
    }  # fmt: skip
    rows = [
        (moment, item, bidder, price, _money(fee), score, ok, _date(day))
        for moment, (_, item, bidder, price, fee, score, ok, day) in zip(
            moments, _BIDS, strict=True
        )
    ]
    return stream_of(name, columns, rows, "ts")


BID = _bids(INT, [row[0] for row in _BIDS], "Bid")
ITEM = stream_of(
    "Item", {"tm": INT, "item": INT, "name": TEXT, "cost": INT, "rate": DOUBLE}, _ITEMS, "tm"
)
PERSON = stream_of(
    "Person",
    {"tp": INT, "age": INT, "bidder": TEXT, "city": TEXT, "since": DATE},
    [(*row[:4], _date(row[4])) for row in _PEOPLE],
    "tp",
)
RATE = stream_of(
    "Rate", {"lo": INT, "hi": INT, "item": INT, "pct": DOUBLE, "label": TEXT}, _RATES, "lo", "hi"
)
# The bids again on a clock: one unit is half a minute, and some are a microsecond late.
_CLOCK = datetime.datetime(2024, 2, 28, 23, 50)
BID_T = _bids(
    pa.timestamp("us"),
    [
        _CLOCK + datetime.timedelta(seconds=30 * row[0], microseconds=number % 3 == 0)
        for number, row in enumerate(_BIDS)
    ],
    "BidT",
)

STREAMS = (BID, ITEM, PERSON, RATE, BID_T)

DERIVED = (
    # Rows that live one instant.
    "CREATE STREAM Cheap AS SELECT ts, item, bidder, price FROM Bid WHERE price < 50",
    "CREATE STREAM Entered AS SELECT ISTREAM(item, price) FROM Bid [ROWS 4]",
    # Rows that live as long as a window says.
    "CREATE STREAM Totals AS SELECT item, SUM(price) AS total, COUNT(*) AS n "
    "FROM Bid WINDOW(RANGE 10) GROUP BY item",
    "CREATE STREAM Recent AS SELECT ts, item, price FROM Bid WINDOW(RANGE 6) "
    "WHERE item IS NOT NULL",
    # Rows that change at multiples of 5 only.
    "CREATE STREAM Coarse AS SELECT item, COUNT(*) AS n FROM Bid WINDOW(RANGE 10) GRANULARITY(5) "
    "GROUP BY item",
    "CREATE STREAM Matched AS SELECT b.item, b.price, i.name FROM Bid WINDOW(RANGE 8) AS b "
    "JOIN Item WINDOW(RANGE 12) AS i ON b.item = i.item",
    "CREATE STREAM Best AS SELECT MAX(total) AS best FROM Totals",
)
