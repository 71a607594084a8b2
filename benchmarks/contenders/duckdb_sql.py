"""DuckDB: the whole input at once, in tables of its own that are loaded beforehand, on all cores.

The first form of each workload is the fastest found. Two techniques make them fast, and neither is
the obvious query:

*Buckets.* In a join each row of A is in the bucket of its key and time; rows of B are in theirs
and, near an edge, also in the next one. A plain condition on key and time forms all pairs of equal
keys first, however far apart.

*One number.* Key and time are one number, k · 10¹² + t: a window function needs one sort and no
partitions, and keys never mix, since their times are further apart than any window.
"""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pyarrow as pa

from benchmarks.contenders.form import Form
from benchmarks.workloads import INFINITY, WINDOW, Workload

NAME = "DuckDB"
SHARE = 1.0

BUCKET = 4 * WINDOW
SPREAD = 10**12  # more than any time, so that k * SPREAD + t orders by key and time


def prepare(workload: Workload) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, stream in workload.streams.items():
        connection.register("arrow_stream", stream)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow_stream")
        connection.unregister("arrow_stream")
    return connection


def answer(result: pa.Table) -> pa.Table:
    return result


def _query(sql: str) -> Callable[[duckdb.DuckDBPyConnection], pa.Table]:
    return lambda connection: connection.sql(sql).to_arrow_table()


def form(name: str, sql: str, *, exact: bool = True) -> Form:
    return Form(name, _query(sql), exact)


# --- joins ----------------------------------------------------------------------------------------


def _near(left: str, right: str) -> str:
    return f"{right}.t > {left}.t - {WINDOW} AND {right}.t < {left}.t + {WINDOW}"


IN_BUCKETS = f"(SELECT *, k * 1000000 + t // {BUCKET} AS g FROM A) a"


def _in_near_buckets(stream: str) -> str:
    return f"""(
SELECT *, k * 1000000 + t // {BUCKET} + step AS g
FROM {stream}, (SELECT unnest([-1, 0, 1]) AS step)
WHERE step = 0 OR (step = -1 AND t % {BUCKET} < {WINDOW})
   OR (step = 1 AND t % {BUCKET} >= {BUCKET - WINDOW})) {stream.lower()}"""


_PAIR = f"""a.k, a.v AS av, b.v AS bv,
greatest(a.t, b.t) AS valid_from, least(a.t, b.t) + {WINDOW} AS valid_to"""
_TRIPLE = f"""a.k, a.v AS av, b.v AS bv, c.v AS cv,
greatest(a.t, b.t, c.t) AS valid_from, least(a.t, b.t, c.t) + {WINDOW} AS valid_to"""

JOIN_BUCKETS = f"""SELECT {_PAIR} FROM {IN_BUCKETS}
JOIN {_in_near_buckets("B")} ON a.g = b.g AND {_near("a", "b")}"""

JOIN_PLAIN = f"SELECT {_PAIR} FROM A a JOIN B b ON a.k = b.k AND {_near('a', 'b')}"

JOIN_RANGES = f"""SELECT {_PAIR} FROM (SELECT *, k * {SPREAD} + t AS x FROM A) a
JOIN (SELECT *, k * {SPREAD} + t AS x FROM B) b ON b.x > a.x - {WINDOW} AND b.x < a.x + {WINDOW}"""

JOIN3_BUCKETS = f"""SELECT {_TRIPLE} FROM {IN_BUCKETS}
JOIN {_in_near_buckets("B")} ON a.g = b.g AND {_near("a", "b")}
JOIN {_in_near_buckets("C")} ON a.g = c.g AND {_near("a", "c")} AND {_near("b", "c")}"""

JOIN3_PLAIN = f"""SELECT {_TRIPLE} FROM A a JOIN B b ON a.k = b.k AND {_near("a", "b")}
JOIN C c ON a.k = c.k AND {_near("a", "c")} AND {_near("b", "c")}"""


# --- aggregates -----------------------------------------------------------------------------------

AGGREGATE_EVENTS = f"""SELECT * FROM (
  SELECT k, count(v) OVER x AS n, max(v) OVER x AS m, t AS valid_from,
         lead(t) OVER (PARTITION BY k ORDER BY t) AS valid_to
  FROM (SELECT k, t, v FROM S UNION ALL SELECT k, t + {WINDOW}, NULL FROM S)
  WINDOW x AS (PARTITION BY k ORDER BY t RANGE BETWEEN {WINDOW - 1} PRECEDING AND CURRENT ROW))
WHERE n > 0 AND valid_to > valid_from"""

AGGREGATE_TWO_FRAMES = f"""
WITH events AS (
  SELECT k * {SPREAD} + t AS x, 1 AS d, max(v) OVER (PARTITION BY k ORDER BY t
         RANGE BETWEEN {WINDOW - 1} PRECEDING AND CURRENT ROW) AS m FROM S
  UNION ALL
  SELECT k * {SPREAD} + t + {WINDOW}, -1, max(v) OVER (PARTITION BY k ORDER BY t
         RANGE BETWEEN 1 FOLLOWING AND {WINDOW} FOLLOWING) FROM S),
sweep AS (SELECT x, m, sum(d) OVER (ORDER BY x ROWS UNBOUNDED PRECEDING) AS n,
                 lead(x) OVER (ORDER BY x) AS y FROM events)
SELECT x // {SPREAD} AS k, CAST(n AS BIGINT) AS n, m, x % {SPREAD} AS valid_from,
       y % {SPREAD} AS valid_to
FROM sweep WHERE n > 0 AND y > x"""

AGGREGATE_ARRIVALS = f"""SELECT k, count(*) OVER x AS n, max(v) OVER x AS m, t AS valid_from,
       t AS valid_to
FROM S
WINDOW x AS (PARTITION BY k ORDER BY t RANGE BETWEEN {WINDOW - 1} PRECEDING AND CURRENT ROW)"""

ROWS_CUMULATIVE = f"""SELECT CAST(c - lag(c, 1000, 0) OVER (ORDER BY t) AS BIGINT) AS s,
       t AS valid_from, lead(t, 1, {INFINITY}) OVER (ORDER BY t) AS valid_to
FROM (SELECT t, sum(v) OVER (ORDER BY t ROWS UNBOUNDED PRECEDING) AS c FROM S)"""

ROWS_PLAIN = f"""SELECT CAST(sum(v) OVER (ORDER BY t ROWS 999 PRECEDING) AS BIGINT) AS s,
       t AS valid_from, lead(t, 1, {INFINITY}) OVER (ORDER BY t) AS valid_to FROM S"""

# A sum of doubles rounds with every row. Random doubles are integer multiples of 2⁻⁵³: as integers
# their sums are exact, and are rounded once.
DOUBLES_WHOLE = f"""SELECT CAST(CAST(c - lag(c, 1000, 0) OVER (ORDER BY t) AS BIGINT) AS DOUBLE)
         / {2**53} AS s, t AS valid_from, lead(t, 1, {INFINITY}) OVER (ORDER BY t) AS valid_to
FROM (SELECT t, sum(CAST(v * {2**53} AS BIGINT)) OVER (ORDER BY t ROWS UNBOUNDED PRECEDING) AS c
      FROM S)"""

DOUBLES_PLAIN = f"""SELECT sum(v) OVER (ORDER BY t ROWS 999 PRECEDING) AS s,
       t AS valid_from, lead(t, 1, {INFINITY}) OVER (ORDER BY t) AS valid_to FROM S"""


# --- distinct, difference, anti-join --------------------------------------------------------------


def _islands(stream: str) -> str:
    """Where a key is present without a gap, from x to e."""
    return f"""(
SELECT x, coalesce(lead(p) OVER (ORDER BY x),
                   (SELECT max(k * {SPREAD} + t) FROM {stream})) + {WINDOW} AS e
FROM (SELECT x, lag(x, 1, {-SPREAD}) OVER (ORDER BY x) AS p
      FROM (SELECT k * {SPREAD} + t AS x FROM {stream}))
WHERE x > p + {WINDOW})"""


DISTINCT_NUMBER = f"""SELECT x // {SPREAD} AS k, x % {SPREAD} AS valid_from,
       e % {SPREAD} AS valid_to FROM {_islands("S")}"""

DISTINCT_PARTITIONS = f"""
SELECT k, t AS valid_from,
       coalesce(lead(p) OVER (PARTITION BY k ORDER BY t), z) + {WINDOW} AS valid_to
FROM (SELECT k, t, lag(t) OVER (PARTITION BY k ORDER BY t) AS p,
             max(t) OVER (PARTITION BY k) AS z FROM S)
WHERE p IS NULL OR t > p + {WINDOW}"""

DIFFERENCE_ISLANDS = f"""
WITH a AS MATERIALIZED {_islands("A")}, b AS MATERIALIZED {_islands("B")},
events AS (SELECT x, 1 AS d FROM a UNION ALL SELECT e, -1 FROM a
           UNION ALL SELECT x, 2 FROM b UNION ALL SELECT e, -2 FROM b),
sweep AS (SELECT x, sum(d) OVER (ORDER BY x ROWS UNBOUNDED PRECEDING) AS present,
                 lead(x) OVER (ORDER BY x) AS y FROM events)
SELECT x // {SPREAD} AS k, x % {SPREAD} AS valid_from, y % {SPREAD} AS valid_to
FROM sweep WHERE present = 1 AND y > x"""

# Windows are equally long, so a row of A is covered at its beginning by the last row of B before
# it and at its end by the next one after it, and is free at most once between.
ANTIJOIN_FILL = f"""
WITH events AS (SELECT k * {SPREAD} + t AS x, v, NULL::BIGINT AS b FROM A
                UNION ALL SELECT k * {SPREAD} + t, NULL, k * {SPREAD} + t FROM B),
sweep AS (SELECT x, v, greatest(x, last_value(b IGNORE NULLS) OVER (ORDER BY x) + {WINDOW}) AS f,
                 least(x + {WINDOW}, lead(b IGNORE NULLS) OVER (ORDER BY x)) AS e FROM events)
SELECT x // {SPREAD} AS k, v, f % {SPREAD} AS valid_from, e % {SPREAD} AS valid_to
FROM sweep WHERE v IS NOT NULL AND e > f"""

ANTIJOIN_ASOF = f"""
SELECT * FROM (
  SELECT a.k, a.v, greatest(a.t, p.t + {WINDOW}) AS valid_from,
         least(a.t + {WINDOW}, n.t) AS valid_to
  FROM A a ASOF LEFT JOIN B p ON a.k = p.k AND a.t >= p.t
  ASOF LEFT JOIN B n ON a.k = n.k AND a.t < n.t)
WHERE valid_to > valid_from"""


# --- the latest of a key --------------------------------------------------------------------------

_LATEST = "a.k, a.v AS av, b.v AS bv, a.t AS valid_from, a.t + 1 AS valid_to"

LATEST_ASOF = f"SELECT {_LATEST} FROM A a ASOF JOIN B b ON a.k = b.k AND a.t >= b.t"

LATEST_NUMBER = f"""SELECT {_LATEST} FROM (SELECT *, k * {SPREAD} + t AS x FROM A) a
ASOF JOIN (SELECT *, k * {SPREAD} + t AS y FROM B) b ON a.x >= b.y WHERE a.k = b.k"""

LATEST_FILLED = """SELECT k, v AS av, bv, t AS valid_from, t + 1 AS valid_to FROM (
SELECT k, t, v, last_value(CASE WHEN side = 0 THEN v END IGNORE NULLS) OVER (
    PARTITION BY k ORDER BY t, side) AS bv, side
FROM (SELECT *, 1 AS side FROM A UNION ALL SELECT *, 0 AS side FROM B))
WHERE side = 1 AND bv IS NOT NULL"""

FORMS = {
    "join": [
        form("buckets by hand", JOIN_BUCKETS),
        form("two ranges", JOIN_RANGES),
        form("plain SQL", JOIN_PLAIN),
    ],
    "aggregate": [
        form("two frames and a sweep", AGGREGATE_TWO_FRAMES),
        form("arrivals and expiries", AGGREGATE_EVENTS),
        form("arrivals only", AGGREGATE_ARRIVALS, exact=False),
    ],
    "distinct": [
        form("islands, one number", DISTINCT_NUMBER),
        form("islands, partitions", DISTINCT_PARTITIONS),
    ],
    "difference": [form("sweep over islands", DIFFERENCE_ISLANDS)],
    "antijoin": [form("last and next", ANTIJOIN_FILL), form("ASOF joins", ANTIJOIN_ASOF)],
    "rows": [form("running sums", ROWS_CUMULATIVE), form("plain SQL", ROWS_PLAIN)],
    "doubles": [
        form("running sums of integers", DOUBLES_WHOLE),
        form("plain SQL, inexact", DOUBLES_PLAIN, exact=False),
    ],
    "join3": [form("buckets by hand", JOIN3_BUCKETS), form("plain SQL", JOIN3_PLAIN)],
    "latest": [
        form("ASOF join, one number", LATEST_NUMBER),
        form("ASOF join", LATEST_ASOF),
        form("last value", LATEST_FILLED),
    ],
    "filter": [
        form(
            "plain SQL",
            "SELECT k, v, t AS valid_from, t + 1 AS valid_to FROM S WHERE k % 10 = 3 AND v > 0.5",
        )
    ],
    "map": [
        form(
            "plain SQL",
            "SELECT k * 2 + 1 AS x, v * 0.89::DOUBLE AS y, v * v + k AS z, "
            "t AS valid_from, t + 1 AS valid_to FROM S",
        )
    ],
}
