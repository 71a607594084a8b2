"""Trading: the volume-weighted average price of the last 100 trades of every symbol.

The window counts rows per symbol, so a quiet symbol keeps its last 100 trades while those of a busy
one change. The query is started, and its changes are consumed as they arrive.
"""

from __future__ import annotations

import argparse
import datetime
import random
from collections.abc import Iterator, Sequence
from typing import Any

import millstream as ms

STATEMENTS = """
CREATE STREAM Trade (ts TIMESTAMP, symbol STRING, price DOUBLE, volume BIGINT)
    SOURCE exchange() ORDERED BY ts;

SELECT symbol, SUM(price * volume) / SUM(volume) AS vwap, COUNT(*) AS trades
FROM Trade WINDOW(PARTITION BY symbol ROWS 100)
GROUP BY symbol
EMIT CHANGES
"""

ACTIVITY = {"ACME": 20, "GLOBEX": 5, "INITECH": 1}


def trades() -> Iterator[dict[str, Any]]:
    """Two thousand trades of three symbols whose prices wander."""
    chance = random.Random(9)
    at = datetime.datetime(2026, 3, 2, 9, 30)
    prices = dict.fromkeys(ACTIVITY, 100.0)
    for _ in range(2000):
        at += datetime.timedelta(milliseconds=chance.randrange(1, 400))
        (symbol,) = chance.choices([*ACTIVITY], [*ACTIVITY.values()])
        prices[symbol] = round(prices[symbol] * (1 + chance.gauss(0, 0.001)), 2)
        yield {
            "ts": at,
            "symbol": symbol,
            "price": prices[symbol],
            "volume": chance.randrange(1, 50) * 10,
        }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="local", choices=["spark", "local"])
    session = ms.Session(parser.parse_args(arguments).engine)
    session.source("exchange", trades)
    current: dict[str, tuple[float, int]] = {}
    changes = 0
    with session.sql(STATEMENTS).start() as running:
        for table in running:
            for row in table.to_pylist():
                changes += 1
                if row["change"] > 0:
                    current[row["symbol"]] = row["vwap"], row["trades"]
    print(f"{changes} changes; at the end:")
    for symbol, (vwap, count) in sorted(current.items()):
        print(f"{symbol:<8} {vwap:8.3f} over {count} trades")


if __name__ == "__main__":
    main()
