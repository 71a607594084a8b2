"""Conditions with parts that no column is in: they hold for every row or for none."""

from __future__ import annotations

import pytest

import millstream as ms

CONDITIONS = [
    "1 = 1", "TRUE", "NOT (1 = 1)", "1 = 1 AND v > 0", "TRUE AND v > 0", "NOT (1 = 2) AND v > 0",
    "CAST(1 AS DOUBLE) > 0.5", "(1 = 1) = (v > 0)", "1 + 1 > v", "FALSE OR 1 = 1", "v > 0 OR TRUE",
    "5 % 3 = v", "-1 < v",
    "(CASE WHEN TRUE THEN 2 ELSE v END) + 1 > 2", "(CASE WHEN FALSE THEN v ELSE 3 END) < 7",
    "NVL2(-1, TRUE, v > 3) IS NULL", "CAST(CASE WHEN TRUE THEN 2 ELSE v END AS STRING) = '2'",
    "ABS(CASE WHEN 1 = 2 THEN v ELSE NULL END) IS NULL", "NULLIF(NVL2(1, 5, v), 5) IS NULL",
    "UPPER(CASE WHEN TRUE THEN 'a' ELSE CAST(v AS STRING) END) = 'A'",
    "(CASE WHEN TRUE THEN 0 ELSE v END) = 0 OR 1 / (CASE WHEN TRUE THEN 0 ELSE v END) > 0",
    "TRY_CAST(CASE WHEN TRUE THEN 'x' ELSE CAST(v AS STRING) END AS INT) IS NULL",
]  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_constant_parts(condition: str) -> None:
    answers = []
    for engine in ("local", "reference"):
        session = ms.Session(engine=engine)
        session.stream("S", [{"t": 1, "v": 1}, {"t": 2, "v": -1}, {"t": 3, "v": 2}], time="t")
        text = f"SELECT v, 1 + 1 AS c, {condition} AS b FROM S WHERE {condition}"
        answers.append(session.sql(text).run().to_pylist())
    assert answers[0] == answers[1]
