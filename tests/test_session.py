"""The public face: data of every kind, functions, parameters, statements, and errors in data."""

from __future__ import annotations

import datetime
import decimal
import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pandas
import polars
import pyarrow as pa
import pytest

import millstream as ms
from millstream.logical.plan import Distinct

T0 = datetime.datetime(2024, 1, 1)
FOREVER = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)


def second(number: int) -> datetime.datetime:
    return T0 + datetime.timedelta(seconds=number)


def rows(query: ms.Query) -> list[dict[str, Any]]:
    return query.run().to_pylist()


def session_of(*data: dict[str, Any], time: str = "t", **options: Any) -> ms.Session:
    session = ms.Session()
    session.stream("s", list(data), time=time, **options)
    return session


# --- data of every kind ---------------------------------------------------------------------------

TABLE = pa.table({"t": pa.array([3, 1, 2], pa.int64()), "x": ["c", "a", "b"]})

KINDS: dict[str, Callable[[], object]] = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "batches": lambda: TABLE.to_batches(max_chunksize=2),
    "tables": lambda: [TABLE.slice(0, 1), TABLE.slice(1)],
    "iterator of batches": lambda: iter(TABLE.to_batches(max_chunksize=1)),
    "pandas": TABLE.to_pandas,
    "polars": lambda: polars.from_arrow(TABLE),
    "lazy polars": lambda: polars.from_arrow(TABLE).lazy(),  # type: ignore[union-attr]
    "dictionaries": TABLE.to_pylist,
    "iterator of dictionaries": lambda: iter(TABLE.to_pylist()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_data_of_every_kind(kind: str) -> None:
    session = ms.Session()
    session.stream("s", KINDS[kind](), time="t")
    assert rows(session.sql("SELECT x, t FROM s")) == [
        {"x": "a", "t": 1, "valid_from": 1, "valid_to": 2},
        {"x": "b", "t": 2, "valid_from": 2, "valid_to": 3},
        {"x": "c", "t": 3, "valid_from": 3, "valid_to": 4},
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"t": "BIGINT", "x": "STRING"},
        {"t": pa.int64(), "x": pa.string()},
        pa.schema([("t", pa.int64()), ("x", pa.string())]),
    ],
)
def test_tuples_with_a_schema(schema: Any) -> None:
    session = ms.Session()
    session.stream("s", [(2, "b"), [1, None]], time="t", schema=schema)
    assert [(r["t"], r["x"]) for r in rows(session.sql("SELECT * FROM s"))] == [(1, None), (2, "b")]


@pytest.mark.parametrize("data", [[], iter([]), TABLE.slice(0, 0), TABLE.slice(0, 0).to_pandas()])
def test_no_rows(data: object) -> None:
    session = ms.Session()
    session.stream("s", data, time="t", schema={"t": "BIGINT", "x": "STRING"})
    assert rows(session.sql("SELECT x FROM s")) == []
    assert session.sql("SELECT x FROM s").run().column_names == ["x", "valid_from", "valid_to"]


def test_pandas_without_a_zone_and_with_one_are_the_same_instant() -> None:
    session = ms.Session()
    plain = pandas.DataFrame({"ts": [pandas.Timestamp("2024-01-01")], "x": [1]})
    zoned = plain.assign(ts=[pandas.Timestamp("2024-01-01 02:00", tz="Europe/Helsinki")])
    session.stream("plain", plain, time="ts")
    session.stream("zoned", zoned, time="ts")
    (one,) = rows(session.sql("SELECT x FROM plain"))
    (other,) = rows(session.sql("SELECT x FROM zoned"))
    assert one == other == {"x": 1, "valid_from": T0, "valid_to": T0.replace(microsecond=1)}


def test_columns_in_another_order_than_the_schema() -> None:
    session = ms.Session()
    session.stream("s", TABLE.select(["x", "t"]), time="t", schema={"t": "BIGINT", "x": "STRING"})
    assert rows(session.sql("SELECT * FROM s"))[0] == {
        "t": 1, "x": "a", "valid_from": 1, "valid_to": 2,
    }  # fmt: skip


def test_time_of_arrival() -> None:
    session = ms.Session()
    session.stream("s", [{"x": 1}, {"x": 2}])
    found = rows(session.sql("SELECT x FROM s"))
    assert [row["x"] for row in found] == [1, 2]
    assert found[0]["valid_from"] == found[1]["valid_from"]
    assert found[0]["valid_from"].year >= 2024


def test_a_delay_and_an_idle_time_are_durations() -> None:
    session = ms.Session()
    data = [{"ts": T0, "x": 1}]
    session.stream("s", data, time="ts", delay="5 seconds", idle="1 minute")
    stream = session.catalog.streams[0]
    assert (stream.delay, stream.idle) == (5_000_000, 60_000_000)  # type: ignore[union-attr]
    with pytest.raises(ms.ParseError, match='"soon" is not a duration'):
        session.stream("u", data, time="ts", delay="soon")
    with pytest.raises(ms.MillstreamError):
        session.stream("u", data, time="ts", delay="-5 seconds")


def test_a_unit_of_bigint_time() -> None:
    session = session_of({"t": 1000, "x": 1}, unit="milliseconds")
    query = session.sql("SELECT x FROM s WINDOW(RANGE 5 SECONDS)")
    assert rows(query) == [{"x": 1, "valid_from": 1000, "valid_to": 6000}]
    with pytest.raises(ms.MillstreamError, match='"parsecs" is not a unit of time'):
        session.stream("u", [{"t": 1}], time="t", unit="parsecs")


def test_negative_times() -> None:
    session = session_of({"t": -7, "x": 1})
    query = session.sql("SELECT x FROM s WINDOW(RANGE 10) GRANULARITY(5)")
    assert rows(query) == [{"x": 1, "valid_from": -5, "valid_to": 5}]


# --- rows that bring their own interval -----------------------------------------------------------


def test_validity_of_two_columns() -> None:
    session = ms.Session()
    data = [{"a": T0, "b": second(5), "x": 1}, {"a": second(2), "b": None, "x": 2},
            {"a": second(3), "b": FOREVER, "x": 3}]  # fmt: skip
    session.stream("p", data, time=("a", "b"))
    query = session.sql("SELECT x FROM p")
    assert rows(query) == [
        {"x": 1, "valid_from": T0, "valid_to": second(5)},
        {"x": 2, "valid_from": second(2), "valid_to": FOREVER},
        {"x": 3, "valid_from": second(3), "valid_to": FOREVER},
    ]
    assert query.snapshot(second(4)).to_pylist() == [{"x": 1}, {"x": 2}, {"x": 3}]


def test_infinity_of_raw_time_is_the_largest_number() -> None:
    session = session_of({"t": 1, "x": 1})
    query = session.sql("SELECT x FROM s WINDOW(UNBOUNDED)")
    assert rows(query) == [{"x": 1, "valid_from": 1, "valid_to": 2**63 - 1}]


# --- answers --------------------------------------------------------------------------------------


def timestamps() -> ms.Session:
    data = [{"ts": second(i), "x": i % 2} for i in range(4)]
    return session_of(*data, time="ts")


def test_run_gives_final_rows() -> None:
    query = timestamps().sql("SELECT x FROM s WINDOW(RANGE 10 SECONDS) WHERE x = 1 EMIT FINAL")
    assert query.run().column_names == ["x", "valid_from", "valid_to"]
    assert _weights(rows(query)) == {second(1): 1, second(3): 2, second(11): 1, second(13): 0}


def _weights(found: list[dict[str, Any]]) -> dict[datetime.datetime, int]:
    """How many rows are valid from each instant at which that changes."""
    edges = sorted({row[key] for row in found for key in ("valid_from", "valid_to")})
    return {t: sum(r["valid_from"] <= t < r["valid_to"] for r in found) for t in edges}


def test_run_gives_changes() -> None:
    query = timestamps().sql("SELECT COUNT(*) AS n FROM s WINDOW(RANGE 1 SECOND) EMIT CHANGES")
    found = rows(query)
    assert set(found[0]) == {"n", "at", "change"}
    assert found[0] == {"n": 1, "at": T0, "change": 1}
    assert {"n": 1, "at": second(4), "change": -1} in found
    total: dict[int, int] = {}
    for row in found:
        total[row["n"]] = total.get(row["n"], 0) + row["change"]
    assert total == {1: 0, 0: 1}


@pytest.mark.parametrize(
    "at",
    [
        second(2),
        second(2).replace(tzinfo=datetime.UTC),
        second(4).replace(tzinfo=datetime.timezone(datetime.timedelta(seconds=2 * 3600)))
        + datetime.timedelta(seconds=2 * 3600 - 2),
        "2024-01-01 00:00:02",
        "2024-01-01T00:00:02Z",
        1704067202000000,
    ],
)
def test_snapshot_at_an_instant_of_timestamp_time(at: Any) -> None:
    query = timestamps().sql("SELECT x FROM s WINDOW(RANGE 10 SECONDS)")
    assert query.snapshot(at).to_pylist() == [{"x": 0}, {"x": 0}, {"x": 1}]


def test_snapshot_at_a_date() -> None:
    query = timestamps().sql("SELECT x FROM s")
    assert query.snapshot(T0.date()).to_pylist() == [{"x": 0}]
    assert query.snapshot("2024-01-01").to_pylist() == [{"x": 0}]


def test_snapshot_of_raw_time() -> None:
    query = session_of({"t": 1, "x": 1}).sql("SELECT x FROM s WINDOW(RANGE 3)")
    assert [query.snapshot(t).num_rows for t in range(6)] == [0, 1, 1, 1, 0, 0]


@pytest.mark.parametrize("at", ["soon", None, 1.5, True, [1]])
def test_snapshot_at_what_is_no_instant(at: Any) -> None:
    for session in (timestamps(), session_of({"t": 1, "x": 1})):
        with pytest.raises(ms.QueryError, match="is not an instant of"):
            session.sql("SELECT x FROM s").snapshot(at)


def test_snapshot_of_raw_time_takes_no_datetime() -> None:
    query = session_of({"t": 1, "x": 1}).sql("SELECT x FROM s")
    for at in (T0, "2024-01-01"):
        with pytest.raises(ms.QueryError, match="is not an instant of BIGINT time"):
            query.snapshot(at)


def test_an_aggregate_is_cropped_to_the_first_row() -> None:
    query = session_of({"t": 5, "x": 1}).sql("SELECT COUNT(*) AS n FROM s WINDOW(RANGE 2)")
    assert rows(query) == [
        {"n": 1, "valid_from": 5, "valid_to": 7},
        {"n": 0, "valid_from": 7, "valid_to": 2**63 - 1},
    ]


def test_schema_of_a_query() -> None:
    query = timestamps().sql("SELECT x, CAST(x AS STRING) AS y FROM s")
    assert query.schema == pa.schema([("x", pa.int64()), ("y", pa.string())])


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        (-(2**40), -(2**40)),
        (1.5, 1.5),
        ("it's", "it's"),
        ("", ""),
        (None, None),
        (True, True),
        (b"\x00\xff", b"\x00\xff"),
        (decimal.Decimal("1.50"), decimal.Decimal("1.50")),
        (datetime.date(2024, 2, 29), datetime.date(2024, 2, 29)),
        (datetime.datetime(2024, 1, 1, 1, 2, 3, 4), datetime.datetime(2024, 1, 1, 1, 2, 3, 4)),
    ],
)
def test_parameters_of_every_type(value: object, expected: object) -> None:
    session = session_of({"t": 1, "x": 1})
    (row,) = rows(session.sql("SELECT :p AS p FROM s", p=value))
    assert row["p"] == expected


def test_parameters_in_durations_and_conditions() -> None:
    session = timestamps()
    query = session.sql(
        "SELECT x FROM s WINDOW(RANGE :d) WHERE x = :x AND ts >= :since",
        d=datetime.timedelta(seconds=5),
        x=1,
        since=second(2),
    )
    assert rows(query) == [{"x": 1, "valid_from": second(3), "valid_to": second(8)}]


def test_a_parameter_is_a_value_never_text() -> None:
    session = session_of({"t": 1, "x": 1})
    query = session.sql("SELECT x FROM s WHERE 'a' = :p", p="' OR 'a' = 'a")
    assert rows(query) == []


def test_parameters_called_like_the_arguments_of_sql() -> None:
    session = session_of({"t": 1, "x": 1})
    (row,) = rows(session.sql("SELECT :text AS a, :self AS b FROM s", text=1, self=2))
    assert (row["a"], row["b"]) == (1, 2)


# --- functions and aggregates ---------------------------------------------------------------------


def test_a_function_of_arrays() -> None:
    session = session_of({"t": 1, "x": 2}, {"t": 2, "x": None})
    session.function("twice", lambda xs: pa.compute.multiply(xs, 2), returns="BIGINT")
    found = rows(session.sql("SELECT TWICE(x) AS y FROM s WHERE twice(x) IS NULL OR x = 2"))
    assert [row["y"] for row in found] == [4, None]


def test_a_function_may_return_a_list() -> None:
    session = session_of({"t": 1, "x": 2})
    session.function("length_of", lambda xs, ys: [len(xs) + len(ys)], returns=pa.int32())
    query = session.sql("SELECT length_of(x, 'a') AS n FROM s")
    assert query.schema.field("n").type == pa.int32()
    assert rows(query)[0]["n"] == 2


def test_an_aggregate_of_init_merge_eval() -> None:
    session = session_of(*({"t": t, "g": t % 2, "x": x} for t, x in enumerate([3, 4, None, 8])))
    session.aggregate(
        "range_of",
        init=lambda x: (x, x),
        merge=lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),  # type: ignore[index]
        eval=lambda a: a[1] - a[0],  # type: ignore[index]
        returns="BIGINT",
    )
    query = session.sql("SELECT g, range_of(x) AS r FROM s WINDOW(UNBOUNDED) GROUP BY g")
    assert query.snapshot(5).to_pylist() == [{"g": 0, "r": 0}, {"g": 1, "r": 4}]
    over_nothing = session.sql("SELECT RANGE_OF(x) AS r FROM s WINDOW(RANGE 9) WHERE x > 100")
    assert over_nothing.snapshot(3).to_pylist() == [{"r": None}]


def test_a_built_in_name_is_taken() -> None:
    session = ms.Session()
    for name in ("abs", "SUM"):
        with pytest.raises(ms.CatalogError, match="is built in"):
            session.function(name, lambda x: x, returns="INT")
        with pytest.raises(ms.CatalogError, match="is built in"):
            session.aggregate(name, lambda x: x, lambda a, b: a, lambda a: a, returns="INT")


def test_a_name_that_is_none() -> None:
    with pytest.raises(ms.CatalogError, match='"two words" is not a name for a function'):
        ms.Session().function("two words", lambda x: x, returns="INT")


def test_a_type_that_is_none() -> None:
    for returns in ("MONEY", "DECIMAL(99, 1)", "", pa.month_day_nano_interval()):
        with pytest.raises(ms.ParseError, match="is not a type"):
            ms.Session().function("f", lambda x: x, returns=returns)


# --- rows that cannot be evaluated ----------------------------------------------------------------


def fails(xs: pa.Array) -> pa.Array:
    if 0 in xs.to_pylist():
        raise RuntimeError("no zero, please")
    return xs


ROW_ERRORS = {
    "SELECT fails(x) AS y FROM s": 'function "fails" failed: no zero, please',
    "SELECT 12 / x AS y FROM s": "division by zero",
    "SELECT x FROM s WHERE 12 / x > 0": "division by zero",
    "SELECT doubled(x) AS y FROM s": 'function "doubled" returned 2 values for 1 row',
    "SELECT CAST(z AS INT) AS y FROM s": None,
}


def failing(on_error: str = "skip") -> ms.Session:
    session = ms.Session(on_error=on_error)
    data = [{"t": t, "x": x, "z": z} for t, (x, z) in enumerate([(1, "1"), (0, "a"), (2, "2")])]
    session.stream("s", data, time="t")
    session.function("fails", fails, returns="BIGINT")
    session.function("doubled", lambda xs: xs.to_pylist() * (2 if 0 in xs.to_pylist() else 1),
                     returns="BIGINT")  # fmt: skip
    return session


@pytest.mark.parametrize("text", ROW_ERRORS)
def test_a_row_that_fails_goes_to_the_errors(text: str) -> None:
    query = failing().sql(text)
    assert [row["valid_from"] for row in rows(query)] == [0, 2]
    ((row, message),) = query.errors
    assert row == (1, 0, "a")
    expected = ROW_ERRORS[text]
    assert message == expected if expected else "'a'" in message or '"a"' in message


def test_the_errors_are_those_of_the_last_run() -> None:
    query = failing().sql("SELECT 12 / x AS y FROM s")
    query.run()
    query.run()
    assert len(query.errors) == 1
    query.snapshot(0)
    assert len(query.errors) <= 1


@pytest.mark.parametrize("text", ROW_ERRORS)
def test_a_row_that_fails_stops_a_query_by_choice(text: str) -> None:
    query = failing("stop").sql(text)
    with pytest.raises(ms.QueryError) as error:
        query.run()
    message = error.value.diagnostic.message
    assert message.startswith("query \"query_1\" failed on row (1, 0, 'a'): ")
    assert ROW_ERRORS[text] is None or message.endswith(str(ROW_ERRORS[text]))


@pytest.mark.parametrize(("given", "lacking"), [("dump", "load"), ("load", "dump")])
def test_an_aggregate_that_can_only_be_written_or_only_be_read(given: str, lacking: str) -> None:
    session = ms.Session()
    with pytest.raises(ms.CatalogError) as raised:
        session.aggregate("g", int, max, int, returns="INT", **{given: int})
    assert str(raised.value) == (
        f'error: aggregate "g" has "{given}" and no "{lacking}"\nhelp: pass both or neither'
    )


def test_an_aggregate_that_fails() -> None:
    session = session_of({"t": 1, "x": 1}, {"t": 2, "x": 2})

    def merge(a: object, b: object) -> object:
        raise RuntimeError("cannot merge")

    session.aggregate("odd", lambda x: x, merge, lambda a: a, returns="BIGINT")
    query = session.sql("SELECT odd(x) AS o FROM s WINDOW(RANGE 5)")
    assert query.snapshot(1).to_pylist() == [{"o": 1}]
    query.run()
    assert any('aggregate "odd" failed: cannot merge' in message for _, message in query.errors)


# --- data that does not fit -----------------------------------------------------------------------

DATA_ERRORS: list[tuple[str, dict[str, Any], str]] = [
    (
        "null time",
        {"data": [{"t": 1, "x": 1}, {"t": None, "x": 2}], "time": "t"},
        'error: stream "s", row 2: the time column "t" is NULL',
    ),
    (
        "wrong type in a row",
        {
            "data": [{"t": 1, "x": 1}, {"t": 2, "x": "two"}],
            "time": "t",
            "schema": {"t": "BIGINT", "x": "INT"},
        },
        "error: stream \"s\", row 2: 'two' in column \"x\" is not INT",
    ),
    (
        "a number that is too large",
        {"data": [{"t": 1, "x": 2**40}], "time": "t", "schema": {"t": "BIGINT", "x": "INT"}},
        'error: stream "s", row 1: 1099511627776 in column "x" is not INT',
    ),
    (
        "rows of different types",
        {"data": [{"t": 1, "x": 1}, {"t": 2, "x": "two"}], "time": "t"},
        'error: stream "s": the values of column "x" have different types',
    ),
    (
        "a missing column",
        {"data": TABLE, "time": "t", "schema": {"t": "BIGINT", "x": "STRING", "y": "INT"}},
        'error: stream "s": the data has no column "y"',
    ),
    (
        "a time column that is not there",
        {"data": TABLE, "time": "time"},
        'error: column "time" does not exist in stream "s"\nhelp: the columns are "t" and "x"',
    ),
    (
        "a time column of another type",
        {"data": TABLE, "time": "x"},
        'error: column "x" is STRING and cannot order the stream\n'
        "help: time is a TIMESTAMP, or a BIGINT of raw units",
    ),
    (
        "validity that ends before it begins",
        {"data": [{"a": 5, "b": 3}], "time": ("a", "b")},
        'error: stream "s", row 1: the row is valid to 3, before it begins',
    ),
    (
        "validity of no length",
        {"data": [{"a": 5, "b": 5}], "time": ("a", "b")},
        'error: stream "s", row 1: the row is valid to 5, where it begins',
    ),
    (
        "nanoseconds",
        {
            "data": pa.table({"t": pa.array([1001], pa.timestamp("ns"))}),
            "time": "t",
        },
        'error: stream "s", row 1: the time in column "t" has nanoseconds that are not whole '
        "microseconds\nhelp: round it to microseconds first",
    ),
    (
        "no kind of data",
        {"data": 5, "time": "t"},
        'error: stream "s" cannot be made of int\n'
        "help: pass an Arrow table, a pandas or Polars frame, or an iterable of rows",
    ),
    (
        "a string",
        {"data": "rows", "time": "t"},
        'error: stream "s" cannot be made of str\n'
        "help: pass an Arrow table, a pandas or Polars frame, or an iterable of rows",
    ),
    (
        "one row instead of rows",
        {"data": {"t": 1}, "time": "t"},
        'error: stream "s" cannot be made of dict\n'
        "help: pass an Arrow table, a pandas or Polars frame, or an iterable of rows",
    ),
    (
        "tuples without a schema",
        {"data": [(1, 2)], "time": "t"},
        'error: stream "s" is made of rows without names\n'
        'help: pass dictionaries, or schema={"column": "TYPE", …}',
    ),
    (
        "a tuple that is too short",
        {"data": [(1, 2), (3,)], "time": "t", "schema": {"t": "BIGINT", "x": "INT"}},
        'error: stream "s", row 2: expected 2 values, found (3,)',
    ),
    (
        "numbers instead of rows",
        {"data": [1, 2], "time": "t", "schema": {"t": "BIGINT"}},
        'error: stream "s", row 1: expected 1 value, found 1',
    ),
    (
        "a type that does not exist",
        {"data": [], "time": "t", "schema": {"t": "BIGINT", "x": "MONEY"}},
        'error: "MONEY" is not a type',
    ),
    (
        "two columns of one name",
        {"data": pa.table([[1], [2]], names=["t", "t"]), "time": "t"},
        'error: stream "s" has two columns named "t"',
    ),
    (
        "columns whose names differ by case",
        {"data": [{"t": 1, "x": 1, "X": 2}], "time": "t"},
        'error: stream "s" has two columns named "X"',
    ),
    (
        "a column with a reserved beginning",
        {"data": [{"t": 1, "$arrival": 1}], "time": "t"},
        'error: stream "s": the name of a column cannot begin with "$"',
    ),
    (
        "a type of Arrow that has no counterpart",
        {"data": pa.table({"t": [1], "x": pa.array([None], pa.month_day_nano_interval())}),
         "time": "t"},
        'error: stream "s", column "x": data of the Arrow type "month_day_nano_interval" is not '
        "supported",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "expected"), [case[1:] for case in DATA_ERRORS], ids=[c[0] for c in DATA_ERRORS]
)
def test_data_that_does_not_fit(options: dict[str, Any], expected: str) -> None:
    session = ms.Session()
    with pytest.raises(ms.MillstreamError) as error:
        session.stream("s", **options)
    assert str(error.value) == expected
    assert session.catalog.streams == [], "a refused stream is not registered"


def test_a_stream_that_exists_keeps_its_data() -> None:
    session = session_of({"t": 1, "x": 1})
    with pytest.raises(ms.CatalogError, match='stream "s" exists already'):
        session.stream("S", [{"t": 2, "x": 2}], time="t")
    assert [row["x"] for row in rows(session.sql("SELECT x FROM s"))] == [1]


def test_an_iterator_that_raises_tells_its_own_error() -> None:
    def data() -> Iterator[dict[str, int]]:
        yield {"t": 1}
        raise OSError("disk gone")

    with pytest.raises((OSError, ms.DataError), match="disk gone"):
        ms.Session().stream("s", data(), time="t")


# --- connectors -----------------------------------------------------------------------------------

CREATE = "CREATE STREAM s (t BIGINT NOT NULL, x INT) SOURCE mine('a', n => 2) ORDERED BY t"


def connected(connect: Callable[..., Any], decode: Callable[[Any], Any] | None = None) -> ms.Query:
    session = ms.Session()
    session.source("Mine", connect, decode)
    session.sql(CREATE)
    query = session.sql("SELECT x FROM s")
    assert isinstance(query, ms.Query)
    return query


def test_a_connector_gets_its_values_and_options() -> None:
    given: list[Any] = []

    def connect(*values: Any, **options: Any) -> list[dict[str, int]]:
        given.append((values, options))
        return [{"t": 1, "x": 5}]

    assert [row["x"] for row in rows(connected(connect))] == [5]
    assert given == [(("a",), {"n": 2})]


def test_a_decoder_makes_rows() -> None:
    query = connected(lambda *a, **o: ["1 5", "2 6"], lambda line: tuple(map(int, line.split())))
    assert [row["x"] for row in rows(query)] == [5, 6]


@pytest.mark.parametrize(
    ("connect", "expected"),
    [
        (lambda *a, **o: 1 / 0, 'error: stream "s" cannot be read: division by zero'),
        (lambda b: [], 'error: stream "s" cannot be read: '),
        (lambda *a, **o: 5, 'error: stream "s" cannot be made of int'),
        (lambda *a, **o: [(1,)], 'error: stream "s", row 1: expected 2 values, found (1,)'),
        (lambda *a, **o: [{"t": "x", "x": 1}],
         "error: stream \"s\", row 1: 'x' in column \"t\" is not BIGINT"),
        (lambda *a, **o: [{"t": None, "x": 1}],
         'error: stream "s", row 1: column "t" is NOT NULL'),
        (lambda *a, **o: [{"x": 1}], 'error: stream "s": the data has no column "t"'),
    ],
)  # fmt: skip
def test_a_connector_that_fails(connect: Callable[..., Any], expected: str) -> None:
    with pytest.raises(ms.MillstreamError) as error:
        connected(connect).run()
    assert str(error.value).startswith(expected)


def test_an_unknown_connector() -> None:
    session = ms.Session()
    session.source("mime", list)
    session.sql(CREATE)
    with pytest.raises(ms.QueryError) as error:
        session.sql("SELECT x FROM s").run()
    assert str(error.value) == (
        'error: stream "s" cannot be read: connector "mine" does not exist\n'
        'help: did you mean "mime"?'
    )


def test_an_unknown_connector_where_there_is_none() -> None:
    session = ms.Session()
    session.sql(CREATE)
    with pytest.raises(ms.QueryError, match=r"register it with session\.source"):
        session.sql("SELECT x FROM s").run()


# --- statements -----------------------------------------------------------------------------------


def test_show_streams() -> None:
    session = session_of({"t": 1, "x": 1})
    session.sql(
        "CREATE STREAM Bid (price DECIMAL(10, 2), ts TIMESTAMP) SOURCE f() ORDERED BY ts;"
        "CREATE STREAM P (a TIMESTAMP, b TIMESTAMP) SOURCE f() VALID FROM a TO b;"
        "CREATE STREAM Arriving (tags ARRAY<STRING>) SOURCE f();"
        "CREATE STREAM Cheap AS SELECT price FROM Bid WHERE price < 5"
    )
    assert session.sql("SHOW STREAMS").to_pylist() == [
        {"name": "s", "kind": "source", "columns": "t BIGINT, x BIGINT", "time": "t"},
        {"name": "Bid", "kind": "source", "columns": "price DECIMAL(10, 2), ts TIMESTAMP",
         "time": "ts"},
        {"name": "P", "kind": "source", "columns": "a TIMESTAMP, b TIMESTAMP",
         "time": "valid from a to b"},
        {"name": "Arriving", "kind": "source", "columns": "tags ARRAY<STRING>",
         "time": "time of arrival"},
        {"name": "Cheap", "kind": "derived", "columns": "price DECIMAL(10, 2)",
         "time": "TIMESTAMP time"},
    ]  # fmt: skip


def test_show_queries() -> None:
    session = session_of({"t": 1, "x": 1})
    session.sql("SELECT x FROM s [RANGE 5]; INSERT INTO console() SELECT x FROM s EMIT CHANGES")
    assert session.sql("SHOW QUERIES").to_pylist() == [
        {"name": "query_1", "state": "registered",
         "query": "SELECT x FROM s WINDOW(RANGE 5)"},
        {"name": "query_2", "state": "registered",
         "query": "INSERT INTO console() SELECT x FROM s EMIT CHANGES"},
    ]  # fmt: skip


def test_show_of_nothing_has_its_columns() -> None:
    session = ms.Session()
    assert session.sql("SHOW STREAMS").column_names == ["name", "kind", "columns", "time"]
    assert session.sql("SHOW QUERIES").column_names == ["name", "state", "query"]


def test_several_statements_give_the_result_of_the_last() -> None:
    session = session_of({"t": 1, "x": 1})
    query = session.sql("CREATE STREAM d AS SELECT x + 1 AS y FROM s; SELECT y FROM d;")
    assert [row["y"] for row in rows(query)] == [2]
    assert session.sql("") is None
    assert session.sql("DROP QUERY query_1") is None


def test_a_byte_order_mark_is_no_character() -> None:
    session = session_of({"t": 1, "x": 1})
    assert session.sql("\ufeffSHOW QUERIES").num_rows == 0
    with pytest.raises(ms.BindError) as error:
        session.sql("\ufeffSELECT y FROM s")
    assert str(error.value).splitlines()[1:4] == [
        "  --> <sql>:1:8", "1 | SELECT y FROM s", "  |        ^",
    ]  # fmt: skip


def test_statements_before_an_error_have_been_run() -> None:
    session = session_of({"t": 1, "x": 1})
    with pytest.raises(ms.BindError):
        session.sql("CREATE STREAM d AS SELECT x FROM s; SELECT nothing FROM d")
    assert [stream.name for stream in session.catalog.streams] == ["s", "d"]
    assert session.queries == {}


def test_a_syntax_error_is_found_before_anything_is_run() -> None:
    session = session_of({"t": 1, "x": 1})
    with pytest.raises(ms.ParseError):
        session.sql("CREATE STREAM d AS SELECT x FROM s; SELECT (x FROM d")
    assert [stream.name for stream in session.catalog.streams] == ["s"]


def test_drop() -> None:
    session = session_of({"t": 1, "x": 1})
    query = session.sql("CREATE STREAM d AS SELECT x FROM s; SELECT x FROM d")
    with pytest.raises(ms.CatalogError, match='stream "d" is in use by "query_1"'):
        session.sql("DROP STREAM d")
    session.sql(f"DROP QUERY {query.name}; DROP STREAM d; DROP STREAM s")
    assert session.queries == {}
    assert session.catalog.streams == []
    session.stream("s", [{"t": 1, "y": 1}], time="t")
    assert [row["y"] for row in rows(session.sql("SELECT y FROM s"))] == [1]


def test_derived_streams_of_derived_streams() -> None:
    session = session_of({"t": 1, "x": 1}, {"t": 2, "x": 5})
    session.sql(
        "CREATE STREAM w AS SELECT x FROM s WINDOW(RANGE 5);"
        "CREATE STREAM m AS SELECT MAX(x) AS m FROM w"
    )
    query = session.sql("SELECT m FROM m WHERE m > 1 EMIT CHANGES")
    assert rows(query) == [
        {"m": 5, "at": 2, "change": 1},
        {"m": 5, "at": 7, "change": -1},
    ]


def test_a_derived_stream_keeps_its_parameters() -> None:
    session = session_of({"t": 1, "x": 1}, {"t": 2, "x": 5})
    session.sql("CREATE STREAM d AS SELECT x FROM s WHERE x > :least", least=2)
    assert [row["x"] for row in rows(session.sql("SELECT x FROM d"))] == [5]


# --- explain and the rest -------------------------------------------------------------------------


def test_explain() -> None:
    query = session_of({"t": 1, "x": 1}).sql("SELECT x FROM s WINDOW(RANGE 5) WHERE x > 1")
    assert query.explain() == (
        "Map columns=[s.x]\n"
        "  Filter where=s.x > CAST(1 AS BIGINT)\n"
        "    TimeWindow range=5\n"
        "      Source stream=s"
    )


def test_explain_as_json() -> None:
    query = session_of({"t": 1, "x": 1}).sql("SELECT x FROM s WINDOW(RANGE 5)")
    plan = json.loads(query.explain(format="json"))
    assert plan["operator"] == "Map"
    assert plan["inputs"][0]["operator"] == "TimeWindow"
    assert plan["inputs"][0]["inputs"][0]["operator"] == "Source"


def test_explain_in_no_other_format() -> None:
    query = session_of({"t": 1, "x": 1}).sql("SELECT x FROM s")
    with pytest.raises(ms.QueryError, match='format "xml" does not exist'):
        query.explain(format="xml")


def test_a_query_shows_what_it_is() -> None:
    query = session_of({"t": 1, "x": 1}).sql("SELECT x FROM s [ROWS 3]")
    assert repr(query) == "<Query query_1: SELECT x FROM s WINDOW(ROWS 3)>"


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"engine": "steam"}, ms.QueryError, 'engine "steam" does not exist'),
        ({"on_error": "weep"}, ms.QueryError, 'on_error is "skip" or "stop", not "weep"'),
        (
            {"approach": "crab"},
            ms.QueryError,
            'approach is "hybrid", "intervals" or "signed", not "crab"',
        ),
    ],
)
def test_sessions_that_cannot_be(
    options: dict[str, str], kind: type[ms.MillstreamError], message: str
) -> None:
    with pytest.raises(kind) as error:
        ms.Session(**options)  # type: ignore[arg-type]
    assert error.value.diagnostic.message == message


def test_except_may_compare_with_the_present() -> None:
    session = session_of({"t": 1, "x": 1})
    query = session.sql("SELECT x FROM S WINDOW(RANGE 3) EXCEPT SELECT x FROM S")
    assert not query.warnings
    assert [tuple(row.values()) for row in query.run().to_pylist()] == [(1, 2, 4)]
    with pytest.warns(ms.MillstreamWarning, match="DISTINCT sees only rows of the same instant"):
        session.sql("SELECT x FROM S EXCEPT SELECT x FROM S")


def test_warnings_are_python_warnings_and_stay_with_the_query() -> None:
    session = session_of({"t": 1, "x": 1})
    with pytest.warns(ms.MillstreamWarning, match="sees only rows of the same instant") as caught:
        query = session.sql("SELECT COUNT(*) AS n FROM s")
    assert caught[0].filename == __file__, "the warning points at the caller"
    assert [warning.severity for warning in query.warnings] == ["warning"]


def test_bounded_data_may_be_kept_for_ever() -> None:
    session = ms.Session(strict=True)
    session.stream("s", [{"t": 1, "x": 1}], time="t")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        query = session.sql("SELECT DISTINCT x FROM s WINDOW(UNBOUNDED)")
    assert len(rows(query)) == 1


def test_a_live_source_may_not_under_strict() -> None:
    session = ms.Session(strict=True)
    session.sql("CREATE STREAM s (t BIGINT, x INT) SOURCE f() ORDERED BY t")
    with pytest.raises(ms.BindError, match='DISTINCT keeps every row of "s" forever'):
        session.sql("SELECT DISTINCT x FROM s WINDOW(UNBOUNDED)")
    assert session.queries == {}


# --- what users hand in -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "returns", "message"),
    [
        ("abc", "DOUBLE", "aggregate \"g\" returned 'abc', which is not DOUBLE"),
        ([1, 2], "BIGINT", 'aggregate "g" returned [1, 2], which is not BIGINT'),
        (1.5, "BIGINT", 'aggregate "g" returned 1.5, which is not BIGINT'),
        (2**70, "BIGINT", f'aggregate "g" returned {2**70}, which is not BIGINT'),
    ],
)
def test_an_aggregate_that_gives_another_type(value: object, returns: str, message: str) -> None:
    session = ms.Session()
    session.stream("A", [{"t": 1, "x": 1}], time="t")
    session.aggregate("g", lambda v: v, lambda a, b: a, lambda a: value, returns=returns)
    query = session.sql("SELECT g(x) AS r FROM A WINDOW(RANGE 2)")
    assert query.snapshot(1).num_rows == 0
    assert [text for _, text in query.errors] == [message]


@pytest.mark.parametrize("name", ["nvl", "len", "substr", "pow", "mean", "istream", "sum", "abs"])
def test_a_name_that_means_something_already(name: str) -> None:
    with pytest.raises(ms.CatalogError, match=f'function "{name}" is built in'):
        ms.Session().function(name, lambda x: x, returns="BIGINT")


def test_a_function_in_use_is_not_replaced() -> None:
    session = ms.Session()
    session.stream("A", [{"t": 1, "x": 1}], time="t")
    session.function("twice", lambda x: x, returns="BIGINT")
    session.sql("SELECT twice(x) FROM A")
    with pytest.raises(ms.CatalogError, match='function "twice" is in use by "query_1"'):
        session.function("twice", lambda x: x, returns="STRING")


def test_rows_may_lack_keys() -> None:
    session = ms.Session()
    session.stream("S", [{"t": 1}, {"t": 1, "v": 3}], time="t")
    assert session.sql("SELECT v FROM S").snapshot(1).to_pylist() == [{"v": None}, {"v": 3}]


def test_a_fraction_is_not_cut_off() -> None:
    with pytest.raises(ms.DataError, match=r'row 1: 2\.7 in column "v" is not INT'):
        ms.Session().stream("S", [(1, 2.7)], "t", schema={"t": "BIGINT", "v": "INT"})


def test_a_dropped_query_does_not_run() -> None:
    session = ms.Session()
    session.stream("A", [{"t": 1, "x": 1}], time="t")
    query = session.sql("SELECT x FROM A")
    session.sql("DROP QUERY query_1")
    for use in (query.run, lambda: query.snapshot(1), lambda: query.named("other")):
        with pytest.raises(ms.QueryError, match='query "query_1" was dropped'):
            use()


def test_rstream_gives_its_rows_anew_also_below_a_map() -> None:
    session = ms.Session()
    session.stream("P", [{"t": 0, "v": 1}], time="t")
    expected = [(0, 2), (2, 4)]
    for text in (
        "SELECT v FROM RSTREAM(P WINDOW(RANGE 4) GRANULARITY(2))",
        "SELECT RSTREAM(v) FROM P WINDOW(RANGE 4) GRANULARITY(2)",
    ):
        table = session.sql(text).run().to_pylist()
        assert [(row["valid_from"], row["valid_to"]) for row in table] == expected


def test_a_connector_that_fails_while_it_is_read() -> None:
    def broken() -> object:
        yield {"t": 1}
        raise RuntimeError("gone")

    session = ms.Session()
    session.source("broken", broken)
    session.sql("CREATE STREAM s (t BIGINT) SOURCE broken() ORDERED BY t")
    with pytest.raises(ms.DataError, match='stream "s" cannot be read: gone'):
        session.sql("SELECT * FROM s").run()


def test_a_window_of_one_granule_does_not_look_before_the_beginning() -> None:
    """As larger ones do not: the first granule of the query is not complete."""
    session = ms.Session()
    session.stream("S", [{"t": 2, "v": 1}], time="t")
    counts = "(SELECT COUNT(*) AS n FROM S WINDOW(RANGE 5)) WINDOW(RANGE {}) GRANULARITY(3)"
    for size in (3, 6):
        query = session.sql(f"SELECT n FROM {counts.format(size)} EMIT CHANGES")
        assert query.run().column("at").to_pylist()[0] == 3


@pytest.mark.parametrize(
    ("data", "schema", "message"),
    [
        (
            [{"t": 1, "v": decimal.Decimal("1.5")}],
            "INT",
            "row 1: Decimal('1.5') in column \"v\" is not INT",
        ),
        ([{"t": 1, "v": [2.7]}], "ARRAY<INT>", 'row 1: [2.7] in column "v" is not ARRAY<INT>'),
        ([{"t": 1, "v": datetime.datetime(2024, 1, 1, 5)}], "DATE", "is not DATE"),
        ([{"t": 2**62 + 2, "v": 1}], "INT", 'the time in column "t" is too large'),
        ([{"t": -(2**63), "v": 1}], "INT", 'the time in column "t" is too small'),
        ([{"t": 1, 1: 2}], "INT", "the keys must be names"),
        (pandas.Series([1, 2]), "INT", "cannot be made of Series"),
    ],
)
def test_values_are_taken_whole_or_refused(data: object, schema: str, message: str) -> None:
    with pytest.raises(ms.DataError) as error:
        ms.Session().stream("s", data, "t", schema={"t": "BIGINT", "v": schema})
    assert message in str(error.value)


@pytest.mark.parametrize("approach", ["hybrid", "intervals", "signed"])
def test_every_approach_gives_the_same_answer(approach: str) -> None:
    session = ms.Session(approach=approach)
    session.stream("s", [{"t": t, "x": t % 3} for t in (1, 2, 4, 7)], time="t")
    query = session.sql("SELECT x, COUNT(*) AS n FROM s WINDOW(RANGE 4) GROUP BY x")
    expected = ms.Session("reference")
    expected.stream("s", [{"t": t, "x": t % 3} for t in (1, 2, 4, 7)], time="t")
    assert query.run() == expected.sql(str(query.text)).run()
    running = query.start()
    running.wait(timeout=30)
    assert running.results().num_rows == query.run().num_rows
    assert query.snapshot(4) == expected.sql(str(query.text)).snapshot(4)


# --- UNIQUE ---------------------------------------------------------------------------------------


def test_a_distinct_of_unique_rows_is_left_out() -> None:
    session = ms.Session(engine="local")
    rows = [{"id": 1, "k": 1, "t": 1}, {"id": 2, "k": 1, "t": 2}]
    session.stream("S", rows, time="t", unique=["ID"])
    query = session.sql("SELECT DISTINCT id, k FROM S WINDOW(RANGE 5)")
    assert not any(isinstance(node, Distinct) for node in query.optimized_plan.walk())
    assert query.run().column("id").to_pylist() == [1, 2]
    other = session.sql("SELECT DISTINCT k FROM S WINDOW(RANGE 5)")
    assert any(isinstance(node, Distinct) for node in other.optimized_plan.walk())
    session.sql("CREATE STREAM T (id INT, t BIGINT, UNIQUE (id, t)) SOURCE f() ORDERED BY t")
    declared = session.sql("SELECT DISTINCT t, id FROM T WINDOW(RANGE 5)")
    assert not any(isinstance(node, Distinct) for node in declared.optimized_plan.walk())


def test_unique_is_a_list_of_columns_of_the_stream() -> None:
    session = ms.Session(engine="local")
    with pytest.raises(ms.MillstreamError, match=r'unique is a list of columns: \["id"\]'):
        session.stream("S", [{"id": 1, "t": 1}], time="t", unique="id")
    with pytest.raises(ms.MillstreamError, match='column "idd" does not exist'):
        session.stream("S", [{"id": 1, "t": 1}], time="t", unique=["idd"])
