"""Conditions with parts that no column is in: they hold for every row or for none."""

from __future__ import annotations

import pytest

import millstream as ms

CONDITIONS = [
    "1 = 1", "TRUE", "NOT (1 = 1)", "1 = 1 AND v > 0", "TRUE AND v > 0", "NOT (1 = 2) AND v > 0",
    "CAST(1 AS DOUBLE) > 0.5", "(1 = 1) = (v > 0)", "1 + 1 > v", "FALSE OR 1 = 1", "v > 0 OR TRUE",
    "5 % 3 = v", "-1 < v",
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
