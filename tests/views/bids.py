"""A stream of bids that tests push, and the views that they make of it."""

from __future__ import annotations

import random
from typing import Any

import millstream as ms

COLUMNS = {"t": "BIGINT", "item": "STRING", "price": "BIGINT", "rate": "DOUBLE"}


def bids(count: int, seed: int = 0) -> list[dict[str, Any]]:
    draw, t = random.Random(seed), 0
    made = []
    for _ in range(count):
        t += draw.choice([0, 0, 1, 1, 2, 7])
        item = draw.choice(["lamp", "desk", "sofa", None])
        rate = draw.choice([0.5, 1.0, -0.0, 2.25, None])
        made.append({"t": t, "item": item, "price": draw.randrange(50), "rate": rate})
    return made


class Auction:
    """A session with the stream Bid, and what was sent to it."""

    def __init__(self, **options: Any) -> None:
        self.session = ms.Session(engine="local", **options)
        self.feed = self.session.feed("Bid", COLUMNS, time="t")
        self.sent: list[dict[str, Any]] = []

    def send(self, rows: list[dict[str, Any]]) -> None:
        self.sent += rows
        self.feed.send(rows)

    def view(self, query: str, rest: str = "", name: str = "v") -> ms.View:
        made = self.session.sql(f"CREATE MATERIALIZED VIEW {name} AS {query} {rest}")
        assert isinstance(made, ms.View)
        return made

    def once(self, query: str) -> ms.Query:
        """The query over all that was sent, as a bounded stream."""
        session = ms.Session(engine="local")
        session.stream("Bid", self.sent, time="t", schema=COLUMNS)
        query_: ms.Query = session.sql(query)
        return query_
