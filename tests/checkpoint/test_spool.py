"""Streams that come once, read by queries with a checkpoint: what was accepted is answered once.

MILLSTREAM_KILLS=30 kills so often, the usual run a few times.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millstream as ms
from checkpoint import killed_source
from effort import kills
from fragments.fragment_agreement import MemoryFiles
from millstream.checkpoint.files import CheckpointError
from millstream.checkpoint.spool import Spool
from millstream.model.records import BadRow, Checked, Records
from runtime.live import SOON, Seen

KILLS = kills(2)
AT_MOST = 120  # seconds for a program to do something


# --- the spool ------------------------------------------------------------------------------------


def rows(*values: int, bad: int = 0) -> Checked:
    times = np.array(values, np.int64)
    records = Records([pa.array(values, pa.int64())], times, times + 1)
    return Checked(records, [BadRow(len(values) + i + 1, "bad") for i in range(bad)])


def values(found: list[Checked]) -> list[list[int]]:
    return [part.records.columns[0].to_pylist() for part in found]


def test_what_was_added_is_there_until_it_is_forgotten() -> None:
    files = MemoryFiles()
    spool = Spool(files, "S/1")
    assert spool.load(0) == []
    for part in (rows(1, 2), rows(3, bad=2), rows(), rows(4)):
        spool.add(part)
    again = Spool(files, "S/1").load(0)
    assert values(again) == [[1, 2], [3], [4]]
    assert again[1].bad == [BadRow(2, "bad"), BadRow(3, "bad")]
    assert again[0].records.start.tolist() == [1, 2]
    assert again[0].records.end.tolist() == [2, 3]
    assert values(Spool(files, "S/1").load(2)) == [[3], [4]]
    spool.forget(4)
    assert values(Spool(files, "S/1").load(2)) == [[3], [4]]
    spool.forget(6)
    assert len(files.content) == 1, "the last one stays"
    spool = Spool(files, "S/1")
    assert spool.load(6) == []
    spool.add(rows(5))
    assert values(Spool(files, "S/1").load(6)) == [[5]]
    assert Spool(files, "S").load(0) == []


def test_slices_are_written_without_what_lies_beside_them() -> None:
    files = MemoryFiles()
    spool = Spool(files, "S")
    spool.add(Checked(rows(*range(100_000)).records.slice(10, 20)))
    assert len(*files.content.values()) < 2_000
    assert values(Spool(files, "S").load(0)) == [[*range(10, 20)]]


@pytest.mark.parametrize(
    ("harm", "received", "message"),
    [
        (lambda content: content.pop("spool/S/00000000000000000002"), 0, "rows 2 to 2 are missing"),
        (lambda content: content.pop("spool/S/00000000000000000000"), 0, "row 0 is missing"),
        (lambda content: content.clear(), 4, "it ends at row 0, but 4 rows were read"),
        (lambda content: None, 1, "row 1 is missing"),
        (lambda content: None, 5, "it ends at row 4, but 5 rows were read"),
        (
            lambda content: content.update({"spool/S/00000000000000000002": b"torn"}),
            0,
            "its checksum is wrong",
        ),
    ],
)
def test_damage_is_refused(harm: Callable[[Any], None], received: int, message: str) -> None:
    files = MemoryFiles()
    spool = Spool(files, "S")
    for part in (rows(1, 2), rows(3), rows(4)):
        spool.add(part)
    harm(files.content)
    with pytest.raises(CheckpointError, match=message):
        Spool(files, "S").load(received)


# --- restarts -------------------------------------------------------------------------------------

SCHEMA = {"t": "BIGINT", "k": "BIGINT"}


class Program:
    """Starts a query over a stream S with one checkpoint again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen = Seen()

    def start(self, session: ms.Session, sql: str = "SELECT t FROM S", **options: Any) -> Any:
        return session.sql(sql).start(self.seen, checkpoint=str(self.folder), **options)

    def times(self) -> list[int]:
        return [row["t"] for row in self.seen.rows()]

    def spooled(self) -> int:
        return len([*self.folder.glob("spool/S/*")])


def feeding() -> tuple[ms.Session, Any]:
    session = ms.Session()
    return session, session.feed("S", SCHEMA, time="t")


def test_a_feed_goes_on(tmp_path: Path) -> None:
    program = Program(tmp_path)
    for run in range(3):
        session, feed = feeding()
        running = program.start(session)
        for t in range(10 * run, 10 * run + 10):
            feed.send({"t": t, "k": 1})
        assert running.stop(SOON)
    assert program.times() == [*range(30)]
    assert program.spooled() == 1


def test_what_was_accepted_and_not_answered_is_answered_at_the_next_start(tmp_path: Path) -> None:
    program = Program(tmp_path)
    session, feed = feeding()
    with program.start(session):
        feed.send([{"t": t, "k": 1} for t in range(5)])
        program.seen.await_rows(5)
        with program.seen._changed:  # the query waits in its sink, and answers nothing
            feed.send([{"t": 5, "k": 1}])
            feed.send([{"t": 6, "k": 1}, {"t": "x", "k": 1}])
            left = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    crashed = tmp_path.parent / "crashed"
    for path, data in left.items():
        copy = crashed / path.relative_to(tmp_path)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(data)
    again = Program(crashed)
    session, feed = feeding()
    with again.start(session) as running:
        feed.send({"t": 7, "k": 1})
        again.seen.await_rows(3)
    assert again.times()[-3:] == [5, 6, 7]
    assert [error.number for error in running.errors] == [8]


def test_state_and_rows_go_on_together(tmp_path: Path) -> None:
    program = Program(tmp_path)
    sql = "SELECT k, COUNT(*) AS n FROM S WINDOW(RANGE 100) GROUP BY k"
    for run in range(4):
        session, feed = feeding()
        running = program.start(session, sql)
        feed.send([{"t": 10 * run + i, "k": i % 2} for i in range(10)])
        if run == 3:
            feed.close()
            running.wait(SOON)
        running.stop(SOON)
    session = ms.Session()
    session.stream("S", [{"t": t, "k": t % 2} for t in range(40)], time="t")
    expected = session.sql(sql).run().to_pylist()
    assert sorted(map(repr, program.seen.rows())) == sorted(map(repr, expected))


def test_an_iterator_goes_on(tmp_path: Path) -> None:
    program = Program(tmp_path)
    for run in range(3):
        session = ms.Session()

        def given(run: int = run) -> Iterator[dict[str, int]]:
            for t in range(5):
                yield {"t": 5 * run + t, "k": 1}
            while True:
                time.sleep(0.01)
                yield {"t": 5 * run + 4, "k": 2}

        session.stream("S", given(), schema=SCHEMA, time="t")
        with program.start(session, "SELECT t FROM S WHERE k = 1"):
            program.seen.await_rows(5 * run + 5)
    assert program.times() == [*range(15)]


def test_connectors_that_say_that_they_do_not_come_again(tmp_path: Path) -> None:
    program = Program(tmp_path)
    for run in range(2):
        session = ms.Session()
        given = [{"t": 10 * run + t} for t in range(10)]
        session.source("once", lambda given=given: [*given, *[{"t": -1}] * 9], replays=False)
        session.sql("CREATE STREAM S (t BIGINT) SOURCE once() ORDERED BY t DELAY 1000")
        with program.start(session, "SELECT t FROM S WHERE t >= 0") as running:
            program.seen.await_rows(10)
            assert running.wait(AT_MOST)
        if run == 0:  # it came to its end, and that is known
            assert program.times() == [*range(10)]
    assert program.times() == [*range(10)]


def test_many_send_at_once_also_the_sink(tmp_path: Path) -> None:
    """Who waits for room does not keep the query from sending, nor from making room."""
    sent: list[str] = []
    answered: list[str] = []

    def sink(table: pa.Table, batch: Any) -> None:
        for name in table.column("id").to_pylist():
            answered.append(name)
            if len(name) == 3:
                feed.send({"t": 1, "id": f"{name}-again"})
                sent.append(f"{name}-again")

    def send(letter: str) -> None:
        for number in range(10):
            feed.send([{"t": 1, "id": f"{letter}{number}{i}"} for i in range(2)])
            sent.extend(f"{letter}{number}{i}" for i in range(2))

    for letters in ("abcd", "efgh"):
        session = ms.Session()
        feed = session.feed("S", {"t": "BIGINT", "id": "STRING"}, time="t", capacity=2)
        with session.sql("SELECT id FROM S").start(sink, checkpoint=str(tmp_path)):
            threads = [threading.Thread(target=send, args=(letter,)) for letter in letters]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(AT_MOST)
            deadline = time.monotonic() + AT_MOST
            while len(answered) < len(sent) or len(sent) % 160:
                assert time.monotonic() < deadline
                time.sleep(0.01)
    assert len(sent) == 320
    assert sorted(answered) == sorted(sent)


def test_a_feed_that_is_closed_while_rows_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are accepted, so they come before the end."""
    add = Spool.add

    def slow(spool: Spool, rows: Checked) -> None:
        closing = threading.Thread(target=feed.close)
        closing.start()
        closing.join(0.2)
        add(spool, rows)

    monkeypatch.setattr(Spool, "add", slow)
    program = Program(tmp_path)
    session, feed = feeding()
    with program.start(session) as running:
        feed.send({"t": 1, "k": 1})
        running.wait(SOON)
    assert program.times() == [1]


def test_two_queries_have_a_spool_each(tmp_path: Path) -> None:
    one, other = Program(tmp_path / "one"), Program(tmp_path / "other")
    session, feed = feeding()
    with one.start(session):
        feed.send({"t": 1, "k": 1})
        with other.start(session, "SELECT t FROM S WHERE k = 1"):
            feed.send({"t": 2, "k": 1})
    assert (one.times(), other.times()) == ([1, 2], [2])


def test_rows_that_cannot_be_written_are_not_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    program = Program(tmp_path)
    session, feed = feeding()
    with program.start(session):
        monkeypatch.setattr(os, "link", fail)
        with pytest.raises(ms.QueryError, match="cannot be written: No space left"):
            feed.send({"t": 1, "k": 1})
        monkeypatch.undo()
        feed.send({"t": 2, "k": 1})
    assert program.times() == [2]


# --- kills ----------------------------------------------------------------------------------------


def start(kind: str, folder: Path, run: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, killed_source.__file__, kind, str(folder), str(run)]
    return subprocess.Popen(command)


def await_growth(path: Path, process: subprocess.Popen[bytes], before: int) -> None:
    deadline = time.monotonic() + AT_MOST
    while process.poll() is None and (path.stat().st_size if path.exists() else 0) <= before:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def answers(folder: Path) -> list[dict[str, Any]]:
    given = sorted(folder.glob("*.parquet"), key=lambda path: int(path.stem))
    assert [int(path.stem) for path in given] == list(range(len(given)))
    return [row for path in given for row in pq.read_table(path).to_pylist()]


@pytest.mark.parametrize("kind", ["feed", "iterator"])
def test_killed_again_and_again(tmp_path: Path, kind: str) -> None:
    random = Random(KILLS)
    accepted = tmp_path / "accepted"
    for run in range(1, KILLS + 1):
        before = accepted.stat().st_size if accepted.exists() else 0
        process = start(kind, tmp_path, run)
        await_growth(accepted, process, before)
        time.sleep(random.uniform(0, 0.3))
        process.kill()
        process.wait()
    assert start(kind, tmp_path, 0).wait(AT_MOST) == 0
    names = accepted.read_text().split()
    assert len({name.partition("-")[0] for name in names}) == KILLS + 1
    rows = answers(tmp_path)
    assert {row["n"] for row in rows} == {1}
    found = [row["id"] for row in rows]
    assert len(found) == len(set(found)), "no row is answered twice"
    assert set(names) <= set(found), "what was accepted is answered"


def test_followed_files_when_the_program_is_killed(tmp_path: Path) -> None:
    """Files come while it runs, some of them older than those that were read."""
    random = Random(KILLS)
    data = tmp_path / "data"
    data.mkdir()
    number = 0

    def add_file() -> None:
        nonlocal number
        draft = data / ".draft"
        draft.write_text(f"t,id\n{number},{number}-a\n{number},{number}-b\nx,y\n")
        when = time.time() - random.choice([0, 1000])
        os.utime(draft, (when, when))
        draft.rename(data / f"{random.random()}.csv")
        number += 1

    journal = tmp_path / "checkpoint" / "journal" / "S"
    for run in range(1, KILLS + 1):
        before = len([*journal.glob("*")])
        process = start("files", tmp_path, run)
        deadline = time.monotonic() + AT_MOST
        while len([*journal.glob("*")]) < before + 3:
            add_file()
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(random.uniform(0, 0.1))
        process.kill()
        process.wait()
    add_file()
    assert start("files", tmp_path, 0).wait(AT_MOST) == 0
    found = sorted(row["id"] for row in answers(tmp_path))
    assert found == sorted(f"{i}-{letter}" for i in range(number) for letter in "ab")
