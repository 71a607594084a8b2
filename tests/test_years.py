"""DATE and TIMESTAMP have the years 1 to 9999. Rows and values outside of them are errors with
their place, whatever the source, and never an OverflowError where answers are shown."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millstream as ms

BEYOND = pa.array([1, 2_932_897, -719_163, None, 5], pa.date32())
MOMENTS = pa.array([1, 2, 3, 253_402_300_800_000_000, None], pa.timestamp("us"))


def table(**more: Any) -> pa.Table:
    return pa.table({"t": pa.array(range(5), pa.int64()), "e": BEYOND, "m": MOMENTS, **more})


def test_rows_in_memory() -> None:
    session = ms.Session(engine="local")
    with pytest.raises(ms.DataError) as raised:
        session.stream("S", table(), time="t")
    assert str(raised.value) == (
        'error: stream "S", row 2: +10000-01-01 in column "e" is not within the years 1 to 9999'
    )


def test_values_within_arrays_and_structs() -> None:
    session = ms.Session(engine="local")
    times = pa.array([[1], [2**60], None, [], [None]], pa.list_(pa.timestamp("us")))
    with pytest.raises(ms.DataError, match=r'row 2: a value in column "n" is not within the years'):
        session.stream("S", pa.table({"t": pa.array(range(5), pa.int64()), "n": times}), time="t")
    pair = pa.StructArray.from_arrays([BEYOND], names=["e"])
    with pytest.raises(ms.DataError, match=r'row 2: a value in column "p" is not within the years'):
        session.stream("P", pa.table({"t": pa.array(range(5), pa.int64()), "p": pair}), time="t")


ROWS = [
    {"t": 0, "e": "1970-01-02", "m": "1970-01-01"},
    {"t": 1, "e": "10000-01-01", "m": "1970-01-01"},
    {"t": 2, "e": "0000-12-31", "m": "1970-01-01"},
    {"t": 3, "e": None, "m": "10000-01-01 00:00:00"},
    {"t": 4, "e": "1970-01-06", "m": None},
]


def written(folder: Path, format: str) -> Path:
    """A file of five rows, of which the middle ones cannot be taken."""
    file = folder / f"rows.{format}"
    if format == "parquet":
        pq.write_table(table(), file)
    elif format == "csv":
        lines = [",".join("" if v is None else str(v) for v in row.values()) for row in ROWS]
        file.write_text("\n".join(["t,e,m", *lines]) + "\n")
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return file


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_files(tmp_path: Path, format: str) -> None:
    """Rows that can be taken are, the others are errors with their place."""
    file = written(tmp_path, format)
    session = ms.Session(engine="local")
    columns = "t BIGINT, e DATE, m TIMESTAMP"
    session.sql(f"CREATE STREAM S ({columns}) SOURCE {format}('{file}') ORDERED BY t")
    running = session.sql("SELECT t FROM S").start()
    running.wait(60)
    found = running.results().column("t").to_pylist()
    assert found == [0, 4]
    assert len(running.errors) == 3
    for number, error in zip((2, 3, 4), running.errors, strict=True):
        assert file.name in error.message
        assert f" {number + (format == 'csv')}: " in error.message


EXPRESSIONS = [
    "DATE_ADD(e, 2932896)",
    "e + 100000000",
    "e - 719164",
    "CAST('10000-01-01' AS DATE)",
    "CAST('0000-12-31' AS DATE)",
    "CAST('+10000-01-01 00:00:00' AS TIMESTAMP)",
    "CAST(253402300800 AS TIMESTAMP)",
    "TIMESTAMP_SECONDS(253402300800)",
    "TIMESTAMP_MICROS(9223372036854775807)",
    "TIMESTAMP_MILLIS(-62135596800001)",
    "CAST(1e300 AS TIMESTAMP)",
    "late(e)",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text: str, engine: Any) -> None:
    session = ms.Session(engine=engine)
    columns = {"t": pa.array([1], pa.int64()), "e": pa.array([1], pa.date32())}
    session.stream("S", pa.table(columns), time="t")
    late = pa.array([2_932_897], pa.date32())
    session.function("late", lambda column: late, returns="DATE")
    query = session.sql(f"SELECT {text} AS x FROM S")
    assert query.run().to_pylist() == []
    assert len(query.errors) == 1


def test_the_ends_themselves() -> None:
    session = ms.Session(engine="local")
    ends = [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]
    session.stream("S", pa.table({"t": [1, 2], "e": pa.array(ends)}), time="t")
    answer = session.sql("SELECT e, CAST(e AS TIMESTAMP) AS m, e + 0 AS f FROM S").run()
    assert answer.column("e").to_pylist() == answer.column("f").to_pylist() == ends
    assert [moment.date() for moment in answer.column("m").to_pylist()] == ends
