"""A view in PostgreSQL: its readers see whole batches only."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

import millstream as ms

psycopg = pytest.importorskip("psycopg", reason="pip install 'millstream[postgres]'")

pytestmark = [
    pytest.mark.xdist_group("postgres"),
    pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning"),
]


def test_the_sum_of_all_accounts_is_always_zero(url: str, tmp_path: Path) -> None:
    session = ms.Session(engine="local")
    columns = {"t": "BIGINT", "account": "INT", "amount": "BIGINT"}
    feed = session.feed("Transfer", columns, time="t")
    view = session.sql(
        "CREATE MATERIALIZED VIEW balances AS SELECT account, SUM(amount) AS balance "
        "FROM Transfer WINDOW(UNBOUNDED) GROUP BY account INTO postgres(:url, 'balances') "
        "IN :folder",
        url=url,
        folder=str(tmp_path / "view"),
    )
    over, seen = threading.Event(), []

    def read() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not over.is_set():
                query = "SELECT COUNT(*), COALESCE(SUM(balance), 0) FROM balances"
                seen.append(connection.execute(query).fetchone())

    reader = threading.Thread(target=read)
    reader.start()
    draw = random.Random(1)
    for first in range(0, 2000, 50):
        rows = []
        for t in range(first, first + 50):
            one, other = draw.sample(range(40), 2)
            amount = draw.randrange(1, 100)
            rows.append({"t": t, "account": one, "amount": -amount})
            rows.append({"t": t, "account": other, "amount": amount})
        feed.send(rows)
    view.as_of(1998, timeout=120)
    over.set()
    reader.join(60)
    view.stop()
    assert {int(total) for _, total in seen} == {0}
    assert len({count for count, _ in seen}) > 1
    with psycopg.connect(url) as connection:
        kept = connection.execute("SELECT account, balance FROM balances").fetchall()
    table = [tuple(row.values()) for row in view.table().to_pylist()]
    assert sorted((account, int(balance)) for account, balance in kept) == sorted(table)
