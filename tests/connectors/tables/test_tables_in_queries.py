"""Tables elsewhere in queries: what changes there, changes answers."""

from __future__ import annotations

import datetime
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import millstream as ms


def test_rows_that_say_when_they_came(tmp_path: Path) -> None:
    """They are told in whatever order they are found."""
    path = str(tmp_path / "x.db")
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, city TEXT, since TEXT)")
    database.execute("INSERT INTO p VALUES (1, 'A', '2024-01-01 00:00:05')")
    go_on = threading.Event()

    def visits() -> Iterator[dict[str, object]]:
        yield {"id": 1, "ts": datetime.datetime(2024, 1, 1, 0, 0, 10)}
        go_on.wait(20)
        yield {"id": 1, "ts": datetime.datetime(2024, 1, 1, 0, 1)}

    session = ms.Session()
    session.source("visits", visits)
    session.sql(
        """CREATE TABLE P (id BIGINT, city STRING, since TIMESTAMP, PRIMARY KEY (id))
        SOURCE sqlite(:path, table => 'p', refresh => '0.02 seconds') ORDERED BY since""",
        path=path,
    )
    session.sql("CREATE STREAM V (id BIGINT, ts TIMESTAMP) SOURCE visits() ORDERED BY ts")
    query = session.sql(
        "SELECT city FROM V WINDOW(RANGE 1 HOUR) JOIN P ON V.id = P.id EMIT CHANGES"
    )
    running = query.start()
    database.execute("BEGIN")
    database.execute("DELETE FROM p")
    database.execute(
        "INSERT INTO p VALUES (1, 'C', '2024-01-01 00:00:20'), (2, 'Z', '2024-01-01 00:00:02')"
    )
    database.execute("COMMIT")
    limit = time.monotonic() + 20
    while running.progress.rows_in < 5 and time.monotonic() < limit:  # a visit, A, -A, C and Z
        time.sleep(0.01)
    go_on.set()
    assert running.wait(20)
    found = [
        (row["city"], row["at"].second, row["change"]) for row in running.results().to_pylist()
    ]
    assert ("C", 20, 1) in found
    database.close()
