"""The statements of K: the plans they are translated to, and some of their answers.

Plans are compared whole with `plans/`; the comment in each says which sentence of K it follows.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from millstream.api.query import Query
from millstream.logical.text import plan_text
from millstream.sql.plan_text import parse_plan
from papers.nexmark_plans import (
    DEFINITIONS,
    DERIVED,
    HERE,
    STATEMENTS,
    Row,
    plan_of,
    rows,
    session_over,
)

QUERIES = [name for name in STATEMENTS if name not in DEFINITIONS]


def query(name: str, data: Mapping[str, Sequence[Row]] | None = None) -> Query:
    answer = session_over(data).sql(STATEMENTS[name])
    assert isinstance(answer, Query)
    return answer


# --- plans ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*DERIVED, *QUERIES])
def test_plan(name: str, matches_file: Callable[[Path, str], None]) -> None:
    matches_file(HERE / "plans" / f"{name}.plan", plan_text(plan_of(name)))


@pytest.mark.parametrize("name", [*DERIVED, *QUERIES])
def test_plan_text_is_read_back(name: str) -> None:
    plan = plan_of(name)
    assert parse_plan(plan_text(plan), session_over().catalog) == plan


def test_every_plan_belongs_to_a_statement() -> None:
    assert {file.stem for file in (HERE / "plans").iterdir()} == {*DERIVED, *QUERIES}


def test_the_script_runs_as_a_whole() -> None:
    """As printed, comments and all."""
    session = session_over()
    for name in reversed(DEFINITIONS):
        session.sql(f"DROP STREAM {name}")
    session.sql((HERE / "nexmark.sql").read_text(encoding="utf-8"))
    assert len(session.queries) == len(QUERIES)


def test_what_comes_in_to_an_unbounded_window_is_what_arrives_now() -> None:
    """K §15.1.1"""
    assert plan_of("cql_istream_unbounded") == plan_of("cql_rstream_now")


# --- answers --------------------------------------------------------------------------------------

DAY = datetime.datetime(2007, 1, 1)
CHRONON = datetime.timedelta(microseconds=1)
FOREVER = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)


def at(hours: int, minutes: int = 0, days: int = 0) -> datetime.datetime:
    return DAY + datetime.timedelta(days=days, hours=hours, minutes=minutes)


def test_currency_conversion() -> None:
    bids = [(7, 10.0, 1, at(9))]
    answer = query("currency_conversion", {"Bid": bids})
    assert rows(answer.run()) == [(7, 5.0, 1, at(9), at(9) + CHRONON)]


def test_selection() -> None:
    bids = [(1007, 10.0, 1, at(9)), (1008, 11.0, 1, at(9)), (1087, 12.0, 2, at(10))]
    answer = query("selection", {"Bid": bids}).run()
    assert [row[0] for row in rows(answer)] == [1007, 1087]


def test_short_auctions() -> None:
    """Item 1 closes after 5 hours less a microsecond, item 2 after 5 hours: a window of 5 hours is
    half open, so only the first is reported, at the instant at which it closes."""
    opened = [(1, 70, 1.0, at(9)), (2, 71, 2.0, at(9)), (3, 72, 3.0, at(12))]
    closed = [(1, 80, at(14) - CHRONON), (2, 81, at(14)), (4, 82, at(15))]
    answer = query("short_auctions", {"OpenAuction": opened, "ClosedAuction": closed})
    assert rows(answer.run()) == [(1, 70, 1.0, at(9), at(14) - CHRONON, at(14))]


def test_highest_bid() -> None:
    """Two bids of 12 are the highest while they are in the window, the last until 9:15; then 9 is,
    which has been in the window since 9:10."""
    bids = [(1, 10.0, 1, at(9)), (2, 12.0, 2, at(9, 4)), (3, 12.0, 3, at(9, 5)),
            (1, 9.0, 4, at(9, 10))]  # fmt: skip
    answer = query("highest_bid", {"Bid": bids})
    assert rows(answer.run()) == [
        (1, 10.0, at(9), at(9, 4)),
        (2, 12.0, at(9, 4), at(9, 14)),
        (3, 12.0, at(9, 5), at(9, 15)),
        (1, 9.0, at(9, 15), at(9, 20)),
    ]


def test_highest_bid_every_10_minutes() -> None:
    """The window of [9:00, 9:10) is there from its last microsecond on, for ten minutes."""
    bids = [(1, 10.0, 1, at(9)), (2, 12.0, 2, at(9, 4)), (3, 11.0, 3, at(9, 13))]
    answer = query("highest_bid_every_10_minutes", {"Bid": bids})
    assert rows(answer.run()) == [
        (2, 12.0, at(9, 10) - CHRONON, at(9, 20) - CHRONON),
        (3, 11.0, at(9, 20) - CHRONON, at(9, 30) - CHRONON),
    ]


def test_hot_item() -> None:
    """Bids for 1 in the past hour: 1 from 9:00, 2 from 9:20, 1 from 10:00, none from 10:20; for 2:
    1 from 9:10, 2 from 9:40, 1 from 10:10, none from 10:40. Who has as many as the other is hot."""
    bids = [(1, 1.0, 1, at(9)), (2, 1.0, 1, at(9, 10)), (1, 2.0, 2, at(9, 20)),
            (2, 2.0, 2, at(9, 40))]  # fmt: skip
    answer = query("hot_item", {"Bid": bids})
    assert rows(answer.run()) == [
        (1, at(9), at(10)),
        (2, at(9, 10), at(9, 20)),
        (2, at(9, 40), at(10, 40)),
        (1, at(10, 10), at(10, 20)),
    ]


OPENED = [(1, 70, 5.0, at(9)), (2, 70, 6.0, at(9)), (3, 71, 7.0, at(10))]
BIDS = [(1, 8.0, 1, at(10)), (1, 9.0, 2, at(11)), (3, 7.5, 1, at(12)), (1, 99.0, 3, at(16))]
CLOSED = [(1, 2, at(15)), (2, 0, at(16)), (3, 1, at(17))]
AUCTIONS: dict[str, Sequence[Row]] = {"OpenAuction": OPENED, "Bid": BIDS, "ClosedAuction": CLOSED}


def test_closing_price() -> None:
    """The highest bid before the close, else the price at which the auction opened."""
    answer = session_over(AUCTIONS).sql("SELECT * FROM ClosingPriceStream")
    assert rows(answer.run()) == [
        (1, 70, 9.0, at(15), at(15) + CHRONON),
        (2, 70, 6.0, at(16), at(16) + CHRONON),
        (3, 71, 7.5, at(17), at(17) + CHRONON),
    ]


def test_closing_price_of_an_auction_of_two_days() -> None:
    """A window of two days is half open: what closes two days after it opened has no price."""
    data: dict[str, Sequence[Row]] = {
        "OpenAuction": [(1, 70, 5.0, at(9))],
        "ClosedAuction": [(1, 2, at(9, days=2))],
    }
    answer = session_over(data).sql("SELECT * FROM ClosingPriceStream")
    assert rows(answer.run()) == []


def test_average_selling_price_by_seller() -> None:
    answer = query("average_selling_price", AUCTIONS)
    assert rows(answer.run()) == [
        (70, 9.0, at(15), at(16)),
        (70, 7.5, at(16), FOREVER),
        (71, 7.5, at(17), FOREVER),
    ]


def test_average_selling_price_over_the_10_last_items() -> None:
    """Items 1 to 11 of one seller sell for 1 to 11, an hour apart. After the tenth the average is
    5.5; the eleventh drives out the first: 6.5."""
    items = range(1, 12)
    opened = [(item, 70, float(item), at(item)) for item in items]
    closed = [(item, 0, at(item, 30)) for item in items]
    answer = query("average_selling_price", {"OpenAuction": opened, "ClosedAuction": closed})
    assert rows(answer.snapshot(at(10, 30))) == [(70, 5.5)]
    assert rows(answer.snapshot(at(11, 30) - CHRONON)) == [(70, 5.5)]
    assert rows(answer.snapshot(at(11, 30))) == [(70, 6.5)]


def test_cql_rule() -> None:
    bids = [(1, 10.0, 1, at(9)), (2, 12.0, 2, at(9)), (3, 13.0, 2, at(10)), (3, 13.0, 3, at(10))]
    first, second = (
        rows(query(name, {"Bid": bids}).run())
        for name in ("cql_istream_unbounded", "cql_rstream_now")
    )
    assert first == second
    assert first == [
        (2, 12.0, at(9), at(9) + CHRONON),
        (3, 13.0, at(10), at(10) + CHRONON),
        (3, 13.0, at(10), at(10) + CHRONON),
    ]


def test_monitor_new_users() -> None:
    """Ada opens two auctions at once within 12 hours: reported once. Bob waits 12 hours."""
    people = [(70, "Ada", at(8)), (71, "Bob", at(9))]
    opened = [
        (1, 70, 1.0, at(10)),
        (2, 70, 1.0, at(10)),
        (3, 71, 1.0, at(21)),
        (4, 72, 1.0, at(22)),
    ]
    answer = query("monitor_new_users", {"Person": people, "OpenAuction": opened})
    assert rows(answer.run()) == [(70, "Ada", at(10), at(10) + CHRONON)]


MINUTE = 60_000


def test_average_temperature() -> None:
    """In milliseconds: 10° at 0:30 and 20° at 1:15 count from the minutes after them on, until the
    first minute at which an hour has passed."""
    answer = query("average_temperature", {"sensor": [(10.0, 30_000), (20.0, 75_000)]})
    assert rows(answer.run()) == [
        (None, 30_000, MINUTE),
        (10.0, MINUTE, 2 * MINUTE),
        (15.0, 2 * MINUTE, 61 * MINUTE),
        (20.0, 61 * MINUTE, 62 * MINUTE),
        (None, 62 * MINUTE, 2**63 - 1),
    ]


def test_average_temperature_with_bounds() -> None:
    """Until it is adapted, a query has the largest window and the finest granularity."""
    answer = query("average_temperature_with_bounds", {"sensor": [(10.0, 0), (20.0, 15_000)]})
    day = 24 * 60 * MINUTE
    assert rows(answer.run()) == [
        (10.0, 0, 20_000),
        (15.0, 20_000, day),
        (20.0, day, day + 20_000),
        (None, day + 20_000, 2**63 - 1),
    ]
    rows_answer = query("average_temperature_of_rows_with_bounds", {"sensor": _ramp(201)})
    assert rows(rows_answer.snapshot(199)) == [(99.5,)]
    assert rows(rows_answer.snapshot(200)) == [(100.5,)]


def _ramp(count: int) -> list[Row]:
    """0° at 0, 1° at 1 and so on."""
    return [(float(i), i) for i in range(count)]
