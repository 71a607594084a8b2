"""A query that looks up a table which changes all the time, as a program that can be killed.

python killed_table.py <folder>: the answers of each batch are a file of the folder. The table has
one number, which only grows; the program knows the last one from a file, and creates the table
again.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import millstream as ms

ROWS = 2_000
KEYS = 5
SQL = """
CREATE STREAM S (t BIGINT, k BIGINT) SOURCE slow() ORDERED BY t;
SELECT t, version FROM S WINDOW(RANGE 50) JOIN R ON S.k = R.k
"""


def rows(pause: float, quick: int) -> Iterator[dict[str, int]]:
    """After the first `quick` rows there is a pause now and then."""
    for number in range(ROWS):
        if number >= quick and number % 20 == 0:
            time.sleep(pause)
        yield {"t": number, "k": number % KEYS}


def main(folder: Path) -> None:
    def sink(table: pa.Table, batch: Any) -> None:
        draft = folder / f"{batch.id}.draft"
        pq.write_table(table, draft)
        draft.rename(folder / f"{batch.id}.parquet")

    last = folder / "version"
    version = int(last.read_text()) if last.exists() else 0
    session = ms.Session("local")
    done = len(list(folder.glob("*.parquet")))
    session.source("slow", lambda: rows(0.02, quick=20 * done))
    first = [{"k": k, "version": version} for k in range(KEYS)]
    table = session.table("R", first, key="k", changes="non retroactive")
    running = session.sql(SQL).start(sink, checkpoint=str(folder / "checkpoint"))
    ended = threading.Event()

    def change() -> None:
        number = version
        while not ended.wait(0.003):
            number += 1
            draft = folder / "version.draft"
            draft.write_text(str(number))
            draft.rename(last)
            table.upsert([{"k": k, "version": number} for k in range(KEYS)])

    thread = threading.Thread(target=change)
    thread.start()
    try:
        running.wait()
    finally:
        ended.set()
        thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
