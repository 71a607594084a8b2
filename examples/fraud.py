"""Card fraud: how often and how much did each card pay in the last ten minutes, ending now?

A window that ends now always sees six payments within ten minutes; windows on a grid see them only
if no border falls between them. The answer says from when to when a card was conspicuous.
"""

from __future__ import annotations

import argparse
import datetime
import random
from collections.abc import Sequence
from typing import Any

import millstream as ms

QUERY = """
SELECT card, COUNT(*) AS payments, SUM(amount) AS spent
FROM Payment WINDOW(RANGE 10 MINUTES)
GROUP BY card
HAVING COUNT(*) >= 6 OR SUM(amount) > 1000
"""


def payments() -> list[dict[str, Any]]:
    """Two hours of twenty cards; card 7 is stolen after an hour, and used six times at once."""
    chance = random.Random(1)
    start = datetime.datetime(2026, 3, 2, 12)
    rows = [
        {
            "ts": start + datetime.timedelta(seconds=chance.randrange(7200)),
            "card": f"card {chance.randrange(20)}",
            "amount": round(chance.lognormvariate(3.2, 0.8), 2),
        }
        for _ in range(250)
    ]
    theft = start + datetime.timedelta(minutes=67)
    for use in range(6):
        at = theft + datetime.timedelta(seconds=97 * use)
        rows.append({"ts": at, "card": "card 7", "amount": 450.0 + use})
    return sorted(rows, key=lambda row: row["ts"])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="local", choices=["spark", "local", "reference"])
    session = ms.Session(parser.parse_args(arguments).engine)
    session.stream("Payment", payments(), time="ts")
    for row in session.sql(QUERY).run().to_pylist():
        print(
            f"{row['card']}: {row['payments']} payments of {row['spent']:.2f} in ten minutes, "
            f"from {row['valid_from']:%H:%M:%S} to {row['valid_to']:%H:%M:%S}"
        )


if __name__ == "__main__":
    main()
