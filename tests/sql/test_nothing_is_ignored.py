"""Nothing that is written is ignored.

A word, clause or argument put anywhere into a valid statement either changes what the statement
means or is an error. `NO_EFFECT` lists the exceptions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from sqlglot import exp

import millstream as ms
from effort import WANTED, examples
from millstream.logical.catalog import Table
from millstream.sql import statements as syntax
from millstream.sql.binder import bind_query
from millstream.sql.declarations import declared_stream, declared_table
from millstream.sql.parser import parse
from millstream.sql.pulls import bind_pull, is_pull
from millstream.sql.scope import name_of
from millstream.sql.table_changes import ChangeBinder
from millstream.sql.tokens import tokenize

STREAMS = """
CREATE STREAM s (a INT, b STRING, c DOUBLE, ts TIMESTAMP) SOURCE file('s.csv') ORDERED BY ts;
CREATE STREAM r (a INT, d STRING, e DECIMAL(10, 2), ts TIMESTAMP) SOURCE file('r.csv')
    ORDERED BY ts;
CREATE TABLE t (k INT PRIMARY KEY, v STRING, w DOUBLE);
CREATE TABLE s2 (k INT, v STRING);
"""

STATEMENTS = [
    "SELECT a FROM s",
    "SELECT a, c + 1 AS d FROM s WHERE a > 3 AND b LIKE 'x%'",
    "SELECT COUNT(*) AS n, SUM(c) FROM s WINDOW(RANGE 5 SECONDS) GROUP BY b HAVING COUNT(*) > 2",
    "SELECT DISTINCT b FROM s WINDOW(ROWS 3) AS x",
    "SELECT s.a, r.d FROM s WINDOW(RANGE 5 SECONDS) JOIN r WINDOW(ROWS 10) ON s.a = r.a",
    "SELECT * FROM s WINDOW(NOW) LEFT JOIN r WINDOW(RANGE 1 HOUR SLIDE 1 MINUTE) USING (a)",
    "SELECT a FROM s UNION ALL SELECT a FROM r EMIT CHANGES",
    "SELECT a, c FROM s WINDOW(PARTITION BY b ROWS 2) ORDER BY c DESC, a LIMIT 5",
    "WITH q AS (SELECT a FROM s) SELECT a FROM q WHERE a IN (SELECT a FROM r WINDOW(ROWS 1))",
    "SELECT CASE WHEN a > 1 THEN 'x' ELSE b END AS z, CAST(c AS INT) AS i FROM s",
    "SELECT ts + INTERVAL '1' DAY, ts - INTERVAL '1 hour 30 minutes' FROM s",
    "SELECT SUM(c) FILTER (WHERE a > 1) AS f, COUNT(DISTINCT b) FROM s [RANGE 1 DAY]",
    "SELECT a FROM ISTREAM(s WINDOW(RANGE 5 SECONDS)) WHERE b IS NOT NULL",
    "SELECT a FROM s WINDOW(RANGE 5 SECONDS) GRANULARITY(1 SECOND) SHED AT MOST 5 PERCENT",
    "SELECT a FROM s WHERE EXISTS (SELECT * FROM r WINDOW(NOW) WHERE r.a = s.a) EMIT EVERY 1 DAY",
    "INSERT INTO console() SELECT a FROM s",
    "CREATE STREAM n (a INT, ts TIMESTAMP) SOURCE file('x.csv') ORDERED BY ts DELAY 5 SECONDS",
    "CREATE TABLE n (k INT, v DECIMAL(5, 1) NOT NULL, PRIMARY KEY (k)) RETROACTIVE",
    "CREATE STREAM n AS SELECT a FROM s WINDOW(RANGE 1 HOUR) RETAIN 1 HOUR",
    "CREATE MATERIALIZED VIEW n AS SELECT b, COUNT(*) AS m FROM s WINDOW(RANGE 1 HOUR) GROUP BY b",
    "INSERT INTO t (k, v) VALUES (1, 'x')",
    "UPDATE t SET v = 'y', w = w + 1 WHERE k = 2",
    "DELETE FROM t WHERE k = 3",
    "MERGE INTO t USING s2 ON t.k = s2.k WHEN MATCHED THEN UPDATE SET v = s2.v "
    "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s2.k, s2.v)",
    "SELECT k, v FROM t ORDER BY k LIMIT 3",
]

# Put into statements, one at a time. Between bars, which no phrase contains.
_TEXT = """
ALL | ANY | ASC | AS | AT MOST 5 PERCENT | BY a | BETWEEN 1 AND 2 | CASCADE | CHECK (a > 1) |
COLLATE x | COMMENT 'x' | CONSTRAINT x | CROSS | DEFAULT 1 | DELAY 5 SECONDS | DESC | DISTINCT |
EFFECTIVE AT 5 | EMIT FINAL | ESCAPE '!' | EXCEPT (a) | FETCH FIRST 1 ROW ONLY | FILTER (WHERE
TRUE) | FINAL | FOR UPDATE | FORMAT 'x' | FULL | GENERATED | GRANULARITY(1 DAY) | GROUP BY a |
HAVING a > 1 | IF EXISTS | IF NOT EXISTS | IGNORE NULLS | IN (1) | INNER | INTERVAL '1 day' | IS
NULL | JOIN r | LATERAL | LATERAL VIEW explode(x) y | LEFT | LIKE 'x' | LIMIT 1 | LIMIT 1 BY a |
NATURAL | NOT | NOT NULL | NOWAIT | NULL | NULLS FIRST | NULLS LAST | OFFSET 1 | ON TRUE | ONLY |
OR REPLACE | ORDER BY a | OUTER | OVER () | OVERWRITE | PARTITION BY a | PERCENT | PRIMARY KEY |
QUALIFY TRUE | RECURSIVE | RESPECT NULLS | RETAIN 1 DAY | RETURNING a | ROWS | ROWS ONLY | ROW |
SHED | SLIDE 1 | SLIDE 1 SECOND | SYMMETRIC | TABLE | TABLESAMPLE (10) | TABLESAMPLE (5 ROWS) |
TEMPORARY | TIES | TO | TO SECOND | TOP 5 | UNIQUE | USING (a) | VALUES (1) | WHERE TRUE |
WINDOW(ROWS 1) | WINDOW w AS (ORDER BY a) | WITH (x = 1) | WITH TIES | WITHIN GROUP (ORDER BY a) |
WITHOUT | a | x | `x y` | 'x' | 1 | 2.5 | , a | , 1 | , 'x' | , x | . | . a | + 1 | - a | * 2 |
(a) | (1) | () | [1] | [x] | = 1 | <> 1 | AND TRUE | OR FALSE | :: INT | :: | :p | ? | @x | @ | #
| % | % 2 | ! | ~ | ^ | -> | ->> | => | DAY | HOUR | SECONDS | INTO x | INTO | SOURCE x() | STREAM
| VIEW | MATERIALIZED | SORT BY a | CLUSTER BY a | DISTRIBUTE BY a | PIVOT (SUM(a) FOR b IN (1)) |
UNPIVOT (a FOR b IN (c)) | AS OF 5 | AS x | AS x (y) | AS 'x' | FOR SYSTEM_TIME AS OF 5 | VERSION
AS OF 5 | STRAIGHT_JOIN | SEMI | ANTI | ASOF | SQL_NO_CACHE | HIGH_PRIORITY | DIV 2 | IS TRUE | IS
| IS DISTINCT FROM 1 | ROLLUP | WITH ROLLUP | CUBE (a) | GROUPING SETS ((a)) | OPTION (x) |
SETTINGS x = 1 | PREWHERE TRUE | START WITH a | CONNECT BY a | MATCH | SET x = 1
"""
PHRASES = [phrase.strip() for phrase in " ".join(_TEXT.split()).split(" | ")]

# Where a phrase may stand without changing anything: it says what is the case anyway, or is a word
# that SQL has for readers alone. (phrase, the word before, the word after); "" is any word.
NO_EFFECT = {
    ("ALL", "SELECT", ""),
    ("ALL", "(", ""),  # SUM(ALL c)
    ("EMIT FINAL", "", "END"),
    ("ASC", "A", ""),
    ("ASC", "K", ""),
    ("NULLS FIRST", "A", ""),
    ("NULLS FIRST", "K", ""),
    ("NULLS LAST", "DESC", ""),
    ("SLIDE 1", "", ")"),  # of a window over rows
    ("PARTITION BY a", "(", ""),  # of a window over time, as docs/language/windows.md says
    ("PARTITION BY a", "[", ""),
    ("INNER", "", "JOIN"),
    ("CROSS", "", "JOIN"),
    ("OUTER", "LEFT", "JOIN"),
    ("a", "SELECT", "A"),  # an alias that is the name
    ("a", "A", ""),
    ("a", ".", "A"),
    ("(a)", "SELECT", "A"),
    ("(a)", "Q", "AS"),
    (":: INT", "", ""),  # an INT is one already
    ("DISTINCT", "SELECT", "*"),  # in EXISTS
    (", a", "*", "FROM"),
    (", 1", "*", "FROM"),
    (", 'x'", "*", "FROM"),
    (", 1", "B", "END"),  # GROUP BY b, 1, which is b again
    ("NOT NULL", "INT", ","),  # of the column of a key
    ("NULL", "INT", ","),
    ("NULL", "TIMESTAMP", ")"),
}


@pytest.fixture(scope="module")
def session() -> ms.Session:
    session = ms.Session(engine="local")
    session._state.kept.starts = False
    session.sql(STREAMS)
    return session


def meaning(session: ms.Session, text: str) -> object:
    """What the statements of a text say, in full; None if they are refused."""
    try:
        return [_of_one(session, statement) for statement in parse(text, {})]
    except ms.MillstreamError:
        return None


def _of_one(session: ms.Session, statement: syntax.Statement) -> object:
    catalog = session.catalog
    query = getattr(statement, "query", None)
    if isinstance(statement, syntax.Select) and is_pull(statement.query, catalog):
        return bind_pull(statement.query, catalog, {})
    if isinstance(query, syntax.QueryStatement):
        bound = bind_query(query, catalog)
        around = str(statement).removesuffix(str(query))
        return bound.plan, bound.emit, str(query.shed), str(query.every), around
    if isinstance(statement, syntax.ChangeTable):
        tree = statement.body.tree
        named = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
        table = catalog.stream(name_of(named.this))
        assert isinstance(table, Table)
        binder = ChangeBinder(table, catalog, {})
        return binder.parts(tree), binder.values, str(statement.at)
    if isinstance(statement, syntax.CreateStream):
        return repr(declared_stream(statement)), str(statement.retention)
    if isinstance(statement, syntax.CreateTable):
        return repr(declared_table(statement))
    return str(statement)


def places(text: str) -> Iterator[tuple[int, str, str]]:
    """Where a phrase can be put, and the words before and after."""
    tokens = tokenize(text)
    words = ["BEGIN", *(token.word for token in tokens), "END"]
    for number, (before, after) in enumerate(pairwise(words)):
        yield tokens[number].span.start if number < len(tokens) else len(text), before, after


def has_no_effect(phrase: str, before: str, after: str) -> bool:
    return any(
        phrase == given and first in ("", before) and second in ("", after)
        for given, first, second in NO_EFFECT
    )


CASES = [
    (f"{text[:at]} {phrase} {text[at:]}", text)
    for text in STATEMENTS
    for at, before, after in places(text)
    for phrase in PHRASES
    if not has_no_effect(phrase, before, after)
]


def test_what_is_put_into_a_statement_is_an_error_or_changes_it(session: ms.Session) -> None:
    """MILLSTREAM_EXAMPLES=100000 tries them all, which takes some minutes."""
    seed = None if WANTED else 4
    drawn = random.Random(seed).sample(CASES, min(examples(1500), len(CASES)))
    expected = {text: meaning(session, text) for text in STATEMENTS}
    assert None not in expected.values()
    ignored = [given for given, text in drawn if meaning(session, given) == expected[text]]
    assert ignored == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM s ORDER BY a LIMIT 1 WITH TIES",
        "SELECT a FROM s ORDER BY a LIMIT 50 PERCENT",
        "SELECT a FROM s ORDER BY a LIMIT 1 BY b",
        "SELECT a FROM s ORDER BY a LIMIT 1 ROWS ONLY",
        "SELECT a FROM (SELECT a FROM s ORDER BY a LIMIT 1 WITH TIES)",
        "(SELECT a FROM s) ORDER BY a LIMIT 1 WITH TIES",
        "SELECT a FROM s UNION ALL SELECT a FROM r ORDER BY a LIMIT 50 PERCENT",
        "SELECT k FROM t ORDER BY k LIMIT 1 WITH TIES",
        "SELECT ts + INTERVAL '1 hour 30' FROM s",
        "SELECT ts + INTERVAL 'x 1 day' FROM s",
        "SELECT ts + INTERVAL '1 day ago' FROM s",
        "SELECT ts + INTERVAL '１' DAY FROM s",
        "SELECT ts + INTERVAL '１ day' FROM s",
        "SELECT ts + INTERVAL '1 day' DAY FROM s",
        "SELECT ts + INTERVAL '5' DAY TO SECOND FROM s",
        "SELECT ts + INTERVAL '1' DAY '2 x' HOUR FROM s",
        "SELECT COUNT(* EXCEPT (a)) FROM s WINDOW(ROWS 2)",
        "SELECT COUNT(*) FROM s WINDOW(ROWS 2) GROUP BY DISTINCT b",
        "SELECT a FROM s ORDER BY a ASC DESC LIMIT 1",
        "SELECT a FROM s WINDOW(NOW) JOIN r WINDOW(NOW) USING x (a)",
        "SELECT CAST(a AS INT COLLATE x) FROM s",
        "SELECT CAST(a AS INT(1)) FROM s",
        "SELECT CAST(a AS STRING(1)) FROM s",
        "SELECT CAST(ts - ts AS INTERVAL DAY) FROM s",
        "SELECT CAST(ts - ts AS INTERVAL HOUR TO MINUTE) FROM s",
        "SELECT CHAR(a USING utf8) FROM s",
        "SELECT SUBSTRING(b FROM 1 FOR 2 FOR 3) FROM s",
        "SELECT SUBSTRING(b, 1 FROM 2) FROM s",
        "SELECT DATE_PART(b, ts) FROM s",
        "SELECT k FROM t SHED",
        "CREATE STREAM n (a INT garbage) SOURCE file('x')",
        "CREATE TABLE n (a ARRAY<INT garbage>)",
        "INSERT INTO t (k x, v) VALUES (1, 'x')",
        "INSERT INTO t (k, v) VALUES (1, 'x') x",
        "UPDATE t SET v = 'x' WHERE k = 1 WHERE k = 2",
    ],
)
def test_what_was_ignored_is_an_error(session: ms.Session, text: str) -> None:
    assert meaning(session, text) is None


def test_an_interval_of_several_units(session: ms.Session) -> None:
    several = "SELECT ts + INTERVAL '1 hour 30 minutes' AS x FROM s"
    assert meaning(session, several) == meaning(
        session, "SELECT ts + INTERVAL '90' MINUTE AS x FROM s"
    )
    assert meaning(session, "SELECT ts + INTERVAL '-.5 day +2 hours' AS x FROM s") == meaning(
        session, "SELECT ts + INTERVAL '-10' HOUR AS x FROM s"
    )
