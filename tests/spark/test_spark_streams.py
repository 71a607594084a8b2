"""Streams that Spark reads: DataFrames that people bring and `SOURCE format(…)`, in whole runs and
in started queries, which go on after a restart whatever became of Spark's own log."""

from __future__ import annotations

import os
import shutil
import stat
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import millstream as ms
from millstream.model.elements import Element, normal_form

pytestmark = pytest.mark.xdist_group("spark")

FILES, ROWS = 6, 200
TEXT = "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM S WINDOW(RANGE 50) GROUP BY k"


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    columns = {
        "t": list(numbers),
        "k": [i % 7 for i in numbers],
        "v": [i * i % 23 for i in numbers],
    }
    return pa.table(columns)


ALL = rows(0, FILES * ROWS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return files_in(tmp_path / "rows")


def files_in(folder: Path) -> Path:
    """Files of rows, each with its own time of modification."""
    folder.mkdir()
    for number in range(FILES):
        pq.write_table(rows(number * ROWS, ROWS), folder / f"{number}.parquet")
        time.sleep(0.01)
    return folder


def files_of(session: ms.Session, folder: Path) -> Any:
    reader = session.spark.readStream.schema("t bigint, k bigint, v bigint")
    return reader.option("maxFilesPerTrigger", 1).parquet(str(folder))


def streaming(folder: Path) -> ms.Session:
    session = ms.Session(engine="spark")
    session.stream("S", files_of(session, folder), time="t")
    return session


def local(text: str = TEXT, data: pa.Table = ALL) -> pa.Table:
    session = ms.Session(engine="local")
    session.stream("S", data, time="t")
    return session.sql(text).run()


def elements(table: pa.Table) -> list[Element]:
    found = [tuple(row.values()) for row in table.to_pylist()]
    return normal_form(Element(row[:-2], row[-2], row[-1]) for row in found)


# --- whole runs -----------------------------------------------------------------------------------


def test_a_run_over_a_frame_and_over_files(folder: Path) -> None:
    session = ms.Session(engine="spark")
    session.stream("S", session.spark.read.parquet(str(folder)), time="t")
    assert session.sql(TEXT).run().equals(local())
    assert session.sql(TEXT).snapshot(100).equals(local_snapshot(100))
    session.sql(
        f"CREATE STREAM F (k BIGINT, t BIGINT, v BIGINT) SOURCE parquet('{folder}') ORDERED BY t"
    )
    assert session.sql(TEXT.replace("FROM S", "FROM F")).run().equals(local())


def local_snapshot(at: int, text: str = TEXT) -> pa.Table:
    session = ms.Session(engine="local")
    session.stream("S", ALL, time="t")
    return session.sql(text).snapshot(at)


def test_a_frame_joins_rows_in_memory(folder: Path) -> None:
    text = "SELECT s.k, m.v FROM S WINDOW(RANGE 5) s JOIN M WINDOW(RANGE 9) m ON s.k = m.k"
    answers = []
    for engine in ("spark", "local"):
        session = ms.Session(engine=engine)
        on_spark = engine == "spark"
        data = session.spark.read.parquet(str(folder)) if on_spark else ALL
        session.stream("S", data, time="t")
        session.stream("M", rows(40, 100), time="t")
        answers.append(session.sql(text).run())
    assert answers[0].equals(answers[1])


# --- started queries ------------------------------------------------------------------------------


def test_files_end_and_everything_is_answered(folder: Path) -> None:
    session = ms.Session(engine="spark")
    session.sql(
        f"CREATE STREAM S (t BIGINT, k BIGINT, v BIGINT) "
        f"SOURCE parquet('{folder}', max_files_per_trigger => 2) ORDERED BY t"
    )
    running = session.sql(TEXT).start()
    assert running.wait(300)
    assert elements(running.results()) == elements(local())
    assert running.progress.rows_in == len(ALL)


def test_two_frames_in_one_query(folder: Path) -> None:
    text = "SELECT a.k, b.v FROM S WINDOW(RANGE 5) a JOIN R WINDOW(RANGE 9) b ON a.k = b.k"
    session = streaming(folder)
    session.stream("R", files_of(session, folder), time="t")
    running = session.sql(text + " EMIT CHANGES").start(trigger="available_now")
    assert running.wait(300)
    judge = ms.Session(engine="local")
    for name in ("S", "R"):
        judge.stream(name, ALL, time="t")
    expected = judge.sql(text + " EMIT CHANGES").run().filter(pa.compute.field("at") < len(ALL) - 1)
    assert sorted(map(str, running.results().to_pylist())) == sorted(map(str, expected.to_pylist()))
    assert running.frontier == len(ALL) - 1


def test_what_comes_too_late_and_what_has_no_time(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    columns = {"t": [10, 20, None], "k": [1, 2, 3], "v": [1, 1, 1]}
    pq.write_table(pa.table(columns), folder / "0.parquet")
    time.sleep(0.01)
    pq.write_table(pa.table({"t": [5, 25], "k": [4, 5], "v": [1, 1]}), folder / "1.parquet")
    running = streaming(folder).sql(TEXT).start(trigger="available_now")
    assert running.wait(300)
    assert running.late["S"].to_pylist() == [{"t": 5, "k": 4, "v": 1}]
    (error,) = running.errors
    assert str(error).endswith('stream "S", row (None, 3, 1): the time column "t" is NULL')
    assert running.progress.late == 1
    assert {row["k"] for row in running.results().to_pylist()} <= {1, 2, 5}


def test_texts_are_read_as_on_the_local_engine(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("k,t\n1,1\nx,2\n3,3\n")
    session = ms.Session(engine="spark")
    session.sql(f"CREATE STREAM S (t BIGINT, k BIGINT) SOURCE csv('{tmp_path}') ORDERED BY t")
    running = session.sql("SELECT k FROM S").start()
    assert running.wait(300)
    assert sorted(row["k"] for row in running.results().to_pylist()) == [1, 3]
    assert "0.csv" in str(running.errors[0])


def test_files_that_lack_a_column(folder: Path) -> None:
    session = ms.Session(engine="spark")
    session.sql(f"CREATE STREAM S (t BIGINT, kk BIGINT) SOURCE parquet('{folder}') ORDERED BY t")
    with pytest.raises(ms.QueryError, match='its source has no column "kk"'):
        session.sql("SELECT kk FROM S").run()


def test_time_of_arrival() -> None:
    session = ms.Session(engine="spark")
    session.sql(
        "CREATE STREAM Beats (timestamp TIMESTAMP, value BIGINT) SOURCE rate(rows_per_second => 50)"
    )
    seen = threading.Event()
    tables: list[pa.Table] = []

    def sink(table: pa.Table, batch: object) -> None:
        tables.append(table)
        if sum(t.num_rows for t in tables) >= 20:
            seen.set()

    with session.sql("SELECT value FROM Beats").start(sink):
        assert seen.wait(60)
    values = sorted(v for table in tables for v in table.column("value").to_pylist())
    assert values == list(range(len(values)))


def test_spark_leaves_out_what_nobody_needs(folder: Path) -> None:
    """Rows that are left out still say how far the stream has come; late rows are shown whole."""
    time.sleep(0.01)
    late = pa.table({"t": [3, None, len(ALL)], "k": [1, 2, 3], "v": [5, 6, 7]})
    pq.write_table(late, folder / "late.parquet")
    session = ms.Session(engine="spark")
    session.sql(
        f"CREATE STREAM S (t BIGINT, k BIGINT, v BIGINT) "
        f"SOURCE parquet('{folder}', max_files_per_trigger => 1, follow => true) ORDERED BY t"
    )
    text = "SELECT COUNT(*) AS n FROM S WINDOW(RANGE 50) WHERE k = 4"
    query = session.sql(text)
    assert "native: S columns=[t, k] where" in query.explain(physical=True)
    running = query.start(trigger="available_now")
    assert running.wait(300)
    assert running.frontier == len(ALL)
    assert running.late["S"].to_pylist() == [{"t": 3, "k": 1, "v": 5}]
    assert "row (None, 2, 6)" in str(running.errors[0])
    assert running.progress.rows_in == len(ALL) + 3
    expected = elements(local(text))
    assert [e for e in elements(running.results()) if e.end < len(ALL)] == [
        e for e in expected if e.end < len(ALL)
    ]


def test_runs_leave_out_what_nobody_needs(folder: Path) -> None:
    session = ms.Session(engine="spark")
    session.sql(
        f"CREATE STREAM S (t BIGINT, k BIGINT, v BIGINT) SOURCE parquet('{folder}') ORDERED BY t"
    )
    for text in (
        "SELECT v FROM S WINDOW(RANGE 5) WHERE k = 4 AND v > 3",
        "SELECT COUNT(*) AS n FROM S WINDOW(RANGE 50) WHERE k = 9",
        "SELECT a.k FROM S WINDOW(RANGE 5) a JOIN S WINDOW(RANGE 7) b ON a.k = b.k "
        "WHERE a.v = 3 AND b.v = 2",
    ):
        assert session.sql(text).run().equals(local(text)), text
    assert session.sql(text).snapshot(300).equals(local_snapshot(300, text))


def test_ties_fall_to_the_columns(folder: Path) -> None:
    session = streaming(folder)
    plan = session.sql("SELECT k FROM S WINDOW(ROWS 3)").explain()
    assert "arrival" not in plan


# --- restarts -------------------------------------------------------------------------------------


class Crash(Exception):
    pass


def answered(
    folder: Path, checkpoint: Path, batches: int | None, given: dict[int, pa.Table]
) -> None:
    """Run until as many batches more are given, then fail in the next; None: all that is there."""
    before = len(given)

    def sink(table: pa.Table, batch: Any) -> None:
        if batches is not None and len(given) >= before + batches and batch.id not in given:
            raise Crash
        given[batch.id] = table

    running = (
        streaming(folder).sql(TEXT).start(sink, checkpoint=str(checkpoint), trigger="available_now")
    )
    if batches is None:
        assert running.wait(300)
    else:
        with pytest.raises(ms.QueryError, match="the sink failed"):
            running.wait(300)


def whole(given: dict[int, pa.Table]) -> list[Element]:
    return elements(pa.concat_tables(given[id] for id in sorted(given)))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> list[Element]:
    base = tmp_path_factory.mktemp("whole")
    given: dict[int, pa.Table] = {}
    answered(files_in(base / "rows"), base / "checkpoint", None, given)
    return whole(given)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, pa.Table]]:
    """Files and the checkpoint of a query that failed after some batches, and what it gave."""
    base = tmp_path_factory.mktemp("interrupted")
    given: dict[int, pa.Table] = {}
    answered(files_in(base / "rows"), base / "checkpoint", 3, given)
    return base, given


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def changed(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("damage", [emptied, changed, Path.unlink], ids=lambda d: d.__name__)
@pytest.mark.parametrize("which", ["offsets", "commits", "both", "metadata", "sources/0"])
def test_whatever_becomes_of_sparks_log(
    interrupted: tuple[Path, dict[int, pa.Table]],
    tmp_path: Path,
    uninterrupted: list[Element],
    which: str,
    damage: Callable[[Path], None],
) -> None:
    base, before = interrupted
    given = dict(before)
    shutil.copytree(base / "checkpoint", tmp_path / "checkpoint")
    log = tmp_path / "checkpoint" / "spark" / "S"
    for name in ("offsets", "commits") if which == "both" else (which,):
        files = [log / name] if name == "metadata" else sorted((log / name).glob("[0-9]*"))
        for path in files:
            damage(path)
    answered(base / "rows", tmp_path / "checkpoint", None, given)
    assert whole(given) == uninterrupted


def test_sparks_log_is_gone(folder: Path, tmp_path: Path, uninterrupted: list[Element]) -> None:
    given: dict[int, pa.Table] = {}
    answered(folder, tmp_path / "checkpoint", 2, given)
    shutil.rmtree(tmp_path / "checkpoint" / "spark")
    answered(folder, tmp_path / "checkpoint", None, given)
    assert whole(given) == uninterrupted


def test_sparks_log_is_private(folder: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir(0o755)
    answered(folder, checkpoint, 1, {})
    assert (checkpoint / "spark" / "S" / "offsets").is_dir()
    assert stat.S_IMODE((checkpoint / "spark").stat().st_mode) == 0o700


# --- mistakes -------------------------------------------------------------------------------------


def test_what_has_no_end_is_not_run(folder: Path) -> None:
    with pytest.raises(ms.QueryError, match="streaming DataFrame and has no end"):
        streaming(folder).sql(TEXT).run()


def test_the_local_engine_reads_frames_that_end(folder: Path) -> None:
    spark = ms.Session(engine="spark").spark
    session = ms.Session(engine="local")
    session.stream("S", spark.read.parquet(str(folder)), time="t")
    assert session.sql(TEXT).run().equals(local())
    with pytest.raises(ms.QueryError, match="only Spark can read"):
        session.stream("R", files_of(ms.Session(engine="spark"), folder), time="t")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("parquet('/nowhere')", "does not exist"),
        ("paruet('x')", 'connector "paruet" does not exist'),
        ("rate()", 'its source has no column "t"'),
    ],
)
def test_sources_that_cannot_be_read(source: str, message: str) -> None:
    session = ms.Session(engine="spark")
    session.sql(f"CREATE STREAM S (t BIGINT, k BIGINT, v BIGINT) SOURCE {source} ORDERED BY t")
    with pytest.raises(ms.QueryError, match=message):
        session.sql(TEXT).start().wait(60)


def test_files_in_another_order_than_their_rows_are_warned_of(tmp_path: Path) -> None:
    for number in range(4):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(rows(number * ROWS, ROWS), path)
        os.utime(path, (1_000_000 - number, 1_000_000 - number))
    query = streaming(tmp_path).sql(TEXT)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        running = query.start("noop", trigger="available_now")
        running.wait(120)
    told = [str(each.message) for each in caught if each.category is ms.MillstreamWarning]
    assert len(told) == 1
    assert '200 of the first 400 rows of stream "S" were late' in told[0]
    assert running.progress.late == 600


@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
@pytest.mark.parametrize(
    "text", ["SELECT t, w FROM F", "SELECT t FROM F WHERE w <> 'no'", "SELECT COUNT(w) AS n FROM F"]
)
def test_texts_in_files_that_are_not_utf8(text: str, tmp_path: Path) -> None:
    """Read by Spark alone, our tasks, or our tasks for what Spark leaves."""
    raw = pa.array([b"good", b"br\xffken", b"no", None], pa.binary())
    words = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    pq.write_table(pa.table({"t": range(4), "w": words, "z": range(4)}), tmp_path / "a.parquet")
    found = []
    for engine in ("spark", "local"):
        session = ms.Session(engine=engine)
        session.sql(
            f"CREATE STREAM F (t BIGINT, w STRING, z BIGINT) SOURCE parquet('{tmp_path}') "
            "ORDERED BY t"
        )
        query = session.sql(text)
        with pytest.raises(ms.MillstreamError, match='the text in column "w" is not UTF-8'):
            query.run()
        running = query.start()
        running.wait(120)
        source = running.metrics.sources["F"]
        found.append((elements(running.results()), source.rows, source.errors))
        assert [row.message.rpartition(": ")[2] for row in running.errors] == [
            'the text in column "w" is not UTF-8'
        ]
    assert found[0] == found[1]
    assert found[0][1:] == (4, 1)
