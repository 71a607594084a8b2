"""Sinks that keep a table: after every batch it has the answer, and never half of one."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet
import pytest

import millstream as ms
from millstream.model.errors import MillstreamError

psycopg = pytest.importorskip("psycopg", reason="pip install 'millstream[postgres]'")

Read = Callable[[], list[tuple[Any, ...]]]
QUERY = "SELECT k, v FROM S WINDOW(RANGE 5) EMIT CHANGES"
SCHEMA = {"t": "BIGINT", "k": "BIGINT", "v": "STRING"}


@pytest.fixture(
    params=[
        pytest.param("postgres", marks=pytest.mark.xdist_group("postgres")),
        "duckdb",
        "parquet",
    ]
)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, Read]]:
    if request.param == "postgres":
        url = request.getfixturevalue("url")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS kept")

            def read() -> list[tuple[Any, ...]]:
                return list(connection.execute("SELECT * FROM kept"))

            yield ms.sink("postgres", url=url, table="kept", keep=True), read
            connection.execute("DROP TABLE IF EXISTS kept")
    elif request.param == "duckdb":
        path = str(tmp_path / "kept.duckdb")

        def read() -> list[tuple[Any, ...]]:
            while True:
                try:
                    with duckdb.connect(path) as opened:
                        return opened.execute("SELECT * FROM kept").fetchall()
                except duckdb.OperationalError:  # the last connection is just being closed
                    continue

        yield ms.sink("duckdb", path=path, table="kept", keep=True), read
    else:
        path = str(tmp_path / "kept.parquet")

        def read() -> list[tuple[Any, ...]]:
            with Path(path).open("rb") as file:  # once: by its name it may be opened twice
                return [tuple(row.values()) for row in pyarrow.parquet.read_table(file).to_pylist()]

        yield ms.sink("parquet", path=path, keep=True), read


def rows(seed: int, count: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    values = ["a", "b", "", None, 'it"s, "x"\n']
    return [
        {"t": t // 3, "k": chance.randrange(3), "v": chance.choice(values)} for t in range(count)
    ]


def test_the_table_is_the_answer(target: tuple[Any, Read], tmp_path: Path) -> None:
    """Also when the query is stopped and resumes from its checkpoint."""
    sink, read = target
    given = rows(1, 90)
    at = 0
    for stop in (30, 31, 90):
        session = ms.Session("local")
        feed = session.feed("S", SCHEMA, time="t")
        with session.sql(QUERY).start(sink, checkpoint=str(tmp_path / "checkpoint")):
            for row in given[at:stop]:
                feed.send(row)
        at, final = stop, given[stop - 1]["t"] - 1
        holds = (row for row in given[:stop] if final - 5 < row["t"] <= final)
        assert Counter(read()) == Counter((row["k"], row["v"]) for row in holds)


def test_a_new_query_begins_anew(target: tuple[Any, Read]) -> None:
    sink, read = target
    for seed in (1, 2):
        session = ms.Session("local")
        session.stream("S", rows(seed, 30), time="t", schema=SCHEMA)
        session.sql("SELECT k, v FROM S WINDOW(UNBOUNDED) EMIT CHANGES").start(sink).wait()
        assert Counter(read()) == Counter((row["k"], row["v"]) for row in rows(seed, 30))


def test_transfers_always_sum_to_zero(target: tuple[Any, Read]) -> None:
    """Each transfer takes from one account what it gives to another, at one instant."""
    sink, read = target
    session = ms.Session("local")
    feed = session.feed("S", {"t": "BIGINT", "account": "BIGINT", "amount": "BIGINT"}, time="t")
    text = "SELECT account, SUM(amount) AS balance FROM S WINDOW(UNBOUNDED) GROUP BY account"
    running = session.sql(text + " EMIT CHANGES").start(sink)
    chance = random.Random(3)
    done = threading.Event()

    def transfer() -> None:
        for t in range(150):
            amount, (a, b) = chance.randrange(1, 100), chance.sample(range(10), 2)
            feed.send([{"t": t, "account": a, "amount": amount}])
            feed.send([{"t": t, "account": b, "amount": -amount}])
        feed.close()
        done.set()

    threading.Thread(target=transfer).start()
    looks = 0
    while not done.is_set() or not looks:
        try:
            found = read()
        except (duckdb.Error, FileNotFoundError, psycopg.Error):
            continue  # not there yet
        looks += 1
        assert sum(balance for _, balance in found) == 0
    running.wait()
    assert sum(balance for _, balance in read()) == 0
    assert len(read()) == 10


def test_what_others_own_is_left_alone(
    request: pytest.FixtureRequest, target: tuple[Any, Read], tmp_path: Path
) -> None:
    sink, read = target
    match sink.name:
        case "postgres":
            with psycopg.connect(sink.options["url"], autocommit=True) as connection:
                connection.execute("CREATE TABLE kept (k bigint, v text)")
                connection.execute("INSERT INTO kept VALUES (7, 'mine')")
        case "duckdb":
            with duckdb.connect(sink.options["path"]) as opened:
                opened.execute("CREATE TABLE kept AS SELECT 7::BIGINT AS k, 'mine' AS v")
        case _:
            table = pyarrow.table({"k": [7], "v": ["mine"]})
            pyarrow.parquet.write_table(table, sink.options["path"])
    session = ms.Session("local")
    session.stream("S", rows(1, 9), time="t", schema=SCHEMA)
    with pytest.raises(
        MillstreamError, match=r"rows of its own|was not written by a query that keeps"
    ):
        session.sql(QUERY).start(sink).wait()
    assert read() == [(7, "mine")]


def test_somebody_else_took_rows_away(target: tuple[Any, Read]) -> None:
    sink, read = target
    if sink.name == "parquet":
        return  # what it keeps is in its own memory too
    session = ms.Session("local")
    feed = session.feed("S", SCHEMA, time="t")
    running = session.sql(QUERY).start(sink)
    feed.send([{"t": 1, "k": 1, "v": "a"}, {"t": 2, "k": 2, "v": "b"}])
    while not read():
        assert running.state == "running"
    if sink.name == "postgres":
        with psycopg.connect(sink.options["url"], autocommit=True) as connection:
            connection.execute("DELETE FROM kept")
    else:
        with duckdb.connect(sink.options["path"]) as opened:
            opened.execute("DELETE FROM kept")
    feed.close()
    with pytest.raises(MillstreamError, match="something else has changed it"):
        running.wait()


def test_only_changes_can_be_kept(target: tuple[Any, Read]) -> None:
    session = ms.Session("local")
    session.stream("S", rows(1, 9), time="t", schema=SCHEMA)
    with pytest.raises(MillstreamError, match="EMIT CHANGES"):
        session.sql("SELECT k, v FROM S WINDOW(RANGE 5)").start(target[0])
