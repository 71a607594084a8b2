"""Folders of files: what readers see in them, whose they are, and what a crash leaves."""

from __future__ import annotations

import datetime
import errno
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pytest

import millstream as ms
from millstream.connectors.contracts import GivenBatch, Sink, SinkContext
from millstream.connectors.registry import Connectors
from millstream.connectors.sinks import folder

SCHEMA = pa.schema([("x", pa.int64())])
TABLE = pa.table({"x": [1, 2]}, schema=SCHEMA)


def context(token: str = "one", next_batch: int = 0) -> SinkContext:
    return SinkContext("q", SCHEMA, "FINAL", token, next_batch)


def opened(path: Path, token: str = "one", next_batch: int = 0, kind: str = "parquet") -> Sink:
    return Connectors().open_sink(ms.sink(kind, path=str(path)), context(token, next_batch))


def visible(path: Path) -> list[str]:
    return sorted(name for name in os.listdir(path) if name[0] not in "._")


def rows_session(count: int = 10) -> ms.Session:
    session = ms.Session()
    session.stream("S", [{"t": i, "x": i * i} for i in range(count)], time="t")
    return session


def odd_session() -> ms.Session:
    """A stream with values that formats trip over."""
    rows = [
        {
            "t": datetime.datetime(2024, 1, 1, 0, 0, i, 5),
            "s": ["a", None, "", 'quo"te,\nline é'][i],
            "f": [1.0, float("nan"), float("-inf"), None][i],
            "d": [Decimal("1.50"), Decimal("-0.01"), None, Decimal("0.00")][i],
            "b": [b"\x00\xff", b"", None, b"x"][i],
            "l": [[1, None], [], None, [2]][i],
            "o": [{"u": 1, "v": "z"}, None, {"u": None, "v": ""}, {"u": 2, "v": '"'}][i],
            "day": [datetime.date(2024, 2, 29), None, datetime.date(1, 1, 1), None][i],
            "yes": [True, False, None, True][i],
        }
        for i in range(4)
    ]
    session = ms.Session()
    session.stream("S", rows, time="t")
    return session


# --- what readers see -----------------------------------------------------------------------------


def test_a_batch_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder"
    session = ms.Session()
    feed = session.feed("S", {"t": "BIGINT"}, "t")
    with session.sql("SELECT t FROM S").start(ms.sink("parquet", path=str(path))):
        feed.send({"t": 1})
        feed.heartbeat(10)  # without rows there is no file
        feed.send([{"t": 11}, {"t": 12}])
    names = visible(path)
    assert 0 < len(names) <= 2
    assert names[0].startswith("batch-000000000")
    found = pyarrow.dataset.dataset(path).to_table().to_pylist()
    assert sorted(row["t"] for row in found) == [1, 11, 12]


def test_parquet_has_the_rows_of_run(tmp_path: Path) -> None:
    query = odd_session().sql("SELECT *, t - TIMESTAMP '2024-01-01 00:00:01' AS ago FROM S")
    query.start(ms.sink("parquet", path=tmp_path)).wait()
    table = pyarrow.dataset.dataset(tmp_path).to_table()
    assert repr(table.to_pylist()) == repr(query.run().to_pylist())
    assert table.schema.equals(query.run().schema)
    found = duckdb.sql(f"SELECT s FROM read_parquet('{tmp_path}/*.parquet') ORDER BY t").fetchall()
    assert found == [("a",), (None,), ("",), ('quo"te,\nline é',)]


def test_csv(tmp_path: Path) -> None:
    query = odd_session().sql("SELECT * FROM S WINDOW(RANGE UNBOUNDED)")
    query.start(ms.sink("csv", path=str(tmp_path))).wait()
    lines = (tmp_path / "batch-0000000000.csv").read_text().split("\n")
    assert lines[0] == ('"t","s","f","d","b","l","o","day","yes","valid_from","valid_to"')
    assert lines[1] == (
        '2024-01-01 00:00:00.000005,"a",1,1.50,"AP8=","[1,null]","{""u"":1,""v"":""z""}",'
        "2024-02-29,true,2024-01-01 00:00:00.000005,9999-12-31 23:59:59.999999"
    )
    assert lines[2].startswith('2024-01-01 00:00:01.000005,,nan,-0.01,"","[]",,,false,')
    found = duckdb.sql(f"SELECT s, d, yes FROM read_csv('{tmp_path}/*.csv') ORDER BY t").fetchall()
    assert [row[0] for row in found][3] == 'quo"te,\nline é'


def test_json(tmp_path: Path) -> None:
    query = odd_session().sql("SELECT *, t - TIMESTAMP '2024-01-01 00:00:01' AS ago FROM S")
    query.start(ms.sink("json", path=str(tmp_path))).wait()
    (file,) = (tmp_path / name for name in visible(tmp_path))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert rows[0] == {
        "t": "2024-01-01T00:00:00.000005",
        "s": "a",
        "f": 1.0,
        "d": 1.5,
        "b": "AP8=",
        "l": [1, None],
        "o": {"u": 1, "v": "z"},
        "day": "2024-02-29",
        "yes": True,
        "ago": "PT-0.999995S",
        "valid_from": "2024-01-01T00:00:00.000005",
        "valid_to": "2024-01-01T00:00:00.000006",
    }
    assert [row["f"] for row in rows] == [1.0, "NaN", "-Infinity", None]
    assert '"d":1.50,' in file.read_text()
    found = duckdb.sql(f"SELECT s, o.v FROM read_json('{tmp_path}/*.jsonl') ORDER BY t").fetchall()
    assert found[3] == ('quo"te,\nline é', '"')


def test_answers_without_rows_and_without_columns_of_their_own(tmp_path: Path) -> None:
    for kind in ("parquet", "csv", "json"):
        query = rows_session().sql("SELECT x FROM S WHERE x < 0")
        query.start(ms.sink(kind, path=str(tmp_path / kind))).wait()
        assert visible(tmp_path / kind) == []


def test_a_column_of_nothing_and_small_decimals(tmp_path: Path) -> None:
    for kind in ("parquet", "csv", "json"):
        session = ms.Session()
        rows = [{"t": 1, "d": Decimal("0.0000000001")}]
        session.stream("S", rows, time="t", schema={"t": "BIGINT", "d": "DECIMAL(20, 10)"})
        query = session.sql("SELECT NULL AS nothing, d FROM S")
        query.start(ms.sink(kind, path=str(tmp_path / kind))).wait()
    small = Decimal("0.0000000001")
    (row,) = pyarrow.dataset.dataset(tmp_path / "parquet").to_table().to_pylist()
    assert (row["nothing"], row["d"]) == (None, small)
    text = (tmp_path / "json" / "batch-0000000000.jsonl").read_text()
    row = json.loads(text, parse_float=Decimal)
    assert (row["nothing"], row["d"]) == (None, small)
    _, line = (tmp_path / "csv" / "batch-0000000000.csv").read_text().splitlines()
    nothing, d, *_ = line.split(",")
    assert (nothing, Decimal(d)) == ("", small)


def test_changes(tmp_path: Path) -> None:
    query = rows_session(3).sql("SELECT x FROM S WINDOW(RANGE 2) EMIT CHANGES")
    query.start(ms.sink("parquet", path=str(tmp_path))).wait()
    found = pyarrow.dataset.dataset(tmp_path).to_table()
    assert found.column_names == ["x", "at", "change"]
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, query.run().to_pylist()))


def test_nobody_sees_half_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = opened(tmp_path)
    sink.give(TABLE, GivenBatch(0, None))
    write = folder.write_parquet

    def half(table: pa.Table, file: IO[bytes]) -> None:
        write(table, file)
        file.truncate(10)
        file.flush()
        found = pyarrow.dataset.dataset(tmp_path)
        assert [Path(name).name for name in found.files] == ["batch-0000000000.parquet"]
        assert duckdb.sql(f"FROM '{tmp_path}/*.parquet'").fetchall() == [(1,), (2,)]
        raise OSError(errno.ENOSPC, "No space left on device")

    sink._write = half  # type: ignore[attr-defined]
    with pytest.raises(ms.QueryError, match="cannot be written: No space left on device"):
        sink.give(TABLE, GivenBatch(1, None))
    assert sorted(os.listdir(tmp_path)) == ["_millstream.json", "batch-0000000000.parquet"]


# --- a batch that comes again, and what a crash leaves -------------------------------------------


def test_a_batch_that_comes_again_replaces_itself(tmp_path: Path) -> None:
    for _ in range(2):
        sink = opened(tmp_path, next_batch=3)
        sink.give(TABLE, GivenBatch(3, None))
        sink.close()
    assert visible(tmp_path) == ["batch-0000000003.parquet"]


def test_what_a_crash_left_is_removed(tmp_path: Path) -> None:
    opened(tmp_path).close()
    draft = tmp_path / ".batch-0000000000.parquet.draft"
    draft.write_bytes(b"PAR1")
    opened(tmp_path).close()
    assert not draft.exists()


def test_a_claim_that_was_cut_short(tmp_path: Path) -> None:
    (tmp_path / "_millstream.json").write_text('{"query": "q", "tok')
    sink = opened(tmp_path)
    sink.give(TABLE, GivenBatch(0, None))
    sink.close()
    assert json.loads((tmp_path / "_millstream.json").read_text())["token"] == "one"


def test_a_checkpoint_that_is_older_than_the_folder(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    for number in (0, 4):
        sink.give(TABLE, GivenBatch(number, None))
    sink.close()
    with pytest.raises(ms.QueryError, match="has batch 4 of this query, but its checkpoint is at"):
        opened(tmp_path, next_batch=3)
    opened(tmp_path, next_batch=4).close()


# --- whose folder it is ---------------------------------------------------------------------------


def test_a_folder_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Sir")
    with pytest.raises(ms.QueryError, match=r'is not empty: "letter\.txt" was not written by a'):
        opened(tmp_path)
    assert os.listdir(tmp_path) == ["letter.txt"]


def test_a_folder_of_an_earlier_run(tmp_path: Path) -> None:
    sink = ms.sink("parquet", path=str(tmp_path))
    query = rows_session().sql("SELECT x FROM S").named("squares")
    query.start(sink).wait()
    with pytest.raises(ms.QueryError, match='answers written by an earlier run of query "squares"'):
        query.start(sink)
    assert query.state == "stopped"


def test_a_folder_in_use(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    with pytest.raises(ms.QueryError, match="is in use by another query"):
        opened(tmp_path)
    sink.close()
    opened(tmp_path).close()


def test_a_folder_whose_query_wrote_nothing_is_free(tmp_path: Path) -> None:
    opened(tmp_path, "one").close()
    opened(tmp_path, "two").close()
    assert json.loads((tmp_path / "_millstream.json").read_text())["token"] == "two"


def test_a_folder_of_other_files_of_the_query(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    sink.give(TABLE, GivenBatch(0, None))
    sink.close()
    with pytest.raises(ms.QueryError, match="has answers written by an earlier run"):
        opened(tmp_path, kind="csv", next_batch=1)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("s3://bucket/answers", 'the folder "s3://bucket/answers" is not on this machine'),
        ("", "the path of a sink must be a string, not ''"),
        (5, "the path of a sink must be a string, not 5"),
    ],
)
def test_paths_that_cannot_be(path: Any, message: str) -> None:
    with pytest.raises(ms.QueryError) as error:
        Connectors().open_sink(ms.sink("parquet", path=path), context())
    assert message in str(error.value)


def test_a_path_as_an_address(tmp_path: Path) -> None:
    Connectors().open_sink(ms.sink("parquet", f"file://{tmp_path}/a"), context()).close()
    Connectors().open_sink(ms.sink("parquet", f"file:{tmp_path}/b"), context()).close()
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


# --- sinks that fail ------------------------------------------------------------------------------


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    query = rows_session().sql("SELECT x FROM S")
    with pytest.raises(ms.QueryError, match=r'file/answers" cannot be written: Not a directory'):
        query.start(ms.sink("parquet", path=str(tmp_path / "file" / "answers")))
    assert query.state == "registered"


def test_a_full_disk_ends_its_query_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(table: pa.Table, file: IO[bytes]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    session = ms.Session()
    session.source("numbers", lambda: ({"t": i} for i in range(100)))
    session.sql("CREATE STREAM S (t BIGINT) SOURCE numbers() ORDERED BY t")
    query = session.sql("SELECT t FROM S").named("writer")
    other = session.sql("SELECT t FROM S").start()
    answers, checkpoint = tmp_path / "answers", str(tmp_path / "checkpoint")
    with monkeypatch.context() as patch:
        patch.setattr(folder, "write_parquet", full)
        failing = query.start(ms.sink("parquet", path=str(answers)), checkpoint=checkpoint)
        with pytest.raises(ms.QueryError) as error:
            failing.wait(20)
    assert 'query "writer": the sink failed: the folder "' in str(error.value)
    assert "cannot be written: No space left on device\nhelp: check its per" in str(error.value)
    assert other.wait(20)
    assert other.results().num_rows == 100
    assert visible(answers) == []
    query.start(ms.sink("parquet", path=str(answers)), checkpoint=checkpoint).wait(20)
    found = pyarrow.dataset.dataset(answers).to_table().to_pylist()
    assert sorted(row["t"] for row in found) == list(range(100))


def test_a_restart_goes_on_in_the_same_folder(tmp_path: Path) -> None:
    answers, checkpoint = tmp_path / "answers", str(tmp_path / "checkpoint")
    for _ in range(2):
        query = rows_session().sql("SELECT x FROM S")
        query.start(ms.sink("parquet", path=str(answers)), checkpoint=checkpoint).wait()
    assert pyarrow.dataset.dataset(answers).to_table().num_rows == 10
    query = rows_session().sql("SELECT x FROM S")
    with pytest.raises(ms.QueryError, match="has answers written by an earlier run"):
        query.start(ms.sink("parquet", path=str(answers)), checkpoint=str(tmp_path / "another"))
    query.start(ms.sink("parquet", path=str(tmp_path / "b")), checkpoint=str(tmp_path / "another"))
