"""From a table of PostgreSQL through a query to a table of PostgreSQL, while all sorts of things
happen to the connections and the server: nothing is lost, nothing comes twice, and every state
that anyone sees is one that was committed."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest

import millstream as ms
from postgres_server import Server

psycopg = pytest.importorskip("psycopg", reason="pip install 'millstream[postgres]'")
pytestmark = pytest.mark.xdist_group("postgres")

ACCOUNTS = 8
PATIENCE = 60  # seconds


@pytest.fixture
def session(url: str) -> ms.Session:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS accounts, balances")
        connection.execute("CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint)")
        rows = [(number, 0) for number in range(ACCOUNTS)]
        connection.cursor().executemany("INSERT INTO accounts VALUES (%s, %s)", rows)
    session = ms.Session("local")
    session.sql(
        """CREATE TABLE Accounts (id BIGINT, balance BIGINT, PRIMARY KEY (id))
           SOURCE postgres(url => :url, table => 'accounts', follow => 'decoding')""",
        url=url,
    )
    return session


class Transfers(threading.Thread):
    """Moves money between accounts, a transaction each; whatever fails is tried again."""

    def __init__(self, url: str, count: int, seed: int) -> None:
        super().__init__(daemon=True)
        self._url, self._count, self._chance = url, count, random.Random(seed)
        self.done = 0

    def run(self) -> None:
        while self.done < self._count:
            try:
                with psycopg.connect(self._url) as connection:
                    while self.done < self._count:
                        self._transfer(connection)
                        self.done += 1
            except psycopg.Error:
                time.sleep(0.02)

    def _transfer(self, connection: Any) -> None:
        one, other = self._chance.sample(range(ACCOUNTS), 2)
        change = "UPDATE accounts SET balance = balance + %s WHERE id = %s"
        with connection.transaction():
            connection.execute(change, [7, one])
            connection.execute(change, [-7, other])


def cut(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type IN ('walsender', 'client backend')"
        )


@pytest.mark.parametrize("trouble", ["nothing", "cuts", "a restart"])
def test_every_state_is_a_committed_one(
    session: ms.Session, url: str, postgres_server: Server, trouble: str
) -> None:
    view = session.sql(
        "CREATE MATERIALIZED VIEW balances AS SELECT id, balance FROM Accounts "
        "INTO postgres(url => :url, table => 'balances')",
        url=url,
    )
    transfers = Transfers(url, 150, seed=5)
    transfers.start()
    looks, hit = 0, 0
    while transfers.is_alive() or not looks:
        if trouble != "nothing" and hit < 3 and transfers.done > 30 * (hit + 1):
            hit += 1
            if trouble == "cuts":
                cut(url)
            elif hit == 1:
                postgres_server.stop("immediate")
                postgres_server.start()
        seen = view.table().column("balance").to_pylist()
        assert sum(seen) == 0
        assert len(seen) in (0, ACCOUNTS)
        looks += bool(seen) and _kept_sums_to_zero(url)
    with psycopg.connect(url) as connection:
        wanted = sorted(connection.execute("SELECT id, balance FROM accounts").fetchall())
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and (_rows(view) != wanted or _kept(url) != wanted):
        time.sleep(0.05)
    assert view.exception is None
    assert _rows(view) == wanted
    assert _kept(url) == wanted
    view.stop()


def _rows(view: Any) -> list[tuple[int, int]]:
    return sorted((row["id"], row["balance"]) for row in view.table().to_pylist())


def _kept(url: str) -> list[tuple[int, int]]:
    try:
        with psycopg.connect(url) as connection:
            return sorted(connection.execute("SELECT id, balance FROM balances").fetchall())
    except psycopg.Error:
        return []


def _kept_sums_to_zero(url: str) -> bool:
    kept = _kept(url)
    assert sum(balance for _, balance in kept) == 0
    return bool(kept)


def test_rows_of_a_stream_see_changes_as_they_are_committed(session: ms.Session, url: str) -> None:
    feed = session.feed("Ticks", {"t": "BIGINT", "id": "BIGINT"}, time="t")
    query = session.sql(
        "SELECT t, a.balance FROM Ticks WINDOW(RANGE 1000) k JOIN Accounts a ON a.id = k.id "
        "EMIT CHANGES"
    )
    with psycopg.connect(url, autocommit=True) as connection, query.start() as running:
        for t, balance in enumerate([5, 6, 7], 1):
            connection.execute("UPDATE accounts SET balance = %s WHERE id = 3", [balance])
            before = running.metrics.sources["Accounts"].rows
            until = time.monotonic() + PATIENCE
            while running.metrics.sources["Accounts"].rows < 8 + 2 * t:
                assert time.monotonic() < until, before
                time.sleep(0.01)
            feed.send([{"t": t, "id": 3}])
        feed.close()
        running.wait()
        totals: dict[tuple[int, int], int] = {}
        for row in running.results().to_pylist():
            if row["at"] < 1000:
                key = row["t"], row["balance"]
                totals[key] = totals.get(key, 0) + row["change"]
    assert {key for key, total in totals.items() if total} == {(1, 7), (2, 7), (3, 7)}
