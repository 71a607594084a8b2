"""Filters, leaves and whole queries that Spark does by itself, against the local engine."""

from __future__ import annotations

import datetime
import math
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import millstream as ms
from millstream.connectors.intake.checking import checked_records
from millstream.logical.catalog import Stream
from millstream.logical.expressions import Expression
from millstream.logical.plan import Filter
from millstream.logical.text import expression_text
from millstream.model.elements import Element, normal_form
from millstream.model.values import canonical, to_plain
from millstream.spark.native import native_conjuncts, spark_sql
from millstream.spark.native_intake import fault
from millstream.spark.native_leaves import native_leaf
from millstream.spark.native_query import native_query
from millstream.spark.schemas import moved, typed
from millstream.spark.starting import for_batches, local_spark

pytestmark = pytest.mark.xdist_group("spark")

NAN = math.nan
MILLISECONDS = pa.timestamp("ms", "UTC")
PRICES = [0.0, -0.0, 2.5, -2.5, NAN, math.inf, None, 7.0]
WORDS = ["a", "ab", "", None, "b ", "é"]


def rows(count: int = 24) -> pa.Table:
    """Bids; their prices and moments are hard for sources that prune."""
    return pa.table(
        {
            "t": pa.array([3 * n - 20 for n in range(count)], pa.int64()),
            "k": pa.array([n % 5 if n % 7 else None for n in range(count)], pa.int32()),
            "price": pa.array([PRICES[n % len(PRICES)] for n in range(count)], pa.float64()),
            "small": pa.array([PRICES[n % len(PRICES)] for n in range(count)], pa.float32()),
            "word": pa.array([WORDS[n % len(WORDS)] for n in range(count)], pa.string()),
            "seen": pa.array([n % 4 for n in range(count)], MILLISECONDS),
            "until": pa.array([3 * n - 15 if n % 3 else None for n in range(count)], pa.int64()),
        }
    )


def moments(count: int = 20) -> pa.Table:
    first = datetime.datetime(2026, 1, 1)
    times = [first + datetime.timedelta(seconds=7 * n) for n in range(count)]
    return pa.table({"seen": pa.array(times, pa.timestamp("us")), "v": list(range(count))})


@cache
def session() -> ms.Session:
    session = ms.Session(engine="local")
    session.stream("Bid", rows(), time="t")
    session.stream("Stay", rows(), time=("t", "until"))
    session.stream("Click", moments(), time="seen")
    session.stream("Later", rows().slice(10), time="t")
    session.sql("CREATE STREAM Dear AS SELECT k, price * 2e0 AS twice FROM Bid WHERE price > 1e0")
    return session


def streams() -> dict[str, Stream]:
    return {s.name: s for s in session().catalog.streams if isinstance(s, Stream)}


@cache
def spark() -> SparkSession:
    return for_batches(local_spark())


@cache
def frames() -> dict[str, DataFrame]:
    tables = {"Bid": rows(), "Stay": rows(), "Click": moments(), "Later": rows().slice(10)}
    return {name: typed(spark().createDataFrame(table)) for name, table in tables.items()}


# --- filters ----------------------------------------------------------------------------------

FILTERS = [
    *(
        "price > 5e0",
        "price = 0e0",
        "price <> 2.5e0",
        "price <=> 0e0",
        "0e0 < price",
        "small = 0e0",
    ),
    *("NOT price <= 5e0", "price = CAST('NaN' AS DOUBLE)", "small > 5e0", "k > 1.5", "t >= 10"),
    *(f"seen {op} TIMESTAMP '1970-01-01 00:00:00.0015'" for op in ("<", "<>", ">=")),
    "seen NOT IN (TIMESTAMP '1970-01-01 00:00:00.0015', TIMESTAMP '1970-01-01 00:00:00.002')",
    *("k = 3", "k NOT IN (1, 2)", "word LIKE 'a%'", "word <> ''"),
]


def predicate(text: str) -> Expression:
    plan = session().sql(f"SELECT * FROM Bid WHERE {text}").plan
    found = plan.inputs[0]
    assert isinstance(found, Filter)
    return found.predicate


NAMES = {("Bid", name): name for name in rows().column_names}


@pytest.mark.parametrize("cached", [False, True], ids=["file", "cached"])
def test_no_row_is_pruned_that_belongs_to_the_answer(tmp_path: Path, cached: bool) -> None:
    """Files of other writers have minima, maxima and dictionaries that leave out NaN and -0.0."""
    file = str(tmp_path / "bids.parquet")
    pq.write_table(rows(), file, row_group_size=1)
    plain = spark().newSession()  # to compile so many plans would take longest
    plain.conf.set("spark.sql.codegen.wholeStage", "false")
    plain.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    plain.conf.set("spark.sql.session.timeZone", "UTC")
    read = plain.read.parquet(file)
    if cached:
        read = read.coalesce(1).cache()
    texts = [spark_sql(predicate(text), NAMES) for text in FILTERS]
    parts = [
        read.where(str(text)).selectExpr(f"{number} AS n", "t") for number, text in enumerate(texts)
    ]
    union = parts[0]
    for part in parts[1:]:
        union = union.union(part)
    found: dict[int, list[int]] = {number: [] for number in range(len(FILTERS))}
    for row in union.collect():
        found[row.n].append(row.t)
    for number, text in enumerate(FILTERS):
        kept = session().sql(f"SELECT t FROM Bid WHERE {text}").run().column("t").to_pylist()
        assert sorted(found[number]) == kept, text


CONJUNCTS = [
    ("k = 3", ["`k` = 3"], None),
    ("k = 3 AND word LIKE 'a%'", ["`k` = 3", "`word` LIKE 'a%'"], None),
    ("UPPER(word) = 'A' AND k = 3", ["`k` = 3"], "upper(Bid.word) = 'A'"),
    ("k IS NULL AND t + 1 > 0", ["`k` IS NULL"], "Bid.t + CAST(1 AS BIGINT) > CAST(0 AS BIGINT)"),
    (
        "k = 3 AND t + 1 > 0",
        ["(`k` = 3) IS NOT FALSE"],
        "Bid.k = 3 AND Bid.t + CAST(1 AS BIGINT) > CAST(0 AS BIGINT)",
    ),
    (
        "t + 1 > 0 AND k = 3",
        [],
        "Bid.t + CAST(1 AS BIGINT) > CAST(0 AS BIGINT) AND Bid.k = 3",
    ),
    ("UPPER(word) = 'A'", [], "upper(Bid.word) = 'A'"),
]


@pytest.mark.parametrize(("text", "taken", "rest"), CONJUNCTS, ids=[c[0] for c in CONJUNCTS])
def test_conjuncts(text: str, taken: list[str], rest: str | None) -> None:
    texts, remaining = native_conjuncts(predicate(text), NAMES)
    assert texts == taken
    assert (None if remaining is None else expression_text(remaining)) == rest


# --- leaves -----------------------------------------------------------------------------------

LEAVES = [
    ("SELECT k FROM Bid WHERE k = 3", "columns=[t, k] where `k` = 3"),
    ("SELECT * FROM Bid", "columns=[t, k, price, small, word, seen, until]"),
    (
        "SELECT COUNT(*) AS n FROM Bid WINDOW(RANGE 5) WHERE word LIKE 'a%' AND k > 1",
        "columns=[t, k, word] where (`word` LIKE 'a%') AND (`k` > 1)",
    ),
    ("SELECT SUM(10 / k) AS n FROM Bid", "columns=[t, k, price, small, word, seen, until]"),
    (
        "SELECT a.price FROM Bid a JOIN Bid b ON a.k = b.k WHERE a.word = 'a' AND b.t > 5",
        "columns=[t, k, price, word] where (`word` = 'a') OR (`t` > CAST(5 AS BIGINT))",
    ),
    (
        "SELECT DISTINCT k FROM Bid WINDOW(RANGE 5) WHERE k IS NOT NULL",
        "columns=[t, k] where NOT (`k` IS NULL)",
    ),
    (
        "SELECT k FROM Bid WHERE k = 1 UNION ALL SELECT k FROM Bid WHERE k = 2",
        "columns=[t, k] where (`k` = 1) OR (`k` = 2)",
    ),
    (
        "SELECT k FROM Bid WHERE 10 / k > 1 AND k = 3",
        "columns=[t, k, price, small, word, seen, until]",
    ),
]


@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
@pytest.mark.parametrize(("query", "told"), LEAVES, ids=[leaf[0] for leaf in LEAVES])
def test_leaves(query: str, told: str) -> None:
    leaf = native_leaf(session().sql(query).plan, streams()["Bid"])
    assert leaf.text() == f"native: Bid {told}"


WITHOUT = [
    "SELECT a.price, b.word FROM Bid a WINDOW(RANGE 9) JOIN Later b WINDOW(RANGE 9) ON a.k = b.k "
    "WHERE a.word <> '' AND a.k > 0 AND b.price > 1e0 AND a.small < b.price",
    "SELECT a.k, b.k AS other FROM Bid a WINDOW(RANGE 9) LEFT JOIN Later b WINDOW(RANGE 9) "
    "ON a.k = b.k WHERE a.word <> '' AND b.k IS NULL",
    "SELECT k, COUNT(*) AS n FROM Bid WINDOW(RANGE 20) WHERE price >= 0e0 AND 9 / k > 2 GROUP BY k",
    "SELECT word FROM Bid WINDOW(RANGE 20) b WHERE k = 3 AND EXISTS "
    "(SELECT 1 FROM Later WINDOW(RANGE 20) l WHERE l.k = b.k AND l.price = 0e0)",
    "SELECT DISTINCT word FROM Bid WINDOW(RANGE 20) WHERE seen > TIMESTAMP '1970-01-01'",
]


@pytest.mark.parametrize("text", WITHOUT)
def test_what_a_leaf_leaves_out_is_of_no_consequence(text: str) -> None:
    query = session().sql(text)
    expected, errors = query.run(), sorted(map(repr, query.errors))
    lean = ms.Session(engine="local")
    for name in ("Bid", "Later"):
        rows = native_leaf(query.plan, streams()[name]).frame(frames()[name]).toArrow()
        lean.stream(name, rows, time="t")
    again = lean.sql(text)
    assert repr(again.run().to_pylist()) == repr(expected.to_pylist())
    assert sorted(map(repr, again.errors)) == errors


def test_the_rows_of_a_leaf(tmp_path: Path) -> None:
    """A file is asked for the rows and columns that are needed, and for no others."""
    plan = session().sql("SELECT COUNT(*) AS n FROM Bid WINDOW(RANGE 2) WHERE k = 3").plan
    pq.write_table(rows(), tmp_path / "bids.parquet")
    read = spark().read.parquet(str(tmp_path))
    frame = native_leaf(plan, streams()["Bid"]).frame(typed(read))
    table = frame.toArrow()
    assert table.column_names == rows().column_names
    assert table.column("price").null_count == table.num_rows
    times = [row["t"] for row in rows().to_pylist() if row["k"] == 3]
    assert sorted(table.column("t").to_pylist()) == times
    told = frame._jdf.queryExecution().executedPlan().toString()
    assert "PushedFilters: [IsNotNull(k), EqualTo(k,3)]" in told
    assert "ReadSchema: struct<t:bigint,k:int>" in told


def _spoilt() -> pa.Table:
    """With rows that cannot be taken in."""
    times = [
        None,
        2**62 + 2,
        -(2**62) - 1,
        2**62 + 1,
        -(2**62),
        *rows().column("t").to_pylist()[5:],
    ]
    return rows().set_column(0, "t", pa.array(times, pa.int64()))


def test_rows_outside_of_the_years_that_there_are() -> None:
    """Spark refuses the same rows, in the same words."""
    days, moments = [1, 2_932_897, -719_163, None], [1, 2, 3, 253_402_300_800_000_000]
    table = pa.table(
        {
            "t": pa.array(range(4), pa.int64()),
            "e": pa.array(days, pa.date32()),
            "m": pa.array(moments, pa.timestamp("us", "UTC")),
            "n": pa.array([[1], [1], None, [2**60]], pa.list_(pa.timestamp("us", "UTC"))),
            "p": pa.StructArray.from_arrays([pa.array(days, pa.date32())], names=["e"]),
        }
    )
    here = ms.Session(engine="local")
    here.stream("Odd", table.slice(0, 1), time="t")
    (stream,) = (s for s in here.catalog.streams if isinstance(s, Stream))
    _, bad = checked_records(stream, table)
    frame = typed(spark().createDataFrame(table)).selectExpr("t + 1 AS number", fault(stream))
    found = {row[0]: row[1] for row in frame.collect() if row[1] is not None}
    assert found == {row.number: row.message for row in bad}
    assert sorted(found) == [2, 3, 4]


# --- whole queries ----------------------------------------------------------------------------

QUERIES = [
    "SELECT * FROM Bid",
    "SELECT k, price, word || '!' AS loud FROM Bid WHERE price > 1e0 AND k IS NOT NULL",
    "SELECT k FROM Bid WINDOW(RANGE 10) WHERE word LIKE 'a%'",
    "SELECT k FROM Bid WINDOW(RANGE 10 SLIDE 4) WHERE k > 1",
    "SELECT k FROM Bid WINDOW(RANGE 2 SLIDE 7)",
    "SELECT k, word FROM Bid WINDOW(RANGE UNBOUNDED)",
    "SELECT k, k AS k2 FROM Bid WINDOW(NOW)",
    "SELECT twice FROM Dear WINDOW(RANGE 5) WHERE k < 4",
    "SELECT k FROM Bid UNION ALL SELECT k FROM Later WINDOW(RANGE 9) WHERE price = 0e0",
    "SELECT k, word FROM Stay WHERE small >= 0e0",
    "SELECT seen, v, HOUR(seen) AS h FROM Click WINDOW(RANGE 10 SECONDS) WHERE v % 3 = 1",
    "SELECT v FROM Click WINDOW(RANGE UNBOUNDED)",
    "SELECT v FROM Click WINDOW(RANGE 1 MINUTE SLIDE 30 SECONDS)",
]


@pytest.mark.parametrize("text", QUERIES)
def test_whole_queries(text: str) -> None:
    query = session().sql(text)
    native = native_query(query.plan, streams())
    assert native is not None
    expected, got = query.run(), native.frame(frames()).toArrow()
    assert got.column_names == expected.column_names
    assert elements(got, expected.schema) == elements(expected, expected.schema)


def elements(table: pa.Table, schema: pa.Schema) -> list[Element]:
    columns = [to_plain(column, f.type) for column, f in zip(table.columns, schema, strict=True)]
    rows = zip(*columns, strict=True)
    return normal_form(Element(tuple(map(_shown, row[:-2])), *row[-2:]) for row in rows)


def _shown(value: Any) -> Any:
    """Answers of whole runs show no negative zeros."""
    return canonical(value + 0.0) if isinstance(value, float) else value


@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM Bid",
        "SELECT t + 1 AS n FROM Bid",
        "SELECT k FROM Bid WHERE UPPER(word) = 'A'",
        "SELECT k FROM Bid WINDOW(ROWS 3)",
        "SELECT k FROM Stay WINDOW(RANGE 6) GRANULARITY(2)",
        "SELECT DISTINCT k FROM Bid",
        "SELECT RAND() AS r FROM Bid",
        "SELECT ISTREAM(k) FROM Bid",
    ],
)
def test_queries_for_our_own_operators(text: str) -> None:
    assert native_query(session().sql(text).plan, streams()) is None


def test_lines_of_explain(tmp_path: Path) -> None:
    on_spark = ms.Session(engine="spark")
    pq.write_table(rows(), tmp_path / "bids.parquet")
    for name in ("Bid", "Later"):
        on_spark.sql(
            f"CREATE STREAM {name} (t BIGINT, k INT, word STRING) SOURCE parquet('{tmp_path}') "
            "ORDERED BY t"
        )
    joined = "SELECT b.k FROM Bid b WINDOW(RANGE 5) JOIN Later l WINDOW(RANGE 5) ON b.k = l.k"
    assert on_spark.sql(joined).explain(physical=True).splitlines()[-2:] == [
        "native: Bid columns=[t, k]",
        "native: Later columns=[t, k]",
    ]
    query = on_spark.sql("SELECT k, word FROM Bid WHERE k = 3")
    assert query.explain(physical=True).splitlines()[-2:] == [
        "native: the whole query, when it is run",
        "native: Bid columns=[t, k, word] where `k` = 3",
    ]
    found = ms.Session(engine="local")
    found.stream("Bid", rows(), time="t")
    assert query.run().equals(found.sql("SELECT k, word FROM Bid WHERE k = 3").run())


def test_a_run_stops_at_a_row_that_cannot_be_taken_in(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [1, None], "k": [1, 2]}), tmp_path / "bids.parquet")
    on_spark = ms.Session(engine="spark")
    on_spark.sql(f"CREATE STREAM B (t BIGINT, k BIGINT) SOURCE parquet('{tmp_path}') ORDERED BY t")
    with pytest.raises(ms.DataError, match='row \\(None, 2\\): the time column "t" is NULL'):
        on_spark.sql("SELECT k FROM B").run()


def test_rows_that_cannot_be_taken_in() -> None:
    """Spark finds the rows that the intake of the local engine finds, and gives its reasons."""
    spoilt = _spoilt().set_column(6, "until", pa.array([-10] * 24, pa.int64()))
    for name in ("Bid", "Stay"):
        stream = streams()[name]
        native = native_query(session().sql(f"SELECT k FROM {name}").plan, streams())
        assert native is not None
        frame = {name: typed(spark().createDataFrame(spoilt))}
        found = [row.fault for row in native.refused(frame, name).collect()]
        assert sorted(found) == sorted(bad.message for bad in checked_records(stream, spoilt)[1])
        assert native.frame(frame).count() == len(checked_records(stream, spoilt)[0])


def test_settings_of_other_sessions_do_not_matter() -> None:
    other = local_spark().newSession()
    other.conf.set("spark.sql.session.timeZone", "America/New_York")
    other.conf.set("spark.sql.ansi.enabled", "false")
    frame = other.createDataFrame(pa.table({"n": [0]})).selectExpr(
        "timestamp_micros(n) AS t", "CAST(n AS DECIMAL(38, 10)) AS d", "CAST(n AS TINYINT) AS i"
    )
    (row,) = (
        typed(moved(frame, spark()))
        .selectExpr("HOUR(t) AS h", "CAST(d AS STRING) AS d", "i")
        .collect()
    )
    assert (row.h, row.d, row.i) == (0, "0.0000000000", 0)
