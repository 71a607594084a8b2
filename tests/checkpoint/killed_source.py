"""A query with a checkpoint over rows that come once, as a program that can be killed anywhere.

python killed_source.py <feed | iterator | files> <folder> <run>: the answers of each batch are a
file of the folder. Every row has a name of its own, also in every run; the file "accepted" has the
names of those that the program need not send again. The last run, of number 0, comes to an end.
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

SCHEMA = {"t": "BIGINT", "id": "STRING"}
SQL = "SELECT id, COUNT(*) AS n FROM S WINDOW(RANGE 3) GROUP BY id"
LAST = 60  # rows of the last run


def batches(run: int) -> Iterator[list[dict[str, Any]]]:
    """Rows that rise in time, over all runs; the last run is the latest."""
    first = (run or 1000) * 1_000_000
    number = 0
    while run or number < LAST:
        size = number % 4 + 1
        yield [{"t": first + i, "id": f"{run}-{i}"} for i in range(number, number + size)]
        number += size


def accept(folder: Path, rows: list[dict[str, Any]]) -> None:
    with (folder / "accepted").open("a") as file:
        file.writelines(f"{row['id']}\n" for row in rows)


def given(folder: Path, run: int) -> Iterator[pa.Table]:
    """As an iterator: what it gave is accepted when it is asked for more."""
    for rows in batches(run):
        yield pa.Table.from_pylist(rows)
        accept(folder, rows)


def main(kind: str, folder: Path, run: int) -> None:
    def sink(table: pa.Table, batch: Any) -> None:
        draft = folder / f"{batch.id}.draft"
        pq.write_table(table, draft)
        draft.rename(folder / f"{batch.id}.parquet")

    session = ms.Session()
    if kind == "feed":
        feed = session.feed("S", SCHEMA, time="t")
    elif kind == "iterator":
        session.stream("S", given(folder, run), schema=SCHEMA, time="t")
    else:
        follow = f"follow => {bool(run)}, poll => '5 milliseconds'"
        session.sql(
            f"CREATE STREAM S (t BIGINT, id STRING) SOURCE csv('{folder}/data', {follow}) "
            "ORDERED BY t DELAY 2000000000"
        )
    running = session.sql(SQL).start(sink, checkpoint=str(folder / "checkpoint"))
    if kind == "feed":
        for rows in batches(run):
            feed.send(rows)
            accept(folder, rows)
            time.sleep(0.001)
        feed.close()
    running.wait()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
