"""Sinks by name: in Python, in INSERT INTO, and the messages for mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

import millstream as ms


def session_of(engine: str = "local") -> ms.Session:
    session = ms.Session(engine=engine)
    session.stream("S", [{"t": i, "x": i * i} for i in range(10)], time="t")
    return session


def written(path: Path) -> list[dict[str, Any]]:
    rows = pyarrow.dataset.dataset(path).to_table().to_pylist()
    return sorted(rows, key=lambda row: row["valid_from"])


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_run_writes_the_answer_and_gives_it(engine: str, tmp_path: Path) -> None:
    session = session_of(engine)
    query = session.sql(f"INSERT INTO parquet(path => '{tmp_path}') SELECT x FROM S")
    assert (
        query.run().to_pylist()
        == written(tmp_path)
        == session.sql("SELECT x FROM S").run().to_pylist()
    )
    assert (tmp_path / "batch-0000000000.parquet").exists()
    with pytest.raises(ms.QueryError, match="has answers written by an earlier run"):
        query.run()


def test_start_writes_where_insert_into_says(tmp_path: Path) -> None:
    session = session_of()
    query = session.sql(f"INSERT INTO parquet('{tmp_path}') SELECT x FROM S")
    running = query.start()
    running.wait()
    assert written(tmp_path) == session.sql("SELECT x FROM S").run().to_pylist()
    with pytest.raises(ms.QueryError, match="has a sink and keeps no results"):
        running.results()


def test_two_sinks_are_one_too_many() -> None:
    query = session_of().sql("INSERT INTO noop() SELECT x FROM S")
    with pytest.raises(ms.QueryError, match='query "query_1" has a sink already: INSERT INTO noop'):
        query.start("console")
    assert query.state == "registered"


def test_a_script_with_several_inserts(tmp_path: Path) -> None:
    session = session_of()
    session.sql(
        f"""INSERT INTO parquet(path => '{tmp_path}/even') SELECT x FROM S WHERE x % 2 = 0;
        INSERT INTO parquet(path => '{tmp_path}/odd') SELECT x FROM S WHERE x % 2 = 1;"""
    )
    for query in session.queries.values():
        query.start().wait()
    assert [row["x"] for row in written(tmp_path / "even")] == [0, 4, 16, 36, 64]
    assert [row["x"] for row in written(tmp_path / "odd")] == [1, 9, 25, 49, 81]


def test_parameters_reach_the_sink(tmp_path: Path) -> None:
    session = session_of()
    session.sql("INSERT INTO parquet(path => :to) SELECT x FROM S", to=str(tmp_path)).run()
    assert len(written(tmp_path)) == 10


def test_memory() -> None:
    session = session_of()
    expected = session.sql("SELECT x FROM S").run()
    for query, sink in (
        (session.sql("SELECT x FROM S"), ms.sink("memory", name="squares")),
        (session.sql("SELECT x FROM S"), "memory"),
        (session.sql("INSERT INTO memory() SELECT x FROM S"), None),
    ):
        running = query.start(sink)
        running.wait()
        assert running.results().equals(expected)


def test_console(capsys: pytest.CaptureFixture[str]) -> None:
    session_of().sql("INSERT INTO console() SELECT x FROM S WHERE x < 2").run()
    assert capsys.readouterr().out == "x | valid_from | valid_to\n0 | 0 | 1\n1 | 1 | 2\n"


def test_an_answer_that_fails_is_not_written(tmp_path: Path) -> None:
    session = ms.Session(on_error="stop")
    session.stream("S", [{"t": 1, "x": 0}], time="t")
    query = session.sql(f"INSERT INTO parquet(path => '{tmp_path}') SELECT 1 / x AS y FROM S")
    with pytest.raises(ms.QueryError, match="failed on row"):
        query.run()
    assert not (tmp_path / "batch-0000000000.parquet").exists()


@pytest.mark.parametrize(
    ("name", "options", "message", "help"),
    [
        ("parket", {}, 'sink "parket" does not exist', 'did you mean "parquet"?'),
        ("delta", {"path": "x"}, 'sink "delta" does not exist', "on the Spark engine Spark's form"),
        ("table", {"name": "x"}, 'sink "table" is a Spark table', 'engine="spark"'),
        ("csv", {}, 'sink "csv" needs the option "path"', 'ms.sink("csv", path=…)'),
        ("csv", {"pth": 1}, 'sink "csv" has no option "pth"', 'did you mean "path"?'),
        ("csv", {"mode": 1}, 'sink "csv" has no option "mode"', 'the options are "path"'),
        ("console", {"limit": 1}, 'sink "console" has no option "limit"', "it has no options"),
    ],
)
def test_mistakes(name: str, options: dict[str, Any], message: str, help: str) -> None:
    with pytest.raises(ms.QueryError) as error:
        session_of().sql("SELECT x FROM S").start(ms.sink(name, **options))
    assert message in str(error.value)
    assert help in str(error.value)


def test_too_many_values() -> None:
    with pytest.raises(ms.QueryError, match='sink "parquet" has too many values'):
        ms.sink("parquet", "a", "b")
    with pytest.raises(ms.QueryError, match='sink "parquet" has too many values'):
        ms.sink("parquet", "a", path="b")


def test_a_sink_that_cannot_be_opened_leaves_nothing_behind(tmp_path: Path) -> None:
    """The checkpoint is free again, and so is a stream that is pushed."""
    session = session_of()
    query = session.sql("SELECT x FROM S")
    with pytest.raises(ms.QueryError, match="is not on this machine"):
        query.start(ms.sink("parquet", path="s3://x"), checkpoint=str(tmp_path))
    query.start("noop", checkpoint=str(tmp_path)).wait()
    feed = session.feed("F", {"t": "BIGINT"}, "t", capacity=2)
    with pytest.raises(ms.QueryError, match="does not exist"):
        session.sql("SELECT t FROM F").start("consol")
    feed.send([{"t": i} for i in range(10)])  # no queue is full
