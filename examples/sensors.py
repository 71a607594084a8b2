"""A production line: two sensors measure the width of every piece, one before the other.

A piece for which they disagree within ten seconds is suspect: a join of two windows. The later of
the two measurements completes the pair, at its own instant.
"""

from __future__ import annotations

import argparse
import datetime
import random
from collections.abc import Sequence
from typing import Any

import millstream as ms

SUSPECT = """
SELECT A.piece, A.width AS first_width, B.width AS second_width
FROM First A WINDOW(RANGE 10 SECONDS), Second B WINDOW(RANGE 10 SECONDS)
WHERE A.piece = B.piece AND ABS(A.width - B.width) > 0.5
"""

START = datetime.datetime(2026, 3, 2, 6)


def measurements() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A piece every two seconds; it takes three to six seconds from one sensor to the other."""
    chance = random.Random(3)
    first, second = [], []
    for piece in range(200):
        at = START + datetime.timedelta(seconds=2 * piece)
        width = chance.gauss(20, 0.2)
        bent = chance.random() < 0.03
        first.append({"ts": at, "piece": piece, "width": round(width, 3)})
        later = at + datetime.timedelta(milliseconds=chance.randrange(3000, 6000))
        seen = width + chance.gauss(0.9 if bent else 0, 0.05)
        second.append({"ts": later, "piece": piece, "width": round(seen, 3)})
    return first, sorted(second, key=lambda row: row["ts"])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="local", choices=["spark", "local", "reference"])
    session = ms.Session(parser.parse_args(arguments).engine)
    first, second = measurements()
    session.stream("First", first, time="ts")
    session.stream("Second", second, time="ts")
    for row in session.sql(SUSPECT).run().to_pylist():
        print(
            f"{row['valid_from']:%H:%M:%S} piece {row['piece']}: "
            f"{row['first_width']:.3f} mm, then {row['second_width']:.3f} mm"
        )


if __name__ == "__main__":
    main()
