"""What once went wrong with relations: restarts, several threads, statements that are refused."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.relations import tables
from millstream.runtime.inbox import Inlet
from millstream.runtime.running import Running

pytestmark = pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")

SOON = 30.0
TIMES = ("BIGINT", "TIMESTAMP")
Rows = list[dict[str, Any]]


class Program:
    """One that joins a stream with a table, and begins where it was."""

    def __init__(self, folder: Path, rows: Rows, changes: str = "retroactive") -> None:
        self.session = ms.Session(engine="local")
        self.feed = self.session.feed("S", {"t": "BIGINT", "k": "INT"}, time="t")
        schema = {"k": "INT", "v": "STRING"}
        self.table = self.session.table("R", rows, key="k", schema=schema, changes=changes)
        self.query = self.session.sql(
            "SELECT t, v FROM S WINDOW(RANGE 1000) LEFT JOIN R ON S.k = R.k EMIT CHANGES"
        )
        self.folder = folder
        self.given: list[tuple[Any, ...]] = []
        self.running: Running

    def start(self) -> None:
        self.running = self.query.start(
            lambda table, _: self.given.extend(tuple(row.values()) for row in table.to_pylist()),
            checkpoint=str(self.folder),
        )

    def run_until(self, instant: int) -> None:
        self.feed.heartbeat(instant)
        deadline = time.monotonic() + SOON
        while self.running.metrics.sources["S"].frontier != instant:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def end(self) -> list[tuple[Any, ...]]:
        self.feed.close()
        self.running.wait(SOON)
        return sorted(self.given, key=lambda row: (row[2], row[3], str(row)))


def test_a_change_ahead_is_not_taken_back_before_it_comes(tmp_path: Path) -> None:
    first = Program(tmp_path, [{"k": 1, "v": "a"}])
    first.table.upsert({"k": 1, "v": "b"}, at=100)
    first.start()
    first.feed.send({"t": 1, "k": 1})
    first.run_until(50)
    first.running.stop()
    second = Program(tmp_path, [])
    second.start()
    assert second.end() == [
        (1, "a", 100, -1),
        (1, None, 100, 1),
        (1, None, 1001, -1),
    ]


def test_after_a_restart_no_change_comes_before_one_that_lies_ahead(tmp_path: Path) -> None:
    first = Program(tmp_path, [])
    first.table.insert({"k": 1, "v": "a"}, at=100)
    first.start()
    first.feed.send({"t": 1, "k": 1})
    first.run_until(50)
    first.running.stop()
    second = Program(tmp_path, [{"k": 1, "v": "a"}])
    second.start()
    with pytest.raises(ms.DataError, match="cannot change at 60: it is final up to 100"):
        second.table.delete({"k": 1}, at=60)
    second.running.stop()


@pytest.mark.parametrize("rows", [[], [{"k": 1, "v": "b"}]])
def test_a_constant_table_has_the_rows_of_the_checkpoint(tmp_path: Path, rows: Rows) -> None:
    first = Program(tmp_path, [{"k": 1, "v": "a"}], "constant")
    first.start()
    first.feed.send({"t": 1, "k": 1})
    first.run_until(50)
    first.running.stop()
    with pytest.raises(ms.QueryError, match="CONSTANT, and has other rows than those in the check"):
        Program(tmp_path, rows, "constant").start()
    again = Program(tmp_path, [{"k": 1, "v": "a"}], "constant")
    again.start()
    with pytest.raises(ms.DataError, match="CONSTANT, and a query reads it"):
        again.table.insert({"k": 2, "v": "c"})
    assert again.end() == [(1, "a", 1001, -1)]


def test_several_threads_replace_the_same_rows() -> None:
    table = ms.Session(engine="local").table("R", key="k", schema={"k": "INT", "v": "INT"})
    errors: list[Exception] = []

    def change(number: int) -> None:
        try:
            for step in range(200):
                table.upsert({"k": step % 2, "v": 1000 * number + step})
        except ms.MillstreamError as error:
            errors.append(error)

    threads = [threading.Thread(target=change, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert not errors
    assert len(table) == 2


def test_a_change_that_fails_does_not_say_what_time_is() -> None:
    table = ms.Session(engine="local").table("R", [{"k": 1}], key="k")
    with pytest.raises(ms.DataError, match="two rows would have the key"):
        table.insert({"k": 1}, at=5)
    table.insert({"k": 2}, at=datetime.datetime(2026, 1, 1))
    assert len(table) == 2


def test_changes_name_the_time_of_the_queries_that_read() -> None:
    session = ms.Session(engine="local")
    feeds = [session.feed(f"S{type}", {"t": type, "k": "INT"}, time="t") for type in TIMES]
    table = session.table("R", key="k", schema={"k": "INT"})
    text = "SELECT S.k FROM S{} WINDOW(RANGE {}) S JOIN R ON S.k = R.k"
    instant = datetime.datetime(2026, 1, 1)
    first = session.sql(text.format("BIGINT", "10")).start()
    with pytest.raises(ms.QueryError, match="is not an instant of BIGINT time"):
        table.insert({"k": 1}, at=instant)
    second = session.sql(text.format("TIMESTAMP", "1 HOUR")).start()
    with pytest.raises(ms.DataError, match="is read in BIGINT time in raw units and in others"):
        table.insert({"k": 1}, at=instant)
    table.insert({"k": 1})
    for feed in feeds:
        feed.close()
    first.wait(SOON)
    second.wait(SOON)


def test_a_change_takes_effect_when_it_says_or_is_refused() -> None:
    """However fast the streams go on."""
    session = ms.Session("local")
    feed = session.feed("A", {"t": "BIGINT", "k": "INT"}, time="t")
    table = session.table("R", key="k", schema={"k": "INT", "v": "BIGINT"})
    given: list[dict[str, int]] = []
    query = session.sql("SELECT R.v FROM A WINDOW(RANGE 1000000) JOIN R ON A.k = R.k EMIT CHANGES")
    running = query.start(lambda rows, _: given.extend(rows.to_pylist()))
    feed.send({"t": 0, "k": 1})
    now, accepted = [0], 0

    def go_on() -> None:
        for now[0] in range(1, 2000):
            feed.heartbeat(now[0])
            time.sleep(0.0003)

    clock = threading.Thread(target=go_on)
    clock.start()
    while clock.is_alive():
        at = now[0] + 1
        with suppress(ms.DataError):
            table.upsert({"k": 1, "v": at}, at=at)
            accepted += 1
    feed.close()
    running.wait()
    assert accepted
    assert [row for row in given if row["change"] > 0 and row["v"] != row["at"]] == []


def test_a_full_queue_holds_nobody_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that reads a view of the table that it changes, while changes wait."""
    monkeypatch.setattr(Inlet.__init__, "__defaults__", (1,))
    session = ms.Session("local")
    table = session.table("R", [{"k": 0}])
    view = session.sql("CREATE MATERIALIZED VIEW V AS SELECT k FROM R")
    failed: list[Exception] = []

    def change(insert: Callable[[], object]) -> None:
        try:
            for _ in range(60):
                insert()
        except Exception as error:
            failed.append(error)

    inserts: list[Callable[[], object]] = [
        lambda: table.insert([{"k": number} for number in range(20)]),
        lambda: session.sql("INSERT INTO R SELECT MAX(k) + 1 FROM V"),
    ]
    threads = [threading.Thread(target=change, args=[each], daemon=True) for each in inserts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert failed == []
    view.stop()


def test_versions_that_nobody_can_see_any_more_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tables, "_MANY", 50)
    session = ms.Session("local")
    feed = session.feed("A", {"t": "BIGINT", "k": "INT"}, time="t")
    table = session.table("R", [{"k": 1, "v": -1}], key="k", schema={"k": "INT", "v": "BIGINT"})
    text = "SELECT t, R.v FROM A WINDOW(RANGE 1) JOIN R ON A.k = R.k"
    running = session.sql(text).start()
    for t in range(300):
        table.upsert({"k": 1, "v": t}, at=t)
        feed.send({"t": t, "k": 1})
        while running.metrics.sources["A"].frontier != t:
            time.sleep(0.001)
    assert len(table._held.records()) < 100
    later = session.sql(text).start()  # it finds what is final as if it had always been
    feed.send({"t": 300, "k": 1})
    feed.close()
    running.wait()
    later.wait()
    assert [(row["t"], row["v"]) for row in running.results().to_pylist()] == [
        (t, min(t, 299)) for t in range(301)
    ]
    assert [(row["t"], row["v"]) for row in later.results().to_pylist()] == [(300, 299)]
