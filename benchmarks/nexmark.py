"""Queries of the public NEXMark suite in Millstream's SQL, and events for them.

Of 50 events one is a person, three are auctions and 46 are bids, 10,000 events per second, as in
the suite's generator. Bids go to recent auctions, half of them to a hot one in a hundred; auctions
last about 20 seconds. Choices that the suite leaves open: joins and groups over whole streams have
unbounded windows, and windows are Millstream's (a row is valid from the end of its window).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

PERSONS, AUCTIONS, EVENTS = 1, 3, 50  # per 50 events
GAP = 100  # microseconds between events
RECENT = 1_000  # auctions that are bid for
CITIES = ["Phoenix", "Palo Alto", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent"]
STATES = ["AZ", "CA", "ID", "OR", "OR", "WA", "WA", "WA"]

QUERIES: Mapping[str, str] = {
    "q1": "SELECT auction, bidder, 0.908E0 * price AS price, ts, extra FROM bid",
    "q3": """SELECT p.name, p.city, p.state, a.id
        FROM auction WINDOW(RANGE UNBOUNDED) a JOIN person WINDOW(RANGE UNBOUNDED) p
        ON a.seller = p.id WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    "q4": """SELECT category, AVG(final) AS average FROM (
            SELECT MAX(b.price) AS final, a.category
            FROM auction WINDOW(RANGE UNBOUNDED) a JOIN bid WINDOW(RANGE UNBOUNDED) b
            ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires
            GROUP BY a.id, a.category) GROUP BY category""",
    "q5": """SELECT auction, num FROM (
            SELECT auction, COUNT(*) AS num FROM bid WINDOW(RANGE 10 SECONDS SLIDE 2 SECONDS)
            GROUP BY auction)
        WHERE num >= ALL (
            SELECT COUNT(*) FROM bid WINDOW(RANGE 10 SECONDS SLIDE 2 SECONDS) GROUP BY auction)""",
    "q7": """SELECT b.auction, b.price, b.bidder
        FROM bid WINDOW(RANGE 10 SECONDS SLIDE 10 SECONDS) b
        JOIN (SELECT MAX(price) AS most FROM bid WINDOW(RANGE 10 SECONDS SLIDE 10 SECONDS)) m
        ON b.price = m.most""",
    "q8": """SELECT DISTINCT p.id, p.name FROM person WINDOW(RANGE 10 SECONDS SLIDE 10 SECONDS) p
        JOIN auction WINDOW(RANGE 10 SECONDS SLIDE 10 SECONDS) a ON p.id = a.seller""",
    "q17": """SELECT auction, CAST(ts AS DATE) AS day, COUNT(*) AS bids,
            COUNT(*) FILTER (WHERE price < 10000) AS low,
            COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS middle,
            COUNT(*) FILTER (WHERE price >= 1000000) AS high,
            MIN(price) AS least, MAX(price) AS most, AVG(price) AS average, SUM(price) AS total
        FROM bid WINDOW(RANGE UNBOUNDED) GROUP BY auction, CAST(ts AS DATE)""",
    "q18": """SELECT auction, bidder, price, channel, url, ts, extra
        FROM bid WINDOW(PARTITION BY bidder, auction ROWS 1)""",
    "q20": """SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.ts, a.item, a.initial,
            a.expires, a.seller, a.category
        FROM bid WINDOW(RANGE UNBOUNDED) b JOIN auction WINDOW(RANGE UNBOUNDED) a
        ON b.auction = a.id WHERE a.category = 10""",
}


@lru_cache(2)
def streams(events: int) -> Mapping[str, pa.Table]:
    """The tables person, auction and bid, in order of time."""
    random = np.random.default_rng(1)
    number = np.arange(events)
    kind = number % EVENTS
    times = number * GAP
    is_person, is_auction = kind < PERSONS, (kind >= PERSONS) & (kind < PERSONS + AUCTIONS)
    people, auctions = np.cumsum(is_person), np.cumsum(is_auction)
    return {
        "person": _people(times[is_person], random),
        "auction": _auctions(times[is_auction], people[is_auction], random),
        "bid": _bids(
            times[kind >= PERSONS + AUCTIONS],
            auctions[kind >= PERSONS + AUCTIONS],
            people[kind >= PERSONS + AUCTIONS],
            random,
        ),
    }


def _people(times: np.ndarray, random: np.random.Generator) -> pa.Table:
    number = np.arange(len(times))
    place = random.integers(0, len(CITIES), len(times))
    return pa.table(
        {
            "ts": _instants(times),
            "id": number,
            "name": _named("person", number),
            "city": pa.array(CITIES).take(pa.array(place)),
            "state": pa.array(STATES).take(pa.array(place)),
        }
    )


def _auctions(times: np.ndarray, people: np.ndarray, random: np.random.Generator) -> pa.Table:
    number = np.arange(len(times))
    return pa.table(
        {
            "ts": _instants(times),
            "id": number,
            "item": _named("item", number),
            "initial": random.integers(1, 1_000, len(times)),
            "expires": _instants(times + random.integers(1_000_000, 40_000_000, len(times))),
            "seller": _recent(people, 100, random),
            "category": random.integers(10, 15, len(times)),
        }
    )


def _bids(
    times: np.ndarray, auctions: np.ndarray, people: np.ndarray, random: np.random.Generator
) -> pa.Table:
    hot = random.random(len(times)) < 0.5
    cold = _recent(auctions, RECENT, random)
    number = np.arange(len(times))
    return pa.table(
        {
            "ts": _instants(times),
            "auction": np.where(hot, np.maximum(auctions - 1, 0) // 100 * 100, cold),
            "bidder": _recent(people, 1_000, random),
            "price": (10 ** random.uniform(2, 8, len(times))).astype(np.int64),
            "channel": pa.array(["Google", "Facebook", "Baidu", "Apple"]).take(
                pa.array(random.integers(0, 4, len(times)))
            ),
            "url": _named("https://www.nexmark.com/item", number % 10_000),
            "extra": _named("extra", number % 1_000),
        }
    )


def _recent(so_far: np.ndarray, back: int, random: np.random.Generator) -> np.ndarray:
    """One of the last numbers below `so_far`."""
    return np.maximum(so_far - 1 - random.integers(0, back, len(so_far)), 0)


def _named(word: str, number: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(word, pa.array(number).cast(pa.string()), "-")


def _instants(times: np.ndarray) -> pa.Array:
    return pa.array(times, pa.timestamp("us"))
