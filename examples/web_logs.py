"""Web logs: the three pages with the most hits in the last hour, at any instant.

A custom connector reads the lines of a log. The top three are a query, so they are available for
any instant, not only at full hours.
"""

from __future__ import annotations

import argparse
import datetime
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

import millstream as ms

STATEMENTS = """
CREATE STREAM Hit (ts TIMESTAMP, address STRING, page STRING, status INT)
    SOURCE access_log() ORDERED BY ts;

SELECT page, COUNT(*) AS hits
FROM Hit WINDOW(RANGE 1 HOUR)
WHERE status = 200
GROUP BY page ORDER BY hits DESC LIMIT 3
"""

START = datetime.datetime(2026, 3, 2, 8)
PAGES = ["/", "/news", "/prices", "/about", "/contact", "/jobs"]
LINE = re.compile(r'(\S+) - - \[([^]]+)] "GET (\S+) HTTP/1.1" (\d+) \d+')


def access_log() -> Iterator[str]:
    """Six hours of a log in the common format; the news is read in the morning."""
    chance = random.Random(5)
    at = START
    while (at := at + datetime.timedelta(seconds=chance.expovariate(1 / 20))).hour < 14:
        morning = at.hour < 10
        weights = [6, 9 if morning else 2, 3, 1, 1, 2 if morning else 5]
        (page,) = chance.choices(PAGES, weights)
        status = 200 if chance.random() < 0.95 else 404
        address = f"198.51.100.{chance.randrange(256)}"
        yield f'{address} - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "GET {page} HTTP/1.1" {status} 512'


def decode(line: str) -> dict[str, Any]:
    found = LINE.fullmatch(line)
    if found is None:
        raise ValueError("not a line of the common log format")
    address, at, page, status = found.groups()
    moment = datetime.datetime.strptime(at, "%d/%b/%Y:%H:%M:%S +0000")
    return {"ts": moment, "address": address, "page": page, "status": int(status)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="local", choices=["spark", "local", "reference"])
    session = ms.Session(parser.parse_args(arguments).engine)
    session.source("access_log", access_log, decode)
    query = session.sql(STATEMENTS)
    for hour in (9, 11, 13):
        at = START.replace(hour=hour, minute=17)
        rows = sorted(query.snapshot(at).to_pylist(), key=lambda row: -row["hits"])
        top = ", ".join(f"{row['page']} {row['hits']}" for row in rows)
        print(f"{at:%H:%M} {top}")


if __name__ == "__main__":
    main()
