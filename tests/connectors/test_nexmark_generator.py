"""The made-up auction house: what its tables promise each other, disorder, and bad options."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import millstream as ms
from millstream.connectors import nexmark
from millstream.logical.instants import chronon
from millstream.model.errors import DataError
from millstream.model.time import TIMESTAMP_TIME

TWO_DAYS = 2 * 86_400_000_000
SIZES = [
    {"bids": 20_000, "seed": 3},
    {"bids": 0},
    {"bids": 1},
    {"bids": 500, "auctions": 1, "people": 2},
    {"bids": 3, "auctions": 400, "people": 90},
    {"bids": 5_000, "rate": 2_000.0, "burst": 1},
    {"bids": 2_000, "rate": 1e9, "longest": "1 hour"},
    {"bids": 0, "auctions": 0, "people": 0},
]


def micros(table: pa.Table, column: str) -> np.ndarray:
    return table[column].to_numpy().astype(np.int64)


def auctions(**options: Any) -> dict[str, np.ndarray]:
    """Opening, closing, seller and prices of each auction, by the number of its item."""
    opened, closed = (nexmark.generate(s, **options) for s in ("OpenAuction", "ClosedAuction"))
    closed = closed.sort_by("itemID")
    assert opened["itemID"].equals(closed["itemID"])
    return {
        "open": micros(opened, "timestamp"),
        "close": micros(closed, "timestamp"),
        "seller": opened["sellerID"].to_numpy(),
        "start_price": opened["start_price"].to_numpy(),
        "closing_price": closed["closing_price"].to_numpy(),
        "buyer": closed["buyerID"].fill_null(0).to_numpy(),
    }


# --- what the tables promise ----------------------------------------------------------------------


@pytest.mark.parametrize("options", SIZES)
def test_sizes_are_as_asked_and_times_ascend(options: dict[str, Any]) -> None:
    bids = options["bids"]
    number = options.get("auctions", -(-bids // 10))
    people = options.get("people", max(2, number // 10))
    expected = {"Person": people, "Item": number, "OpenAuction": number, "ClosedAuction": number}
    for stream, rows in {**expected, "Bid": bids}.items():
        table = nexmark.generate(stream, **options)
        assert len(table) == rows
        assert (np.diff(micros(table, table.column_names[-1])) >= 0).all()


@pytest.mark.parametrize("options", SIZES)
def test_bids_fall_into_their_auction_and_rise(options: dict[str, Any]) -> None:
    auction = auctions(**options)
    bids = nexmark.generate("Bid", **options)
    number = bids["itemID"].to_numpy() - nexmark.FIRST_ITEM
    times = micros(bids, "timestamp")
    assert (auction["open"][number] <= times).all()
    assert (times < auction["close"][number]).all()
    order = np.argsort(number, kind="stable")
    same = np.diff(number[order]) == 0
    prices = bids["bid_price"].to_numpy()
    assert (np.diff(prices[order])[same] > 0).all()
    assert (prices > auction["start_price"][number]).all()


@pytest.mark.parametrize("options", SIZES)
def test_auctions_end_with_the_highest_bid(options: dict[str, Any]) -> None:
    auction = auctions(**options)
    price, buyer = auction["start_price"].copy(), np.zeros_like(auction["buyer"])
    bids = nexmark.generate("Bid", **options)
    number = bids["itemID"].to_numpy() - nexmark.FIRST_ITEM
    price[number] = bids["bid_price"].to_numpy()  # the last assignment stays
    buyer[number] = bids["bidderID"].to_numpy()
    assert (price == auction["closing_price"]).all()
    assert (buyer == auction["buyer"]).all()
    assert (auction["close"] > auction["open"]).all()
    assert (auction["close"] - auction["open"] < TWO_DAYS).all()


@pytest.mark.parametrize("options", SIZES)
def test_people_register_before_they_act(options: dict[str, Any]) -> None:
    person = nexmark.generate("Person", **options)
    registered = micros(person, "registrationTime")
    auction = auctions(**options)
    assert (registered[auction["seller"] - nexmark.FIRST_PERSON] < auction["open"]).all()
    bids = nexmark.generate("Bid", **options)
    bidder = bids["bidderID"].to_numpy()
    assert (registered[bidder - nexmark.FIRST_PERSON] < micros(bids, "timestamp")).all()
    assert (bidder != auction["seller"][bids["itemID"].to_numpy() - nexmark.FIRST_ITEM]).all()


def test_items_belong_to_categories() -> None:
    categories = nexmark.generate("Category")
    items = nexmark.generate("Item", bids=1_000)
    assert pc.all(pc.is_in(items["categoryID"], categories["id"])).as_py()
    assert pc.all(pc.is_in(categories["parentID"].drop_null(), categories["id"])).as_py()
    names = dict(zip(categories["id"].to_pylist(), categories["name"].to_pylist(), strict=True))
    assert [names[i] for i in items["categoryID"].to_pylist()] == items["name"].to_pylist()


# --- reproducible, bursty, out of order -----------------------------------------------------------


def test_a_seed_gives_one_history() -> None:
    first, second = (nexmark.generate("Bid", bids=2_000, seed=5) for _ in range(2))
    assert first.equals(second)
    assert not first.equals(nexmark.generate("Bid", bids=2_000, seed=6))


@pytest.mark.parametrize("delay", [None, "10 minutes"])
def test_batches_are_the_table(delay: str | None) -> None:
    cut = list(nexmark.batches("Bid", rows=300, bids=2_000, delay=delay))
    assert [len(batch) for batch in cut] == [300] * 6 + [200]
    whole = nexmark.generate("Bid", bids=2_000, delay=delay)
    assert pa.concat_tables(cut).combine_chunks().equals(whole.combine_chunks())


def test_delayed_rows_are_shuffled_within_the_delay() -> None:
    delay = 3_600_000_000
    ordered = nexmark.generate("Bid", bids=5_000)
    shuffled = nexmark.generate("Bid", bids=5_000, delay="1 hour")
    times = micros(shuffled, "timestamp")
    assert (np.diff(times) < 0).any()
    assert (times >= np.maximum.accumulate(times) - delay).all()
    keys = [(name, "ascending") for name in ordered.column_names]
    assert shuffled.sort_by(keys).equals(ordered.sort_by(keys))


def test_the_preset_is_like_the_data_of_the_thesis() -> None:
    """K §14.3 and figure 14.4: sizes, and bids in windows of one instant and longer."""
    bids = nexmark.generate("Bid", preset="kraemer")
    assert len(bids) == 1_000_987
    assert len(nexmark.generate("OpenAuction", preset="kraemer")) == 99_990
    assert len(nexmark.generate("Person", preset="kraemer")) == 9_958
    times = micros(bids, "timestamp")
    _, together = np.unique(times, return_counts=True)
    now = (together * (together + 1) / 2).sum() / len(times)  # held as each bid comes
    assert now == pytest.approx(6, rel=0.1)
    instants = np.linspace(times[0], times[-1], 10_000).astype(np.int64)
    for minutes, held in ((10, 97), (300, 2_880)):
        until, since = (np.searchsorted(times, instants - d) for d in (0, minutes * 60_000_000))
        assert (until - since).mean() == pytest.approx(held, rel=0.05)


def test_sizes_given_beside_a_preset_win() -> None:
    assert len(nexmark.generate("Bid", preset="Kraemer", bids=10, auctions=5)) == 10


def test_the_start_is_as_asked() -> None:
    people = nexmark.generate("Person", bids=10, start="2024-02-29 12:00:00")
    assert str(people["registrationTime"][0]) == "2024-02-29 12:00:00"


# --- in SQL ---------------------------------------------------------------------------------------

BID = "CREATE STREAM Bid (itemID INT, bid_price REAL, timestamp TIMESTAMP) SOURCE "


def session_with_bids(source: str) -> ms.Session:
    session = ms.Session()
    session.source("nexmark", nexmark.connect)
    session.sql(f"{BID} {source} ORDERED BY timestamp")
    return session


@pytest.mark.parametrize(
    "source", ["nexmark('bid', BIDS => 50)", "nexmark(stream => 'Bid', bids => 50)"]
)
def test_a_stream_of_sql(source: str) -> None:
    query = session_with_bids(source).sql("SELECT itemID, bid_price FROM Bid")
    answer = query.run().select(["itemID", "bid_price"])
    expected = nexmark.generate("Bid", bids=50).select(["itemID", "bid_price"])
    assert answer.cast(expected.schema).equals(expected)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "nexmark()",
            'connector "nexmark" reads one stream\nhelp: the streams are "Person", "Category", '
            '"Item", "OpenAuction", "ClosedAuction" and "Bid"',
        ),
        (
            "nexmark('Bid', stream => 'Bid')",
            'connector "nexmark" reads one stream\nhelp: the streams are "Person", "Category", '
            '"Item", "OpenAuction", "ClosedAuction" and "Bid"',
        ),
        (
            "nexmark('Seller')",
            'connector "nexmark" has no stream "Seller"\nhelp: the streams are "Person", '
            '"Category", "Item", "OpenAuction", "ClosedAuction" and "Bid"',
        ),
        (
            "nexmark('Bids')",
            'connector "nexmark" has no stream "Bids"\nhelp: did you mean "Bid"?',
        ),
        (
            "nexmark('Bid', sed => 1)",
            'connector "nexmark" has no option "sed"\nhelp: did you mean "seed"?',
        ),
        (
            "nexmark('Bid', colour => 1)",
            'connector "nexmark" has no option "colour"\nhelp: the options are "stream", "seed", '
            '"bids", "auctions", "people", "start", "rate", "burst", "longest", "delay", '
            '"preset" and "speed"',
        ),
        (
            "nexmark('Bid', bids => 1.5)",
            'connector "nexmark" cannot use 1.5 for "bids"\nhelp: write a whole number from 0',
        ),
        (
            "nexmark('Bid', auctions => 0)",
            'connector "nexmark" cannot use 0 for "auctions"\nhelp: write a whole number from 1',
        ),
        (
            "nexmark('Bid', people => 1)",
            'connector "nexmark" cannot use 1 for "people"\nhelp: write a whole number from 2',
        ),
        (
            "nexmark('Bid', seed => TRUE)",
            'connector "nexmark" cannot use True for "seed"\nhelp: write a whole number from 0',
        ),
        (
            "nexmark('Bid', rate => 0)",
            'connector "nexmark" cannot use 0 for "rate"\nhelp: write a number above 0',
        ),
        (
            "nexmark('Bid', delay => 'soon')",
            'connector "nexmark" cannot use \'soon\' for "delay"\nhelp: write a number and '
            "MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS or WEEKS",
        ),
        (
            "nexmark('Bid', speed => 0)",
            'connector "nexmark" cannot use 0 for "speed"\nhelp: write a number above 0',
        ),
        (
            "nexmark('Bid', delay => -1)",
            'connector "nexmark" cannot use -1 for "delay"\nhelp: write a duration such as '
            "'5 seconds'",
        ),
        (
            "nexmark('Bid', start => 'now')",
            'connector "nexmark" cannot use \'now\' for "start"\nhelp: write a timestamp such as '
            "'2006-01-01 00:00:00'",
        ),
        (
            "nexmark('Bid', preset => 'golab')",
            'connector "nexmark" has no preset "golab"\nhelp: the only preset is "kraemer"',
        ),
    ],
)
def test_bad_options(source: str, message: str) -> None:
    query = session_with_bids(source).sql("SELECT itemID FROM Bid")
    with pytest.raises(DataError) as caught:
        query.run()
    assert str(caught.value) == f"error: {message}"


def test_batches_need_rows() -> None:
    with pytest.raises(DataError, match='cannot use 0 for "rows"'):
        next(nexmark.batches("Bid", rows=0))


def test_live_rows_come_by_the_clock() -> None:
    """All rows, in order; none before its time is due, and time passes where there are none."""
    options: dict[str, Any] = {"bids": 60, "rate": 10.0, "longest": "5 seconds", "seed": 4}
    start = 1_136_073_600_000_000
    began = time.monotonic()
    tables, beats = [], [start]
    for item in nexmark.paced("Bid", speed=20.0, **options):
        due = start + (time.monotonic() - began) * 20e6
        if isinstance(item, ms.Heartbeat):
            beat = chronon(item.instant, TIMESTAMP_TIME)
            assert beats[-1] < beat <= due
            beats.append(beat)
        else:
            tables.append(item)
            assert beats[-1] <= micros(item, "timestamp").min()
            assert micros(item, "timestamp").max() <= due
    assert pa.concat_tables(tables).equals(nexmark.generate("Bid", **options))
    assert len(tables) > 1


def test_a_live_stream_with_a_delay_promises_less() -> None:
    options: dict[str, Any] = {"bids": 60, "rate": 100.0, "delay": "2 seconds"}
    beat = float("-inf")
    for item in nexmark.paced("Bid", speed=50.0, **options):
        if isinstance(item, ms.Heartbeat):
            beat = chronon(item.instant, TIMESTAMP_TIME)
        else:
            assert beat <= micros(item, "timestamp").min()


def test_a_live_stream_without_time_comes_at_once() -> None:
    (table,) = nexmark.paced("Category", speed=1.0)
    assert table.equals(nexmark.generate("Category"))
