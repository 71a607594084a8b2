"""EMIT CHANGES of groups: no instant takes back what it gives, whatever forms equal values have."""

from __future__ import annotations

import math
import pickle

import pyarrow as pa
import pytest

import millstream as ms

ZEROS = [0.0, -0.0, 0.0, math.nan, -5e-324, -0.0, 5e-324, 0.0, math.nan, -0.0]
TEXTS = ["SUM(v)", "MIN(v)", "MAX(v)", "AVG(v)", "SUM(DISTINCT v)", "COUNT(v)", "ARRAY_AGG(v)"]


@pytest.mark.parametrize("window", ["RANGE 2", "ROWS 1", "PARTITION BY k ROWS 1"])
@pytest.mark.parametrize("text", TEXTS)
def test_rows_of_an_instant_differ(text: str, window: str) -> None:
    rows = pa.table({"t": range(len(ZEROS)), "k": [i % 2 for i in range(len(ZEROS))], "v": ZEROS})
    sql = f"SELECT k, {text} AS a FROM S WINDOW({window}) GROUP BY k EMIT CHANGES"
    answers = []
    for engine in ("local", "reference"):
        session = ms.Session(engine=engine)
        session.stream("S", rows, time="t")
        told = (str(row).replace("-0.0", "0.0") for row in session.sql(sql).run().to_pylist())
        answers.append(sorted(told))
    ours, theirs = answers
    assert ours == theirs


def test_the_hash_of_a_stream_is_that_of_equal_ones() -> None:
    session = ms.Session(engine="local")
    stream = session.feed("A", {"t": "BIGINT"}, time="t")._audience.stream
    assert hash(pickle.loads(pickle.dumps(stream))) == hash(stream)
    assert "_hash" not in vars(stream)
