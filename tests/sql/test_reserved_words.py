"""A word is refused where a name is declared, or works as that name everywhere."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import pytest
from sqlglot.dialects.spark import Spark

import millstream as ms
from effort import WANTED
from millstream.sql.reserved import RESERVED

_OWN = """
STREAM TABLE VIEW MATERIALIZED QUERY QUERIES STREAMS TABLES VIEWS SOURCE ORDERED DELAY IDLE AFTER
UNIT VALID FROM TO WITH RETAIN IN SHED AT MOST PERCENT EMIT FINAL CHANGES EVERY WINDOW RANGE ROWS
NOW UNBOUNDED SLIDE PARTITION BY MIN MAX GRANULARITY COARSEST FINEST ISTREAM DSTREAM RSTREAM
HISTORY AS OF EFFECTIVE LATEST DELETE INSERT INTO UPDATE MERGE DROP STOP SHOW CREATE SELECT
RETROACTIVE NON CONSTANT TEMPORAL UNIQUE PRIMARY KEY NOT NULL RATE SIZE DISTINCT COMMENT INTERVAL
VALUES SET WHEN MATCHED THEN TIMESTAMP DATE DAY SECOND USER VALUE INDEX TYPE NAME
"""
OWN = _OWN.split()

ALL_WORDS = sorted(
    {*OWN}
    | {
        word
        for keyword in Spark.Tokenizer.KEYWORDS
        if re.fullmatch(r"[A-Z_ ]+", keyword)
        for word in keyword.split()
    }
)

# Keywords of sqlglot are many; the usual run takes the reserved ones and a few others.
WORDS = ALL_WORDS if WANTED else sorted({*OWN[::5], *sorted(RESERVED)[::5], *ALL_WORDS[::40]})

RAW = "CREATE STREAM s (x INT, t BIGINT) SOURCE file('x') ORDERED BY t"


def of_table(name: str) -> list[str]:
    return [
        f"CREATE TABLE {name} (x INT, y INT)",
        f"INSERT INTO {name} VALUES (1, 2)",
        f"INSERT INTO {name} (x) VALUES (1)",
        f"SELECT x FROM {name}",
        f"SELECT {name}.x FROM {name}",
        f"UPDATE {name} SET x = 2 WHERE y = 2",
        f"DELETE FROM {name} WHERE x = 5",
        f"SELECT q.x FROM {name} AS q JOIN {name} r ON q.x = r.x",
        f"MERGE INTO {name} USING (SELECT x FROM {name}) z ON {name}.x = z.x "
        "WHEN MATCHED THEN DELETE",
        f"CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM {name}",
        "DROP VIEW v",
        f"DROP TABLE {name}",
    ]


def of_stream(name: str) -> list[str]:
    return [
        f"CREATE STREAM {name} (x INT, t BIGINT) SOURCE file('x') ORDERED BY t",
        f"SELECT x FROM {name}",
        f"SELECT {name}.x FROM {name} WINDOW(ROWS 1)",
        f"SELECT z.x FROM {name} WINDOW(ROWS 1) z, {name} [RANGE 5] AS y",
        f"SELECT x FROM ISTREAM({name} WINDOW(ROWS 2))",
        f"SELECT x FROM (SELECT x FROM {name}) EMIT CHANGES",
        f"CREATE STREAM d AS SELECT x FROM {name}",
        f"CREATE TABLE l AS LATEST BY x FROM {name}",
    ]


def of_view(name: str) -> list[str]:
    return [
        RAW,
        f"CREATE MATERIALIZED VIEW {name} AS SELECT x FROM s WINDOW(ROWS 1) RETAIN 5",
        f"SELECT x FROM {name}",
        f"DROP VIEW {name}",
    ]


def of_derived(name: str) -> list[str]:
    return [RAW, f"CREATE STREAM {name} AS SELECT x FROM s", f"SELECT x FROM {name}"]


def of_column(name: str) -> list[str]:
    return [
        f"CREATE STREAM s ({name} INT, t BIGINT) SOURCE file('x') ORDERED BY t",
        f"SELECT {name} AS k FROM s",
        f"SELECT s.{name} AS k FROM s",
        f"SELECT {name} + 1 AS x FROM s WHERE {name} > 1 AND {name} IS NOT NULL",
        f"SELECT {name} AS k, COUNT(*) AS n FROM s WINDOW(PARTITION BY {name} ROWS 1) "
        f"GROUP BY {name}",
        f"SELECT b.t AS k FROM s WINDOW(ROWS 1) a JOIN s WINDOW(ROWS 1) b USING ({name})",
        f"SELECT SUM({name}) AS k FROM s WINDOW(ROWS 1) WHERE 1 = {name} OR NOT {name} = 2",
        f"SELECT t, {name} AS k FROM s",
        f"SELECT CASE WHEN {name} = 1 THEN {name} ELSE -{name} END AS k FROM s",
        f"CREATE TABLE t ({name} INT PRIMARY KEY, z INT)",
        f"INSERT INTO t ({name}, z) VALUES (1, 2)",
        f"UPDATE t SET {name} = 4 WHERE {name} = 3",
        f"CREATE STREAM r (a INT, {name} BIGINT) SOURCE file('x') ORDERED BY {name}",
    ]


KINDS = [of_table, of_stream, of_view, of_derived, of_column]


def refused(statements: list[str]) -> str | None:
    """The statement that is refused, if one is."""
    session = ms.Session(engine="local")
    session._state.kept.starts = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for statement in statements:
            try:
                session.sql(statement)
            except ms.MillstreamError as error:
                return f"{statement}: {error.diagnostic.message}"
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_is_refused_at_once_or_works_everywhere(kind: Callable[[str], list[str]]) -> None:
    late = []
    for word in WORDS:
        found = refused(kind(word))
        if found is not None and "is a reserved word" not in found:
            late.append(found)
    assert late == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_quoted_word_works_everywhere(kind: Callable[[str], list[str]]) -> None:
    assert [found for word in WORDS if (found := refused(kind(f"`{word}`")))] == []


def test_what_is_reserved_has_to_be() -> None:
    """`id`, `time`, `user` and the like are names."""
    names = ("id", "time", "user", "value", "key", "type", "index", "day", "source", "query")
    for kind in KINDS:
        assert [found for name in names if (found := refused(kind(name)))] == []
