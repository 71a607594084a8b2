"""Sinks of the Spark engine: its driver writes folders, and Spark the rest."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

import millstream as ms
from millstream.connectors.contracts import GivenBatch, SinkContext
from millstream.connectors.sinks.folder import local_path
from millstream.connectors.sinks.spark_format import SparkFormat, with_value
from millstream.connectors.sinks.spark_table import SparkTableSink
from millstream.spark.starting import local_spark

pytestmark = pytest.mark.xdist_group("spark")

NOON = datetime.datetime(2024, 1, 1, 12)
SQL = "SELECT k, COUNT(*) AS n FROM S WINDOW(RANGE 5 SECONDS) GROUP BY k"


@pytest.fixture(scope="module")
def spark() -> Any:
    return local_spark()


@pytest.fixture
def zone(spark: Any) -> Iterator[None]:
    """A session whose local time is not UTC."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


def session_of(engine: str = "spark") -> ms.Session:
    session = ms.Session(engine=engine)
    rows = [{"t": NOON + datetime.timedelta(seconds=i), "k": i % 3} for i in range(30)]
    session.stream("S", rows, time="t")
    return session


def expected() -> list[str]:
    return sorted(map(repr, session_of("local").sql(SQL).run().to_pylist()))


def found(path: Path) -> list[str]:
    return sorted(map(repr, pyarrow.dataset.dataset(path).to_table().to_pylist()))


def test_a_folder(spark: Any, tmp_path: Path) -> None:
    answers, checkpoint = tmp_path / "answers", str(tmp_path / "checkpoint")
    for _ in range(2):
        query = session_of().sql(SQL)
        query.start(ms.sink("parquet", path=str(answers)), checkpoint=checkpoint).wait()
    assert found(answers) == expected()
    assert spark.read.parquet(str(answers)).count() == len(expected())


def test_insert_into_and_run(spark: Any, tmp_path: Path) -> None:
    query = session_of().sql(f"INSERT INTO parquet(path => '{tmp_path}') {SQL}")
    assert sorted(map(repr, query.run().to_pylist())) == found(tmp_path) == expected()


def rows_of(frame: Any) -> list[str]:
    """With times as the local engine has them: without their zone, which is UTC."""
    table = frame.toArrow()
    for index, field in enumerate(table.schema):
        if pyarrow.types.is_timestamp(field.type):
            column = table.column(index).cast(pyarrow.timestamp("us", "UTC"))
            table = table.set_column(index, field.name, column.cast(pyarrow.timestamp("us")))
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.usefixtures("zone")
def test_a_table(spark: Any, tmp_path: Path) -> None:
    sink = ms.sink("table", name="answers", path=str(tmp_path / "answers"))
    spark.sql("DROP TABLE IF EXISTS answers")
    for _ in range(2):  # the second time there is nothing left to do
        session_of().sql(SQL).start(sink, checkpoint=str(tmp_path / "checkpoint")).wait()
        assert rows_of(spark.table("answers")) == expected()
    assert dict(spark.table("answers").dtypes)["valid_from"] == "timestamp"
    with pytest.raises(ms.QueryError, match="has answers written by an earlier run"):
        session_of().sql(SQL).start(sink)
    with pytest.raises(
        ms.QueryError, match='table "answers" exists and was not created by this sink'
    ):
        session_of().sql(SQL).start(ms.sink("table", "answers", str(tmp_path / "other")))
    assert not (tmp_path / "other").exists()
    spark.sql("DROP TABLE answers")
    assert found(tmp_path / "answers"), "an external table leaves its files"
    session_of().sql(SQL).start(sink, checkpoint=str(tmp_path / "checkpoint")).wait()
    assert rows_of(spark.table("answers")) == expected()
    spark.sql("DROP TABLE answers")


def test_a_table_has_each_batch_once_and_at_once(spark: Any) -> None:
    schema = pyarrow.schema([("x", pyarrow.int64())])
    table = pyarrow.table({"x": [1, 2]}, schema=schema)
    context = SinkContext("q", schema, "FINAL", "token", 0, spark)
    place = local_path(spark.conf.get("spark.sql.warehouse.dir")) / "numbers"
    shutil.rmtree(place, ignore_errors=True)
    sink = SparkTableSink(context, spark, "numbers", None)
    counts = []
    for number in (0, 0, 1):
        sink.give(table, GivenBatch(number, None))
        counts.append(spark.table("numbers").count())
    sink.close()
    spark.sql("DROP TABLE numbers")
    shutil.rmtree(place)
    assert counts == [2, 2, 4]


def test_names_that_spark_refuses(tmp_path: Path) -> None:
    query = session_of().sql(SQL)
    with pytest.raises(
        ms.QueryError, match=r'table "no\.such" of Spark cannot be made: \[SCHEMA_NOT'
    ):
        query.start(ms.sink("table", name="no.such", path=str(tmp_path)))
    with pytest.raises(ms.QueryError, match=r'view "a\.b\.c" cannot be made: '):
        query.start(ms.sink("memory", name="a.b.c"))


@pytest.mark.usefixtures("zone")
def test_memory(spark: Any) -> None:
    running = session_of().sql(SQL).start(ms.sink("memory", name="counts"))
    running.wait()
    assert rows_of(spark.table("counts")) == expected()
    assert sorted(map(repr, running.results().to_pylist())) == expected()


@pytest.mark.usefixtures("zone")
def test_a_format_of_spark(spark: Any, tmp_path: Path) -> None:
    query = session_of().sql(SQL)
    query.start(ms.sink("orc", path=str(tmp_path / "orc"), compression="zlib")).wait()
    assert rows_of(spark.read.orc(str(tmp_path / "orc"))) == expected()


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("delta", '"io.delta:delta-spark_2.13"'),
        ("kafka", '"org.apache.spark:spark-sql-kafka-0-10_2.13:'),
        ("parket", "that has it"),
    ],
)
def test_a_format_that_spark_lacks(name: str, package: str) -> None:
    query = session_of().sql(SQL)
    with pytest.raises(ms.QueryError) as error:
        query.start(ms.sink(name, path="x"))
    assert f'sink "{name}" does not exist: Spark has no such format' in str(error.value)
    assert f"start Spark with the package {package}" in str(error.value)
    assert query.state == "registered"


def test_what_spark_refuses_ends_the_query(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    query = session_of().sql(SQL).named("writer")
    with pytest.raises(ms.QueryError, match='query "writer": the sink failed: Spark cannot write'):
        query.start(ms.sink("orc", path=str(tmp_path / "file" / "x"))).wait()
    with pytest.raises(ms.QueryError, match="takes options by name, not 'x'"):
        query.start(ms.sink("orc", "x"))


def test_delta_is_told_the_number_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delta's jars need not be there: what its writer would be told is looked at."""
    told: dict[str, Any] = {}

    class Writer:
        def format(self, name: str) -> Writer:
            told["format"] = name
            return self

        def options(self, **options: str) -> Writer:
            told.update(options)
            return self

        def mode(self, mode: str) -> Writer:
            told["mode"] = mode
            return self

        def save(self) -> None:
            told["saved"] = True

    class Frames:
        write = Writer()

        def createDataFrame(self, table: pyarrow.Table) -> Frames:
            return self

    monkeypatch.setattr("millstream.connectors.sinks.spark_format._check_format", lambda *_: None)
    schema = pyarrow.schema([("x", pyarrow.int64())])
    spark: Any = Frames()
    sink = SparkFormat(SinkContext("q", schema, "FINAL", "t0", 0, spark), "delta", path="p", m=True)
    sink.give(pyarrow.table({"x": [1]}, schema=schema), GivenBatch(7, None))
    assert told == {
        "format": "delta",
        "path": "p",
        "m": "true",
        "txnAppId": "t0",
        "txnVersion": "7",
        "mode": "append",
        "saved": True,
    }


def test_kafka_gets_json_unless_there_is_a_value(spark: Any) -> None:
    frame = spark.createDataFrame(pyarrow.table({"k": [1], "n": ["a"]}))
    assert with_value(frame).collect()[0].value == '{"k":1,"n":"a"}'
    own = spark.createDataFrame(pyarrow.table({"value": ["a"]}))
    assert with_value(own).columns == ["value"]


def test_a_source_written_in_python(spark: Any, tmp_path: Path) -> None:
    """Formats that are registered with Spark count too."""
    from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

    path = str(tmp_path / "lines")

    class Writer(DataSourceArrowWriter):
        def write(self, iterator: Any) -> WriterCommitMessage:
            with open(path, "a") as file:
                for batch in iterator:
                    file.writelines(f"{row['k']}\n" for row in batch.to_pylist())
            return WriterCommitMessage()

    class Lines(DataSource):
        @classmethod
        def name(cls) -> str:
            return "lines"

        def writer(self, schema: Any, overwrite: bool) -> Writer:
            return Writer()

    spark.dataSource.register(Lines)
    session_of().sql(SQL).start(ms.sink("lines")).wait()
    assert len(Path(path).read_text().splitlines()) == len(expected())
