"""A query with a checkpoint, as a program of its own that can be killed at any moment.

python killed_query.py <engine> <folder>: the answers of each batch are a file of the folder.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import millstream as ms

ROWS = 6_000
SQL = """
CREATE STREAM A (t BIGINT, k BIGINT, v BIGINT) SOURCE slow(3) ORDERED BY t;
CREATE STREAM B (t BIGINT, k BIGINT, v BIGINT) SOURCE slow(5) ORDERED BY t DELAY 20;
SELECT a.k, COUNT(*) AS n, SUM(b.v) AS s FROM A WINDOW(RANGE 50) a
JOIN B WINDOW(RANGE 40) b ON a.k = b.k GROUP BY a.k
"""


def row(number: int, factor: int) -> dict[str, int]:
    early = number * 7 % 3 * 5 if factor == 5 else 0  # B is out of order, within its delay
    return {"t": number - early, "k": number * factor % 17, "v": number * number % 101}


def rows(factor: int, pause: float, quick: int = 0) -> Iterator[dict[str, int]]:
    """After the first `quick` rows there is a pause now and then."""
    for number in range(ROWS):
        if number >= quick and number % 20 == 0:
            time.sleep(pause)
        yield row(number, factor)


def session_of(engine: str, pause: float, quick: int = 0) -> ms.Session:
    session = ms.Session(engine=engine)
    session.source("slow", lambda factor: rows(factor, pause, quick))
    return session


def main(engine: str, folder: Path) -> None:
    def sink(table: pa.Table, batch: Any) -> None:
        draft = folder / f"{batch.id}.draft"
        pq.write_table(table, draft)
        draft.rename(folder / f"{batch.id}.parquet")

    done = len(list(folder.glob("*.parquet")))
    query = session_of(engine, 0.02, quick=20 * done).sql(SQL)
    query.start(sink, checkpoint=str(folder / "checkpoint")).wait()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
