"""Readers beside a view that changes: never half a batch, never a long wait."""

from __future__ import annotations

import random
import threading
import time

import pytest

import millstream as ms

pytestmark = pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")

TRANSFERS = {"t": "BIGINT", "account": "INT", "amount": "BIGINT"}


def transfers(count: int, first: int) -> list[dict[str, int]]:
    """Two rows each: what one account loses another gains."""
    draw, rows = random.Random(first), []
    for t in range(first, first + count):
        one, other = draw.sample(range(50), 2)
        amount = draw.randrange(1, 100)
        rows.append({"t": t, "account": one, "amount": -amount})
        rows.append({"t": t, "account": other, "amount": amount})
    return rows


def test_the_sum_of_all_accounts_is_always_zero() -> None:
    session = ms.Session(engine="local")
    feed = session.feed("Transfer", TRANSFERS, time="t")
    balances = session.sql(
        "CREATE MATERIALIZED VIEW balances AS SELECT account, SUM(amount) AS balance FROM Transfer "
        "WINDOW(UNBOUNDED) GROUP BY account RETAIN 100"
    )
    over = threading.Event()
    seen: list[tuple[int, int]] = []
    wrong: list[object] = []

    def read() -> None:
        query = session.sql("SELECT SUM(balance) AS s, COUNT(*) AS n FROM balances")
        now = "SELECT SUM(balance) AS s FROM HISTORY(balances) WHERE valid_to > :last"
        past = session.sql(now, last=2**63 - 2)
        while not over.is_set():
            (row,) = query.run().to_pylist()
            (known,) = past.run().to_pylist()
            table = balances.table()
            total = sum(table["balance"].to_pylist())
            seen.append((row["n"], total))
            if row["s"] not in (0, None) or known["s"] not in (0, None) or total:
                wrong.append((row, known, total))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for first in range(0, 6000, 300):
        feed.send(transfers(300, first))
        time.sleep(0.01)
    balances.as_of(5998, timeout=60)
    over.set()
    for reader in readers:
        reader.join(30)
    balances.stop()
    assert not wrong
    assert len(seen) > 3
    assert max(n for n, _ in seen) == 50


def test_several_views_are_read_at_one_moment() -> None:
    """Each at its own frontier; but a view alone never beside another one of itself."""
    session = ms.Session(engine="local")
    feed = session.feed("Transfer", TRANSFERS, time="t")
    session.sql(
        "CREATE MATERIALIZED VIEW a AS SELECT COUNT(*) AS n FROM Transfer WINDOW(UNBOUNDED)"
    )
    twice = session.sql("SELECT x.n AS one, y.n AS other FROM a x, a y")
    for first in range(0, 2000, 100):
        feed.send(transfers(100, first))
        for row in twice.run().to_pylist():
            assert row["one"] == row["other"]
    session.views["a"].stop()


def test_a_reader_does_not_wait_for_a_sink() -> None:
    """Nor for operators: the view is read while its query is busy with something else."""
    session = ms.Session(engine="local")
    feed = session.feed("Transfer", TRANSFERS, time="t")
    held, asleep = threading.Event(), threading.Event()

    def slow(column: object) -> object:
        if not held.is_set() and asleep.is_set():
            held.wait(30)
        return column

    session.function("slow", slow, returns="BIGINT")  # type: ignore[arg-type]
    view = session.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT slow(amount) AS a FROM Transfer WINDOW(RANGE 1000)"
    )
    feed.send(transfers(3, 0))
    view.as_of(1, timeout=30)
    asleep.set()
    feed.send(transfers(3, 3))
    time.sleep(0.05)
    began = time.monotonic()
    assert view.table().num_rows == 4
    assert session.sql("SELECT COUNT(*) AS n FROM v").run().to_pylist() == [{"n": 4}]
    assert time.monotonic() - began < 10
    assert not held.is_set()
    held.set()
    view.as_of(4, timeout=30)
    view.stop()
