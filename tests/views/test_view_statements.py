"""Statements on views can be printed and read back."""

from __future__ import annotations

import pytest

from millstream.sql.parser import parse

STATEMENTS = [
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM s WINDOW(RANGE 5) WHERE a IN (1, 2)",
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM s INTO postgres('x', t => 'y') RETAIN 4 WEEK",
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM s INTO console() EMIT EVERY 5 SECOND IN 'f'",
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM s RETAIN 7 IN 'it\\'s'",
    "CREATE MATERIALIZED VIEW `v w` AS SELECT a FROM s UNION ALL SELECT b FROM s",
    "CREATE STREAM d AS SELECT a FROM s WINDOW(RANGE 5) RETAIN 5",
    "CREATE STREAM d (a INT) SOURCE csv('x') ORDERED BY a RETAIN 2 DAY IN 'f'",
    "SELECT * FROM v AS OF 5 AS x JOIN w AS OF TIMESTAMP '2026-01-01 00:00:00' ON x.a = w.a",
    "SELECT retain FROM v AS OF -3, HISTORY(v) AS h",
    "SELECT a FROM s WINDOW(ROWS 3) EMIT EVERY 0.5 SECOND",
    "DROP VIEW v",
    "SHOW VIEWS",
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_printing(text: str) -> None:
    (statement,) = parse(text)
    assert str(statement) == text
    assert parse(str(statement)) == [statement]
