"""A view in a folder and in a DuckDB file, as a program that can be killed at any moment.

python killed_view.py <folder>
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import millstream as ms
from millstream.relations import live_answer

TRANSFERS = 3_000
RETAIN = 600
QUERY = "SELECT account, SUM(amount) AS balance FROM Transfer WINDOW(UNBOUNDED) GROUP BY account"


def rows(pause: float, quick: int = 0) -> Iterator[dict[str, int]]:
    """Two a transfer. After the first `quick` transfers there is a pause now and then."""
    for t in range(TRANSFERS):
        if t >= quick and t % 10 == 0:
            time.sleep(pause)
        yield {"t": t, "account": t * 7 % 31, "amount": -(t % 13)}
        yield {"t": t, "account": t * 5 % 29 + 100, "amount": t % 13}


def view_of(folder: Path, pause: float, quick: int = 0) -> ms.View:
    live_answer._SMALL = 50  # so that files are rewritten now and then
    session = ms.Session(engine="local")
    session.source("slow", lambda: rows(pause, quick))
    session.sql(
        "CREATE STREAM Transfer (t BIGINT, account BIGINT, amount BIGINT) SOURCE slow() "
        "ORDERED BY t"
    )
    view: ms.View = session.sql(
        f"CREATE MATERIALIZED VIEW balances AS {QUERY} INTO duckdb(:path, 'balances') "
        f"RETAIN {RETAIN} IN :folder",
        path=str(folder / "balances.duckdb"),
        folder=str(folder / "view"),
    )
    return view


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    done = len(list(folder.glob("view/checkpoint/manifests/*")))
    view_of(folder, 0.01, quick=10 * done).wait()
