"""Values given for times: numbers need a unit; the range of times; from every kind of source."""

from __future__ import annotations

import datetime
import json
import socket
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millstream as ms
from millstream.model.time import FARTHEST

MOMENT = datetime.datetime(2025, 10, 9, 8, 53, 20, 250_000)
SECONDS = 1_760_000_000.25
SCHEMA = {"v": "INT", "ts": "TIMESTAMP"}

REMEDY = (
    "pass a datetime or ISO text, or declare what numbers count: ORDERED BY column UNIT SECONDS, "
    'or unit="seconds"'
)


def in_utc(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(tzinfo=datetime.UTC)


# What a time column may be given with a unit, and without one if it is no number.
MOMENTS: dict[str, Any] = {
    "datetime": MOMENT,
    "zoned datetime": in_utc(MOMENT),
    "ISO text": "2025-10-09T08:53:20.25",
    "ISO text with a zone": "2025-10-09T10:53:20.25+02:00",
    "ISO text in UTC": "2025-10-09 08:53:20.25Z",
}
NUMBERS: dict[str, Any] = {
    "float": SECONDS,
    "decimal": Decimal("1760000000.25"),
    "numpy": np.float64(SECONDS),
}


def answers(session: ms.Session, sql: str = "SELECT v, ts FROM S") -> tuple[list[Any], list[Any]]:
    """The rows and the errors of a query over sources that end."""
    with session.sql(sql).start() as running:
        running.wait(30)
    return [(row["v"], row["ts"]) for row in running.results().to_pylist()], running.errors


def sent(data: object, **options: Any) -> tuple[list[Any], list[Any]]:
    session = ms.Session(engine="local")
    feed = session.feed("S", SCHEMA, time="ts", **options)
    with session.sql("SELECT v, ts FROM S").start() as running:
        feed.send(data)
        feed.close()
        running.wait(30)
    return [(row["v"], row["ts"]) for row in running.results().to_pylist()], running.errors


# --- rows of Python -------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [None, "seconds"])
@pytest.mark.parametrize("kind", MOMENTS)
def test_moments_are_taken_as_they_are(kind: str, unit: str | None) -> None:
    assert sent([(1, MOMENTS[kind])], unit=unit) == ([(1, MOMENT)], [])


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_count_the_unit(kind: str) -> None:
    assert sent([(1, NUMBERS[kind])], unit="seconds") == ([(1, MOMENT)], [])


@pytest.mark.parametrize("unit", ["milliseconds", "MICROSECONDS", "minutes", "days"])
def test_whole_numbers_count_every_unit(unit: str) -> None:
    size = {"milliseconds": 1_000, "MICROSECONDS": 1, "minutes": 60_000_000, "days": 86_400_000_000}
    when = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=20_000 * size[unit])
    assert sent([(1, 20_000)], unit=unit) == ([(1, when)], [])


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_number_without_a_unit_is_a_bad_row(kind: str) -> None:
    rows, errors = sent([(1, NUMBERS[kind]), (2, MOMENT)])
    assert rows == [(2, MOMENT)]
    assert [row.number for row in errors] == [1]
    assert errors[0].message == f'{NUMBERS[kind]!r} in column "ts" is a number, not TIMESTAMP'
    assert errors[0].help == REMEDY


@pytest.mark.parametrize(
    "value", [1e300, -1e12, float("nan"), float("inf"), 10**40, Decimal("NaN")]
)
def test_a_number_of_units_beyond_the_calendar_is_a_bad_row(value: Any) -> None:
    rows, errors = sent([(1, value), (2, SECONDS)], unit="seconds")
    assert rows == [(2, MOMENT)]
    assert errors[0].message == (
        f'{value!r} seconds in column "ts" is not within the years 1 to 9999'
    )


def test_a_text_that_is_no_moment_is_a_bad_row() -> None:
    rows, errors = sent([(1, "soon"), (2, "2025-10-09T08:53:20.25")])
    assert (rows, errors[0].message) == (
        [(2, MOMENT)],
        "'soon' in column \"ts\" is not TIMESTAMP",
    )


def test_data_in_memory_is_refused_with_the_remedy() -> None:
    session = ms.Session(engine="local")
    with pytest.raises(ms.DataError) as raised:
        session.stream("S", [(1, MOMENT), (2, 5)], time="ts", schema=SCHEMA)
    assert str(raised.value) == (
        f'error: stream "S", row 2: 5 in column "ts" is a number, not TIMESTAMP\nhelp: {REMEDY}'
    )
    session.stream("S", [(1, SECONDS)], time="ts", schema=SCHEMA, unit="seconds")
    assert session.sql("SELECT ts FROM S").run().column("ts").to_pylist() == [MOMENT]


def test_other_columns_than_the_time_take_no_numbers() -> None:
    session = ms.Session(engine="local")
    schema = {
        "ts": "TIMESTAMP",
        "made": "TIMESTAMP",
        "day": "DATE",
        "took": "INTERVAL DAY TO SECOND",
    }
    right = {"ts": 1, "made": MOMENT, "day": "2026-01-02", "took": datetime.timedelta(1)}
    session.stream("R", [right], time="ts", unit="seconds", schema=schema)
    refused = {
        "made": "pass a datetime or ISO text, or declare the column BIGINT and convert it with "
        "timestamp_seconds, timestamp_millis or timestamp_micros",
        "day": "pass a date or ISO text",
        "took": "pass a timedelta",
    }
    for column, help in refused.items():
        with pytest.raises(ms.DataError) as raised:
            session.stream("S", [right | {column: 5}], time="ts", unit="seconds", schema=schema)
        assert f'5 in column "{column}" is a number' in str(raised.value)
        assert f"help: {help}" in str(raised.value)


def test_numbers_within_arrays_and_structs_are_refused() -> None:
    session = ms.Session(engine="local")
    for type, value in [("ARRAY<TIMESTAMP>", [MOMENT, 5]), ("STRUCT<a: TIMESTAMP>", {"a": 5})]:
        with pytest.raises(ms.DataError, match=r"is not (ARRAY|STRUCT)"):
            session.stream("S", [(value, 1)], schema={"x": type, "t": "BIGINT"}, time="t")
        given = pa.table({"x": [[5]] if isinstance(value, list) else [{"a": 5}], "t": [1]})
        with pytest.raises(ms.DataError, match=r"is not (ARRAY|STRUCT)"):
            session.stream("S", given, schema={"x": type, "t": "BIGINT"}, time="t")


# --- columns --------------------------------------------------------------------------------------

FRAMES: dict[str, Callable[[dict[str, Any]], object]] = {
    "arrow": pa.table,
    "batch": lambda columns: pa.RecordBatch.from_pydict(columns),
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.uint64(), pa.float64()])
def test_a_column_of_numbers_needs_a_unit(frame: str, kind: pa.DataType) -> None:
    numbers = np.array([1_000, 2_000], kind.to_pandas_dtype())
    data = FRAMES[frame]({"v": [1, 2], "ts": numbers})
    rows, errors = sent(data)
    assert rows == []
    assert [(row.number, row.message, row.help) for row in errors] == [
        (n, f'column "ts" is not TIMESTAMP: the data is {kind}', REMEDY) for n in (1, 2)
    ]
    with pytest.raises(ms.DataError, match='column "ts" is not TIMESTAMP: the data is'):
        ms.Session(engine="local").stream("S", data, time="ts", schema=SCHEMA)
    epoch = datetime.datetime(1970, 1, 1)
    expected = [(n, epoch + datetime.timedelta(seconds=n)) for n in (1, 2)]
    assert sent(data, unit="milliseconds") == (expected, [])


def test_decimals_and_texts_in_columns() -> None:
    decimals = pa.array([Decimal("1760000000.250"), Decimal("99999999999999.000"), None])
    rows, errors = sent(pa.table({"v": [1, 2, 3], "ts": decimals}), unit="seconds")
    assert rows == [(1, MOMENT)]
    assert [row.message for row in errors] == [
        "Decimal('99999999999999.000') seconds in column \"ts\" is not within the years 1 to 9999",
        'the time column "ts" is NULL',
    ]
    texts = pa.array([*list(MOMENTS.values())[2:], "soon"]).dictionary_encode()
    rows, errors = sent(pa.table({"v": [1, 2, 3, 4], "ts": texts}))
    assert rows == [(n, MOMENT) for n in (1, 2, 3)]
    assert [row.message for row in errors] == ["'soon' in column \"ts\" is not TIMESTAMP"]


def test_a_column_of_times_is_no_column_of_numbers() -> None:
    data = pandas.DataFrame({"ts": [MOMENT]})
    with pytest.raises(ms.DataError, match='column "ts" is not BIGINT: the data is timestamp'):
        ms.Session(engine="local").stream("S", data, time="ts", schema={"ts": "BIGINT"})


def test_a_unit_that_nothing_needs_is_refused() -> None:
    session = ms.Session(engine="local")
    table = pa.table({"ts": [MOMENT]})
    with pytest.raises(ms.DataError, match='column "ts" is a TIMESTAMP, which has its own unit'):
        session.stream("S", table, time="ts", unit="seconds")
    with pytest.raises(ms.DataError, match='column "ts" is a TIMESTAMP, which has its own unit'):
        session.table("T", table, time="ts", unit="seconds")
    with pytest.raises(ms.BindError, match='stream "S" has a unit but no time'):
        session.stream("S", table, unit="seconds")


# --- other ways in --------------------------------------------------------------------------------


def test_iterators_and_connectors() -> None:
    session = ms.Session(engine="local")
    session.stream("S", iter([(1, SECONDS)]), time="ts", schema=SCHEMA, unit="seconds")
    assert answers(session) == ([(1, MOMENT)], [])
    session.source("made", lambda: [{"v": 1, "ts": SECONDS}, {"v": 2, "ts": MOMENT}])
    session.sql("CREATE STREAM R (v INT, ts TIMESTAMP) SOURCE made() ORDERED BY ts")
    rows, errors = answers(session, "SELECT v, ts FROM R")
    assert rows == [(2, MOMENT)]
    assert [row.message for row in errors] == [
        f'{SECONDS!r} in column "ts" is a number, not TIMESTAMP'
    ]


def test_both_times_of_an_interval_count_the_unit() -> None:
    session = ms.Session(engine="local")
    schema = {"a": "TIMESTAMP", "b": "TIMESTAMP"}
    session.stream("S", [(5, 7), (6, None)], time=("a", "b"), schema=schema, unit="days")
    found = session.sql("SELECT COUNT(*) AS n FROM S").run().column("valid_from").to_pylist()
    assert [moment.day for moment in found] == [6, 7, 8]


def test_tables() -> None:
    session = ms.Session(engine="local")
    table = session.table("T", schema=SCHEMA, time="ts", key="v", unit="seconds")
    table.insert([(1, SECONDS)])
    table.upsert(pa.table({"v": [2], "ts": [SECONDS]}))
    assert table.rows().column("ts").to_pylist() == [MOMENT, MOMENT]
    other = session.table("U", schema=SCHEMA)
    with pytest.raises(ms.DataError, match='5 in column "ts" is a number, not TIMESTAMP'):
        other.insert([(1, 5)])
    with pytest.raises(ms.DataError, match='"ts" is not TIMESTAMP: the data is int64'):
        other.insert(pa.table({"v": [1], "ts": [5]}))


def test_heartbeats_count_what_rows_count() -> None:
    session = ms.Session(engine="local")
    feed = session.feed("S", SCHEMA, time="ts", unit="seconds")
    with session.sql("SELECT COUNT(*) AS n FROM S WINDOW(RANGE 1 SECOND)").start() as running:
        feed.send([(1, SECONDS)])
        feed.heartbeat(SECONDS + 5)
        assert running.snapshot(MOMENT, timeout=30).to_pylist() == [{"n": 1}]
        assert running.frontier == MOMENT + datetime.timedelta(seconds=5)
    plain = session.feed("R", SCHEMA, time="ts")
    with pytest.raises(ms.QueryError) as raised:
        plain.heartbeat(5)
    assert str(raised.value) == (f"error: 5 is not an instant of TIMESTAMP time\nhelp: {REMEDY}")


# --- files and sockets ----------------------------------------------------------------------------


def written(folder: Path, format: str, values: list[Any]) -> str:
    path = folder / f"rows.{format}"
    if format == "parquet":
        pq.write_table(pa.table({"v": range(len(values)), "ts": values}), path)
    elif format == "csv":
        path.write_text("v,ts\n" + "".join(f"{n},{v}\n" for n, v in enumerate(values)))
    else:
        lines = (json.dumps({"v": n, "ts": value}) for n, value in enumerate(values))
        path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.parametrize("values", [[1_760_000_000, 1_760_000_001], [SECONDS, SECONDS + 1]])
@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_files_with_numbers(format: str, values: list[Any], tmp_path: Path) -> None:
    path = written(tmp_path, format, values)
    session = ms.Session(engine="local")
    declared = f"(v INT, ts TIMESTAMP) SOURCE {format}('{path}') ORDERED BY ts"
    session.sql(f"CREATE STREAM S {declared} UNIT SECONDS; CREATE STREAM R {declared}")
    start = datetime.datetime.fromtimestamp(values[0], datetime.UTC).replace(tzinfo=None)
    later = start + datetime.timedelta(seconds=1)
    assert answers(session) == ([(0, start), (1, later)], [])
    if format == "parquet":
        running = session.sql("SELECT ts FROM R").start()
        with pytest.raises(ms.QueryError) as e:
            running.wait(30)
        assert "which is not TIMESTAMP" in str(e.value)
        assert f"help: {REMEDY}" in str(e.value)
    else:
        rows, errors = answers(session, "SELECT v, ts FROM R")
        assert (rows, len(errors)) == ([], 2)
        assert f'file "{path}", line ' in errors[0].message


def test_numbers_among_texts_in_files(tmp_path: Path) -> None:
    values = ["2025-10-09T08:53:20.25Z", SECONDS, 2**53 // 10**6, "soon", "1760000000.25"]
    for format in ("csv", "json"):
        session = ms.Session(engine="local")
        path = written(tmp_path, format, values)
        session.sql(
            f"CREATE STREAM S (v INT, ts TIMESTAMP) SOURCE {format}('{path}') "
            "ORDERED BY ts UNIT SECONDS DELAY 1000000 DAYS"
        )
        rows, errors = answers(session)
        far = datetime.datetime(2255, 6, 5, 23, 47, 34)
        assert sorted(rows) == [(0, MOMENT), (1, MOMENT), (2, far), (4, MOMENT)]
        line = 5 if format == "csv" else 4
        assert [row.message for row in errors] == [
            f'file "{path}", line {line}: \'soon\' in column "ts" is not TIMESTAMP'
        ]


@pytest.fixture
def serve() -> Iterator[Callable[[bytes], int]]:
    with socket.create_server(("localhost", 0)) as server:

        def serving(text: bytes) -> int:
            def run() -> None:
                with server.accept()[0] as connection:
                    connection.sendall(text)

            threading.Thread(target=run, daemon=True).start()
            return int(server.getsockname()[1])

        yield serving


@pytest.mark.parametrize("format", ["csv", "json"])
def test_sockets_with_numbers(format: str, serve: Callable[[bytes], int]) -> None:
    line = f"1,{SECONDS}\n" if format == "csv" else json.dumps({"v": 1, "ts": SECONDS}) + "\n"
    for unit, expected in [("UNIT SECONDS", [(1, MOMENT)]), ("", [])]:
        session = ms.Session(engine="local")
        session.sql(
            f"CREATE STREAM S (v INT, ts TIMESTAMP) SOURCE socket(port => {serve(line.encode())}, "
            f"format => '{format}') ORDERED BY ts {unit}"
        )
        rows, errors = answers(session)
        assert (rows, len(errors)) == (expected, 1 - len(expected))


# --- how far times go -----------------------------------------------------------------------------

LARGE = 'the time in column "t" is too large'
SMALL = 'the time in column "t" is too small'


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("time", [FARTHEST, -FARTHEST])
def test_the_farthest_times_are_answered(engine: str, time: int) -> None:
    session = ms.Session(engine=engine)
    session.stream("S", [(time, 1)], time="t", schema={"t": "BIGINT", "v": "INT"})
    assert session.sql("SELECT v FROM S").run().to_pylist() == [
        {"v": 1, "valid_from": time, "valid_to": time + 1}
    ]


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (FARTHEST + 1, LARGE),
        (FARTHEST + 2, LARGE),
        (2**63 - 1, LARGE),
        (-FARTHEST - 1, SMALL),
        (-FARTHEST - 2, SMALL),
        (-(2**63), SMALL),
    ],
)
@pytest.mark.parametrize("frame", [pa.table, lambda columns: [columns_row(columns)]])
def test_times_beyond_are_bad_rows(time: int, message: str, frame: Any) -> None:
    session = ms.Session(engine="local")
    schema = {"t": "BIGINT", "v": "INT"}
    feed = session.feed("S", schema, time="t")
    data = frame({"t": [time], "v": [1]})
    with session.sql("SELECT v FROM S").start() as running:
        feed.send(data)
        feed.close()
        running.wait(30)
    assert running.results().num_rows == 0
    assert [(row.number, row.message) for row in running.errors] == [(1, message)]
    with pytest.raises(ms.DataError, match=message):
        session.stream("R", data, time="t", schema=schema)


def columns_row(columns: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: values[0] for name, values in columns.items()}
