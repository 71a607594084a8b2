"""Texts that are too long for one array, of which operators must never see anything.

The usual run lowers the limit to a few bytes, so that every batch with texts is cut. With
MILLSTREAM_LONG_TEXTS=1 a query keeps, groups and joins more than 2 GiB of text, which takes some
minutes and 8 GB of memory.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import effort
import millstream as ms
from millstream.model import long_texts
from millstream.physical.batch import Batch, merged, pieces
from millstream.physical.expressions.nodes import Applied, Frame
from millstream.physical.expressions.vector import Vector
from millstream.physical.state.keys import KeySpace
from millstream.physical.state.pool import StringPool
from millstream.runtime import inbox, sources
from oracle.agreement import Bench
from oracle.judged_streams import DERIVED, STREAMS
from oracle.query_texts import TEXTS
from oracle.random_streams import Tape
from runtime.live import Seen
from runtime.schedule_agreement import Trial, expected_of

FEW_BYTES = 12
WANTED_ALL = effort.WANTED is not None
WANTED = bool(os.environ.get("MILLSTREAM_LONG_TEXTS"))


@pytest.fixture
def few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_texts, "MOST_BYTES", FEW_BYTES)


# --- columns --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("few_bytes")
@pytest.mark.parametrize("type", [pa.string(), pa.binary()])
def test_a_pool_gives_wide_columns_only_where_it_must(type: pa.DataType) -> None:
    pool = StringPool()
    texts = pa.array(["four", None, "", "much longer", "four"], type)
    codes = pool.encode(texts)
    short, long = pool.decode(codes[:3], type), pool.decode(codes, type)
    assert (short.type, long.type) == (type, long_texts.wide_type(type))
    assert long.cast(type).equals(texts)
    assert pool.encode(long).tolist() == codes.tolist()
    assert pool.encode(long.slice(2)).tolist() == codes[2:].tolist()
    kept = pool.keep(np.array([0, 2]))
    assert pool.decode(kept[codes], type).to_pylist()[3] == texts[3].as_py()


@pytest.mark.usefixtures("few_bytes")
def test_columns_become_wide_and_ordinary_again() -> None:
    texts = pa.array(["four", "five", "sixes", None])
    both = long_texts.joined_texts([texts, texts])
    assert both.type == pa.large_string()
    assert long_texts.taken_texts(both, pa.array([0, 5, 7])).equals(
        pa.array(["four", "five", None])
    )
    assert long_texts.taken_texts(texts, pa.array([0] * 4)).type == pa.large_string()
    shown = long_texts.ordinary(both)
    assert shown.type == pa.string()
    assert shown.to_pylist() == texts.to_pylist() * 2
    assert max(map(long_texts.size_of, shown.chunks)) <= FEW_BYTES
    assert list(long_texts.cuts(np.array([5, 5, 5, 20, 0, 1]))) == [(0, 2), (2, 3), (3, 4), (4, 6)]
    assert list(long_texts.cuts(np.array([], np.int64))) == [(0, 0)]


@pytest.mark.usefixtures("few_bytes")
def test_batches_are_cut_before_their_texts_are_gathered() -> None:
    batch = Batch.of([pa.array(["four", "x"]), pa.array([1, 2])], [1, 2], [5, 5], frontier=7)
    many = batch.take(np.array([0, 1, 0, 0, 1, 0]))
    parts = pieces(many, [0])
    assert [len(part) for part in parts] == [3, 3]
    assert parts[-1].frontier == 7
    assert [part.columns[0].type for part in parts] == [pa.string()] * 2
    assert merged(parts).columns[0].type == pa.large_string()
    (whole,) = pieces(batch, [0])
    assert whole is batch


@pytest.mark.usefixtures("few_bytes")
def test_keys_of_wide_columns_are_those_of_ordinary_ones() -> None:
    texts = pa.array(["four", "five", "sixes", None, "four"])
    lists = pa.array([["four"], ["five", None], [], None, ["four"]])
    space = KeySpace([pa.large_string(), lists.type])
    codes = space.encode([texts.cast(pa.large_string()), lists], 5)
    assert codes.tolist() == [0, 1, 2, 3, 0]
    kept = space.keep(np.array([1, 3]))
    assert space.encode([texts, lists], 5, add=False).tolist() == [-1, kept[1], -1, kept[3], -1]


# --- queries --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(STREAMS, DERIVED)


@pytest.mark.usefixtures("few_bytes")
@pytest.mark.parametrize("text", TEXTS if WANTED_ALL else TEXTS[::5])
def test_text_under_schedules(bench: Bench, text: str) -> None:
    expected = expected_of(bench, text)
    random = Random(text)
    for _ in range(effort.examples(1)):
        expected.check(Trial(Tape(random.randbytes(400))))


ROWS = [{"t": t, "k": f"key {t % 7}", "v": "v" * (t % 5)} for t in range(300)]
SCHEMA = {"t": "BIGINT", "k": "STRING", "v": "STRING"}
QUERIES = [
    "SELECT k, v FROM S WINDOW(RANGE 40)",
    "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM S WINDOW(RANGE 40) GROUP BY k",
    "SELECT a.k, b.v FROM S WINDOW(RANGE 9) a JOIN S WINDOW(RANGE 9) b ON a.k = b.k",
    "SELECT DISTINCT v FROM S WINDOW(RANGE 9) WHERE k > 'key 2'",
    "SELECT k || v AS kv FROM S WINDOW(ROWS 5)",
    "SELECT t FROM S WHERE UPPER(k || v) LIKE '%3V' AND CAST(RIGHT(k, 1) AS INT) > 1",
    "SELECT 10 / (LENGTH(v || k) - 6) AS n FROM S WINDOW(RANGE 9)",
    "SELECT k, v FROM S WINDOW(RANGE 40) ORDER BY v, k LIMIT 3",
]


def answer(sql: str, data: object) -> pa.Table:
    session = ms.Session(engine="local")
    session.stream("S", data, time="t", schema=SCHEMA)
    return session.sql(sql).run()


@pytest.mark.parametrize("sql", QUERIES)
def test_expressions_with_longer_texts_than_an_array_holds(
    sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow's own limit cannot be lowered: every computation of more than three rows fails here as
    one of more than 2 GiB of text does."""
    expected = answer(sql, ROWS)
    real = Applied.run

    def run(self: Applied, frame: Frame) -> Vector:
        if frame.length > 3:
            raise pa.ArrowInvalid("offset overflow while concatenating arrays")
        return real(self, frame)

    monkeypatch.setattr(Applied, "run", run)
    assert answer(sql, ROWS).equals(expected)


@pytest.mark.parametrize("sql", QUERIES)
def test_data_in_memory_that_is_too_long(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answer(sql, ROWS)
    table = pa.Table.from_pylist(ROWS)
    monkeypatch.setattr(long_texts, "MOST_BYTES", 100)
    data: list[Any] = [
        ROWS,
        table,
        pa.concat_tables([table.slice(200), table.slice(0, 200)]),
        table.cast(pa.schema([("t", "int64"), ("k", pa.large_string()), ("v", pa.large_string())])),
    ]
    for each in data:
        found = answer(sql, each)
        assert found.schema == expected.schema
        assert found.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("sql", QUERIES)
def test_feeds_with_a_checkpoint(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is queued, held and kept is more than one column has room for."""
    expected = answer(sql, ROWS)
    monkeypatch.setattr(long_texts, "MOST_BYTES", 100)
    monkeypatch.setattr(inbox, "BATCH_BYTES", 500)
    monkeypatch.setattr(sources, "SLICE_BYTES", 300)
    seen: list[pa.Table] = []
    for first in (0, 100, 200):
        session = ms.Session(engine="local")
        feed = session.feed("S", SCHEMA, time="t", delay=20)
        query = session.sql(sql)
        running = query.start(lambda table, _: seen.append(table), name="q", checkpoint=tmp_path)
        feed.send(ROWS[first : first + 50])
        feed.send(pa.Table.from_pylist(ROWS[first + 50 : first + 100]))
        if first == 200:
            feed.close()
            running.wait(60)
        running.stop()
    found = pa.concat_tables(seen)
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, _elements(sql, expected)))


def _elements(sql: str, expected: pa.Table) -> list[Any]:
    """What a started query gives: not in normal form, so asked for by another feed."""
    session = ms.Session(engine="local")
    feed = session.feed("S", SCHEMA, time="t", delay=20)
    with session.sql(sql).start() as running:
        feed.send(ROWS)
        feed.close()
        running.wait(60)
    return list(running.results().to_pylist())


# --- queues ---------------------------------------------------------------------------------------


def test_queues_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "CAPACITY_BYTES", 1_000)
    session = ms.Session(engine="local")
    feed = session.feed("S", SCHEMA, time="t")
    seen = Seen()
    with session.sql("SELECT t FROM S").start(seen) as running:
        inlet = feed._audience._inlets[0]
        for t in range(50):
            feed.send([{"t": t, "k": "k" * 200, "v": ""}])
            assert inlet._bytes < 2_000
        seen.await_rows(50)
        assert (inlet._bytes, inlet._load, inlet.queued) == (0, 0, 0)
        assert running.errors == []


def test_rows_one_by_one_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "CAPACITY_BYTES", 1_000)
    monkeypatch.setattr(inbox, "BATCH_BYTES", 300)
    rows = ({"t": t, "k": "k" * 200, "v": "v"} for t in range(500))
    session = ms.Session(engine="local")
    session.stream("S", rows, time="t", schema=SCHEMA)
    with session.sql("SELECT t FROM S").start() as running:
        running.wait(60)
    assert running.results().num_rows == 500


def test_heartbeats_take_no_room_for_each() -> None:
    session = ms.Session(engine="local")
    feed = session.feed("S", SCHEMA, time="t", capacity=3)
    seen = Seen()
    with session.sql("SELECT t FROM S").start(seen) as running, running._rounds.working:
        for t in range(1_000):  # while the query does nothing
            feed.heartbeat(t)
        inlet = feed._audience._inlets[0]
        assert len(inlet) <= 2
        assert inlet._load == len(inlet)


@pytest.mark.skipif(not WANTED, reason="MILLSTREAM_LONG_TEXTS=1 takes minutes and 8 GB")
def test_more_than_2_gib_of_text_in_memory() -> None:
    texts = pa.array(["x" * 1_000_000]).cast(pa.large_string()).take(pa.array([0] * 2_200))
    session = ms.Session(engine="local")
    session.stream("S", pa.table({"t": range(2_200), "k": texts}), time="t")
    found = session.sql("SELECT t, LENGTH(k) AS n FROM S").run()
    assert found.column("n").to_pylist() == [1_000_000] * 2_200


@pytest.mark.skipif(not WANTED, reason="MILLSTREAM_LONG_TEXTS=1 takes minutes and 8 GB")
@pytest.mark.parametrize(
    "text", ["REPEAT(k, 25)", "RPAD(k, 25000000, 'x')", "CONCAT(REPEAT(k, 15), REPEAT(k, 10))"]
)
def test_more_than_2_gib_of_computed_text(text: str) -> None:
    session = ms.Session(engine="local")
    session.stream("S", pa.table({"t": range(100), "k": ["x" * 1_000_000] * 100}), time="t")
    found = session.sql(f"SELECT t, LENGTH(v) AS n FROM (SELECT t, {text} AS v FROM S)").run()
    assert found.column("n").to_pylist() == [25_000_000] * 100
    found = session.sql(f"SELECT t, {text} AS v FROM S").run()
    assert found.num_rows == 100
    assert len(found.column("v")[99].as_py()) == 25_000_000


@pytest.mark.skipif(not WANTED, reason="MILLSTREAM_LONG_TEXTS=1 takes minutes and 8 GB")
def test_more_than_2_gib_of_text() -> None:
    """Two columns that together, and each, are beyond 32 bits: queued, kept, vacuumed, given."""
    size, count = 1_000_000, 2_200
    text = "x" * size
    session = ms.Session(engine="local")
    feed = session.feed("S", {"t": "BIGINT", "k": "STRING"}, time="t")
    given = [0, 0]

    def sink(table: pa.Table, batch: object) -> None:
        given[0] += table.num_rows
        given[1] += sum(map(long_texts.size_of, table.column("k").chunks))

    query = session.sql(f"SELECT k, COUNT(*) AS n FROM S WINDOW(RANGE {count}) GROUP BY k")
    with query.start(sink) as running:
        for first in range(0, count, 50):
            feed.send([(t, f"{t:08d}{text}") for t in range(first, first + 50)])
        feed.send([(10 * count, "end")])  # every group ends at once
        feed.send([(30 * count + t, f"{t:08d}{text}") for t in range(1)])
        feed.close()
        running.wait(600)
    assert given == [count + 2, count * (size + 8) + 3 + size + 8]
