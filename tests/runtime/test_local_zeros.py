"""-0.0 equals 0.0: groups are one, and what is shown of equal rows does not depend on which came
first."""

from __future__ import annotations

import pytest

import millstream as ms
from runtime.live import SOON

pytestmark = pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")

ROWS = [(1, -0.0, -0.0), (2, 0.0, 0.0), (3, -0.0, 1.5), (5, 0.0, -0.0), (9, -0.0, -0.0)]
QUERIES = [
    "SELECT v, COUNT(*) AS n FROM S WINDOW(RANGE 2) GROUP BY v",
    "SELECT CAST(v AS STRING) AS text, r FROM "
    "(SELECT v, r, COUNT(*) AS n FROM S WINDOW(RANGE 2) GROUP BY v, r) AS g",
    "SELECT DISTINCT v, r FROM S WINDOW(RANGE 2)",
    "SELECT v, r FROM S WINDOW(RANGE 2)",
    "SELECT v FROM S WINDOW(RANGE 2) EXCEPT SELECT v FROM S WINDOW(RANGE 1)",
    "SELECT v FROM S WINDOW(RANGE 3) INTERSECT SELECT v FROM S WINDOW(RANGE 2)",
    "SELECT a.v, b.r FROM S WINDOW(RANGE 2) a JOIN S WINDOW(RANGE 3) b ON a.v = b.r",
    "SELECT MAX(v) AS most, MIN(r) AS least FROM S WINDOW(RANGE 3)",
    "SELECT v, r FROM S WINDOW(RANGE 5) ORDER BY v LIMIT 2",
    "SELECT v, COUNT(*) AS n FROM S WINDOW(RANGE 2) GROUP BY v EMIT CHANGES",
]


def session(engine: str) -> ms.Session:
    made = ms.Session(engine=engine)
    made.stream("S", ROWS, time="t", schema={"t": "BIGINT", "v": "DOUBLE", "r": "FLOAT"})
    return made


@pytest.mark.parametrize("sql", QUERIES)
def test_the_sign_of_zero_is_not_shown(sql: str) -> None:
    expected, found = (session(e).sql(sql) for e in ("reference", "local"))
    assert repr(found.run().to_pylist()) == repr(expected.run().to_pylist())
    assert "-0.0" not in repr(found.run().to_pylist())
    assert found.run().schema == expected.run().schema
    for at in (1, 2, 4, 6):
        assert repr(found.snapshot(at).to_pylist()) == repr(expected.snapshot(at).to_pylist())


def test_keys_of_groups_are_positive_as_they_come() -> None:
    live = session("local")
    feed = live.feed("F", {"t": "BIGINT", "v": "DOUBLE"}, "t")
    with live.sql("SELECT v, COUNT(*) AS n FROM F WINDOW(RANGE 5) GROUP BY v").start() as running:
        feed.send([{"t": 1, "v": -0.0}, {"t": 2, "v": 0.0}])
        feed.close()
        running.wait(SOON)
    assert {repr(value) for value in running.results()["v"].to_pylist()} == {"0.0"}
