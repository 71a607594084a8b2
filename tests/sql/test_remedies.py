"""What messages tell people to write is accepted."""

from __future__ import annotations

import pytest

import millstream as ms

STREAM = """
CREATE STREAM s (k INT, x DOUBLE, name STRING, ts TIMESTAMP) SOURCE csv('s.csv') ORDERED BY ts;
CREATE TABLE versions (k INT PRIMARY KEY, label STRING) NON RETROACTIVE
"""


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT COUNT(*) AS n FROM s WINDOW(RANGE 10 MINUTES SLIDE 10 MINUTES)",
        "SELECT COUNT(*) AS n FROM s WINDOW(RANGE 10 MINUTES SLIDE 5 MINUTES)",
        "SELECT x FROM (SELECT *, k % 2 AS p FROM s) WINDOW(PARTITION BY p ROWS 3)",
        "SELECT b.x FROM s WINDOW(RANGE 1 HOUR) AS a JOIN s WINDOW(NOW) AS b ON a.k = b.k",
        "SELECT x FROM s WINDOW(PARTITION BY k ROWS 1)",
        "SELECT x FROM s WINDOW(ROWS 9) ORDER BY x DESC LIMIT 3",
        "SELECT x FROM s WINDOW(ROWS 9) WHERE x >= "
        "(SELECT MIN(x) FROM (SELECT x FROM s WINDOW(ROWS 9) ORDER BY x DESC LIMIT 3))",
        "SELECT COUNT(*) AS n FROM s WINDOW(RANGE 1 HOUR) GROUP BY DATE_TRUNC('minute', ts)",
        "SELECT PERCENTILE(x, 0.5) AS p FROM s WINDOW(ROWS 9)",
        "SELECT ARRAY_AGG(name) AS a, ARRAY_AGG(DISTINCT name) AS d FROM s WINDOW(ROWS 9)",
        "SELECT COUNT(DISTINCT name) AS n FROM s WINDOW(ROWS 9)",
        "SELECT FIRST(x) AS f, LAST(x) AS l, MIN_BY(x, k) AS m FROM s WINDOW(ROWS 9)",
        "SELECT UNIX_SECONDS(ts) AS u, SPLIT_PART(name, ',', 1) AS p FROM s",
        "SELECT x FROM s WHERE name RLIKE 'a+'",
        "SELECT ts + INTERVAL '5' MINUTE AS a, ts + INTERVAL '1 hour 30 minutes' AS b FROM s",
        "SELECT label FROM s WINDOW(NOW) JOIN versions ON s.k = versions.k",
        "CREATE STREAM d AS SELECT *, k + 1 AS b FROM s",
        "CREATE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS n FROM s WINDOW(ROWS 9) GROUP BY k",
        "INSERT INTO csv('out') SELECT x FROM s",
        "DELETE FROM versions",
    ],
)
def test_remedies_are_accepted(statement: str) -> None:
    session = ms.Session(engine="local")
    session._state.kept.starts = False
    session.sql(STREAM)
    session.sql(statement)
