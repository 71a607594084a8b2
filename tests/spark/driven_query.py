"""A query on Spark with a checkpoint, which advances by some rows with each batch; also as a
program of its own that can be killed at any moment.

python driven_query.py <folder> <rows of a batch> <master> [setting=value …]
The answers of each batch are a file of the folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

import millstream as ms
from millstream.model.elements import Element, normal_form
from millstream.runtime import rounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 2_000
SQL = """
SELECT a.k, COUNT(*) AS n, SUM(b.v) AS s FROM A WINDOW(RANGE 50) a
JOIN B WINDOW(RANGE 40) b ON a.k = b.k GROUP BY a.k
"""

Between = Callable[[int], None]


def session_of(engine: str, spark: SparkSession | None = None, rows: int = ROWS) -> ms.Session:
    session = ms.Session(engine=engine, spark=spark)
    for name, factor in (("A", 3), ("B", 5)):
        data = [{"t": i, "k": i * factor % 17, "v": i * i % 101} for i in range(rows)]
        session.stream(name, data, time="t")
    return session


def checkpoint(folder: Path) -> Path:
    return folder / "checkpoint"


@contextmanager
def batches_of(rows: int) -> Iterator[None]:
    """Queries take so many rows of each stream at a time."""
    with mock.patch.multiple(rounds, ROUND_ROWS=rows, BATCH_ROWS=rows):
        yield


def start(
    session: ms.Session, folder: Path, between: Between = lambda id: None, sql: str = SQL
) -> ms.Running:
    """The query; `between` is called after each batch."""

    def sink(table: pa.Table, given: Any) -> None:
        draft = folder / f"{given.id}.unfinished"
        pq.write_table(table, draft)
        draft.rename(folder / f"{given.id}.parquet")
        between(given.id)

    return session.sql(sql).start(sink, name="driven", checkpoint=str(checkpoint(folder)))


def run(
    session: ms.Session,
    folder: Path,
    batch: int,
    between: Between = lambda id: None,
    sql: str = SQL,
) -> None:
    """To its end."""
    with batches_of(batch):
        start(session, folder, between, sql).wait()


def answers(folder: Path) -> list[Element]:
    """Of all batches, each once."""
    given = sorted(folder.glob("*.parquet"), key=lambda path: int(path.stem))
    assert [int(path.stem) for path in given] == list(range(len(given)))
    return elements([row for path in given for row in pq.read_table(path).to_pylist()])


def elements(rows: list[dict[str, Any]]) -> list[Element]:
    return normal_form(
        Element((row["k"], row["n"], row["s"]), row["valid_from"], row["valid_to"]) for row in rows
    )


def expected(rows: int = ROWS) -> list[Element]:
    return elements(session_of("local", rows=rows).sql(SQL).run().to_pylist())


def spark_of(master: str, settings: dict[str, str]) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    quiet = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master(master)
    for name, value in {**quiet, **settings}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(folder: Path, batch: int, master: str, *settings: str) -> None:
    spark = spark_of(master, dict(setting.split("=", 1) for setting in settings))
    run(session_of("spark", spark), folder, batch)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
