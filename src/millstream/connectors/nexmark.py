"""The auction house of the NEXMark benchmark: consistent generated data of any size.

    CREATE STREAM Bid (itemID INT, bid_price REAL, bidderID INT, timestamp TIMESTAMP)
      SOURCE nexmark(stream => 'Bid', seed => 7, bids => 100000)
      ORDERED BY timestamp;

| stream        | columns                                               |
| ------------- | ----------------------------------------------------- |
| Person        | id, name, emailaddress, city, state, registrationTime |
| Category      | id, name, description, parentID                       |
| Item          | id, name, description, categoryID, registrationTime   |
| OpenAuction   | itemID, sellerID, start_price, timestamp              |
| ClosedAuction | itemID, buyerID, closing_price, timestamp             |
| Bid           | itemID, bid_price, bidderID, timestamp                |

The streams are those of K (§6.7). `closing_price` is an addition, so that the answer of K's Closing
Price query is known in advance. Category has no time: it is a constant relation (K §17.4).

*What holds.* An item is auctioned once, and registered when its auction opens. An auction lasts
less than `longest` (two days), so that K's windows of two days see it whole. Its bids fall into
`[open, close)` and rise; the last one is the closing price and its bidder the buyer. Without bids
the closing price is the starting price and the buyer is NULL. People register before they sell or
bid, and do not bid on their own items.

*Bursts.* Several bids may share an instant; instants come in busier and calmer spells; the bids for
an item cluster around a moment specific to it. The defaults match K's figures (§14.3): on average 6
bids in the window NOW, 97 in ten minutes, 2,880 in five hours.

*Disorder.* With a `delay` rows arrive out of order: no row arrives after one that is more than
`delay` later. Their timestamps do not change.

*Live.* With `speed => 10` the rows arrive in real time at ten times the speed, starting when a
query begins to read. Heartbeats report progress while no rows arrive.

The same options give the same tables, whichever streams are read and in whatever batches.

>>> generate("OpenAuction", bids=20, seed=1).select(["itemID", "sellerID"]).to_pylist()
[{'itemID': 1000, 'sellerID': 1}, {'itemID': 1001, 'sellerID': 2}]
"""

from __future__ import annotations

import datetime
import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.connectors.auction_house import AuctionHouse, Integers
from millstream.connectors.contracts import Heartbeat
from millstream.model.durations import length
from millstream.model.errors import DataError, MillstreamError, did_you_mean, listed
from millstream.model.instants import shown
from millstream.model.time import TIMESTAMP_TIME

FIRST_ITEM = 1000  # K's Selection asks for items from 1007, which come soon after the start
FIRST_PERSON = 1
FIRST_CATEGORY = 1
START = "2006-01-01"

_TICK = 0.1  # seconds between two readings of the clock

# The sizes of K's experiments (§14.3).
PRESETS = {"kraemer": {"bids": 1_000_987, "auctions": 99_990, "people": 9_958}}


# --- what users call ------------------------------------------------------------------------------


def generate(
    stream: str,
    *,
    seed: int = 1,
    bids: int | None = None,
    auctions: int | None = None,
    people: int | None = None,
    start: str | datetime.datetime = START,
    rate: float = 0.16,
    burst: float = 7.5,
    longest: str | int = "2 days",
    delay: str | int | None = None,
    preset: str | None = None,
) -> pa.Table:
    """All rows of one stream, in arrival order.

    By default there are 100,000 `bids`, a tenth as many `auctions` and a tenth of these `people`,
    or the numbers of the `preset`. `rate` is the average number of bids per second, `burst` the
    average number per instant; durations are strings such as '5 seconds', or microseconds.
    """
    name = _stream_named(stream)
    sizes = _sizes(preset, bids, auctions, people)
    _check_whole("seed", seed, 0)
    _check_positive("rate", rate)
    _check_positive("burst", burst)
    shorter_than = _microseconds("longest", longest)
    _check_whole("longest", shorter_than, 2)
    house = AuctionHouse(seed, *sizes, _instant(start), rate, burst, shorter_than)
    table = STREAMS[name](house)
    return _delayed(table, name, house, 0 if delay is None else _microseconds("delay", delay))


def batches(stream: str, rows: int = 10_000, **options: Any) -> Iterator[pa.Table]:
    """The rows of `generate`, `rows` at a time."""
    _check_whole("rows", rows, 1)
    table = generate(stream, **options)
    for first in range(0, len(table), rows):
        yield table.slice(first, rows)


def paced(stream: str, speed: float, **options: Any) -> Iterator[pa.Table | Heartbeat]:
    """The rows of `generate` in real time, `speed` times as fast."""
    _check_positive("speed", speed)
    table = generate(stream, **options)
    if not pa.types.is_timestamp(table.schema[-1].type):
        yield table
        return
    delay = _microseconds("delay", options.get("delay", 0))
    times = np.maximum.accumulate(table.column(table.num_columns - 1).to_numpy().astype(np.int64))
    start, began = _instant(options.get("start", START)), time.monotonic()
    first = 0
    while first < len(table):
        now = start + int((time.monotonic() - began) * speed * 1e6)
        due = int(np.searchsorted(times, now))
        if due > first:
            yield table.slice(first, due - first)
        yield Heartbeat(shown(now - delay, TIMESTAMP_TIME))
        first = due
        time.sleep(_TICK)


def connect(*values: Any, **options: Any) -> pa.Table | Iterator[pa.Table | Heartbeat]:
    """Implements `SOURCE nexmark(…)`: the stream by position or by name, then options."""
    given = {name.lower(): value for name, value in options.items() if value is not None}
    choices = [*inspect.signature(generate).parameters, "speed"]
    for name in given:
        if name not in choices:
            near = did_you_mean(name, choices)
            raise _error(f'has no option "{name}"', near or f"the options are {listed(choices)}")
    if len(values) + ("stream" in given) != 1:
        raise _error("reads one stream", f"the streams are {listed(STREAMS)}")
    return paced(*values, **given) if "speed" in given else generate(*values, **given)


# --- options --------------------------------------------------------------------------------------


def _error(message: str, help: str | None = None) -> DataError:
    return DataError(f'connector "nexmark" {message}', help=help)


def _stream_named(name: object) -> str:
    for stream in STREAMS:
        if isinstance(name, str) and name.lower() == stream.lower():
            return stream
    near = did_you_mean(str(name), STREAMS)
    raise _error(f'has no stream "{name}"', near or f"the streams are {listed(STREAMS)}")


def _sizes(
    preset: object, bids: int | None, auctions: int | None, people: int | None
) -> tuple[int, int, int]:
    """The numbers of bids, auctions and people: as given, else from the preset, else in
    proportion."""
    known: Mapping[str, int] = {}
    if preset is not None:
        if str(preset).lower() not in PRESETS:
            help = f"the presets are {listed(PRESETS)}" if len(PRESETS) > 1 else None
            raise _error(
                f'has no preset "{preset}"', help or f"the only preset is {listed(PRESETS)}"
            )
        known = PRESETS[str(preset).lower()]
    bids = known.get("bids", 100_000) if bids is None else bids
    _check_whole("bids", bids, 0)
    auctions = known.get("auctions", -(-bids // 10)) if auctions is None else auctions
    _check_whole("auctions", auctions, 1 if bids else 0)
    people = known.get("people", max(2, auctions // 10)) if people is None else people
    _check_whole("people", people, 2 if auctions else 0)
    return bids, auctions, people


def _check_whole(option: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _error(f'cannot use {value!r} for "{option}"', f"write a whole number from {least}")


def _check_positive(option: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        raise _error(f'cannot use {value!r} for "{option}"', "write a number above 0")


def _microseconds(option: str, duration: str | int) -> int:
    try:
        found = length(duration, TIMESTAMP_TIME, option)
    except MillstreamError as error:
        help = error.diagnostic.help or "write a duration such as '5 seconds'"
        raise _error(f'cannot use {duration!r} for "{option}"', help) from None
    assert found is not None
    return found


def _instant(start: object) -> int:
    try:
        instant = datetime.datetime.fromisoformat(start) if isinstance(start, str) else start
        return int(pa.scalar(instant, pa.timestamp("us", "UTC")).value)
    except (ValueError, TypeError, pa.ArrowException):
        help = "write a timestamp such as '2006-01-01 00:00:00'"
        raise _error(f'cannot use {start!r} for "start"', help) from None


# --- streams --------------------------------------------------------------------------------------


def _people(house: AuctionHouse) -> pa.Table:
    first = _words(house.choose("first names", house.people, len(FIRST_NAMES)), FIRST_NAMES)
    last = _words(house.choose("last names", house.people, len(LAST_NAMES)), LAST_NAMES)
    place = house.choose("homes", house.people, len(PLACES))
    ids = _ids(np.arange(house.people), FIRST_PERSON)
    mailbox = pc.binary_join_element_wise(pc.utf8_lower(last), ids.cast(pa.string()), ".")
    columns = {
        "id": ids,
        "name": pc.binary_join_element_wise(first, last, " "),
        "emailaddress": pc.binary_join_element_wise(mailbox, "example.org", "@"),
        "city": _words(place, [city for city, _ in PLACES]),
        "state": _words(place, [state for _, state in PLACES]),
        "registrationTime": _times(house.registered),
    }
    return pa.table(columns)


def _categories(house: AuctionHouse) -> pa.Table:
    """A tree of two levels: the goods, and each in several conditions."""
    first = FIRST_CATEGORY
    below = [(f"{c} {g}", first + i) for i, g in enumerate(GOODS) for c in CONDITIONS]
    rows = [(good, None) for good in GOODS] + below
    columns = {
        "id": _ids(np.arange(len(rows)), first),
        "name": pa.array([name for name, _ in rows]),
        "description": pa.array([f"all our {name}" for name, _ in rows]),
        "parentID": pa.array([parent for _, parent in rows], pa.int32()),
    }
    return pa.table(columns)


def _items(house: AuctionHouse) -> pa.Table:
    good = house.choose("goods", house.auctions, len(GOODS))
    condition = house.choose("conditions", house.auctions, len(CONDITIONS))
    name = pc.binary_join_element_wise(_words(condition, CONDITIONS), _words(good, GOODS), " ")
    columns = {
        "id": _ids(np.arange(house.auctions), FIRST_ITEM),
        "name": name,
        "description": pc.binary_join_element_wise(name, "as seen in the picture", ", "),
        "categoryID": _ids(len(GOODS) + good * len(CONDITIONS) + condition, FIRST_CATEGORY),
        "registrationTime": _times(house.opened),
    }
    return pa.table(columns)


def _open_auctions(house: AuctionHouse) -> pa.Table:
    columns = {
        "itemID": _ids(np.arange(house.auctions), FIRST_ITEM),
        "sellerID": _ids(house.sellers, FIRST_PERSON),
        "start_price": _prices(house.start_prices),
        "timestamp": _times(house.opened),
    }
    return pa.table(columns)


def _closed_auctions(house: AuctionHouse) -> pa.Table:
    order = np.argsort(house.closed, kind="stable")
    buyers = (house.buyers[order] + FIRST_PERSON).astype(np.int32)
    columns = {
        "itemID": _ids(order, FIRST_ITEM),
        "buyerID": pa.array(buyers, mask=~house.has_bids[order]),
        "closing_price": _prices(house.closing_prices[order]),
        "timestamp": _times(house.closed[order]),
    }
    return pa.table(columns)


def _bids(house: AuctionHouse) -> pa.Table:
    order = np.argsort(house.bid_times, kind="stable")  # bids for an item keep their order
    columns = {
        "itemID": _ids(house.bid_auctions[order], FIRST_ITEM),
        "bid_price": _prices(house.bid_prices[order]),
        "bidderID": _ids(house.bidders[order], FIRST_PERSON),
        "timestamp": _times(house.bid_times[order]),
    }
    return pa.table(columns)


STREAMS: Mapping[str, Callable[[AuctionHouse], pa.Table]] = {
    "Person": _people,
    "Category": _categories,
    "Item": _items,
    "OpenAuction": _open_auctions,
    "ClosedAuction": _closed_auctions,
    "Bid": _bids,
}


def _delayed(table: pa.Table, stream: str, house: AuctionHouse, delay: int) -> pa.Table:
    """The rows out of order: each arrives up to `delay` after its time."""
    if delay == 0 or not pa.types.is_timestamp(table.schema[-1].type):
        return table
    times = table.column(table.num_columns - 1).to_numpy().astype(np.int64)
    arrivals = times + house.choose(f"delays of {stream}", len(table), delay + 1)
    return table.take(pa.array(np.argsort(arrivals, kind="stable")))


def _ids(numbers: Integers, first: int) -> pa.Array:
    return pa.array((numbers + first).astype(np.int32))


def _prices(whole: Integers) -> pa.Array:
    return pa.array(whole.astype(np.float32))


def _times(microseconds: Integers) -> pa.Array:
    return pa.array(microseconds, pa.timestamp("us"))


def _words(numbers: Integers, words: list[str]) -> pa.Array:
    return pa.array(words).take(pa.array(numbers))


FIRST_NAMES = ["Ada", "Bert", "Carla", "Dev", "Elif", "Finn", "Gita", "Hugo", "Ines", "Kofi", "Mei"]
LAST_NAMES = ["Adler", "Brandt", "Costa", "Dahl", "Fuchs", "Gupta", "Ito", "Jansen", "Keller"]
PLACES = [
    ("Portland", "OR"),
    ("Salem", "OR"),
    ("Boise", "ID"),
    ("Seattle", "WA"),
    ("Spokane", "WA"),
]
PLACES += [
    ("Oakland", "CA"),
    ("Fresno", "CA"),
    ("Tucson", "AZ"),
    ("Austin", "TX"),
    ("Boston", "MA"),
]
GOODS = [
    "books",
    "cameras",
    "clocks",
    "coins",
    "dolls",
    "guitars",
    "lamps",
    "maps",
    "radios",
    "stamps",
]
CONDITIONS = ["antique", "broken", "handmade", "large", "new", "rare", "restored", "small", "used"]
