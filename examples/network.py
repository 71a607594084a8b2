"""A network: which sources of the last minute are on link A and not on link B?

A source leaves the answer when it appears on B, and returns when its last packet on B is a minute
old: EXCEPT over windows restores a row when the subtracted row expires.
"""

from __future__ import annotations

import argparse
import datetime
import random
from collections.abc import Sequence
from typing import Any

import millstream as ms

QUERY = """
SELECT source FROM LinkA WINDOW(RANGE 1 MINUTE)
EXCEPT
SELECT source FROM LinkB WINDOW(RANGE 1 MINUTE)
EMIT CHANGES
"""

START = datetime.datetime(2026, 3, 2, 9)


def packets(link: str) -> list[dict[str, Any]]:
    """Five minutes of a link; a scanner sends only on A."""
    chance = random.Random(link)
    rows = [
        {
            "ts": START + datetime.timedelta(milliseconds=chance.randrange(300_000)),
            "source": f"10.0.0.{chance.randrange(1, 8)}",
            "bytes": chance.choice([64, 576, 1500]),
        }
        for _ in range(60)
    ]
    if link == "A":
        at = START + datetime.timedelta(seconds=90)
        rows.append({"ts": at, "source": "203.0.113.9", "bytes": 64})
    return sorted(rows, key=lambda row: row["ts"])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="local", choices=["spark", "local", "reference"])
    session = ms.Session(parser.parse_args(arguments).engine)
    for link in "AB":
        session.stream(f"Link{link}", packets(link), time="ts")
    for row in session.sql(QUERY).run().to_pylist():
        sign = "+" if row["change"] > 0 else "-"
        print(f"{row['at']:%H:%M:%S.%f} {sign} {row['source']}")


if __name__ == "__main__":
    main()
