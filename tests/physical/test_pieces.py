"""Rows that would be cut into more elements than memory holds are refused, with figures."""

from __future__ import annotations

import pytest

import millstream as ms

LONG = [{"t": 0, "e": 10**9, "x": 1}, {"t": 5, "e": 10**9 + 3, "x": 2}]
FAR = [{"t": 0, "x": 1}, {"t": 10**9, "x": 2}]


@pytest.mark.parametrize(
    ("query", "rows", "time"),
    [
        ("SELECT COUNT(*) AS n FROM S WINDOW(RANGE 5) GRANULARITY(1)", LONG, ("t", "e")),
        ("SELECT COUNT(*) AS n FROM S GRANULARITY(2) WINDOW(RANGE 4)", LONG, ("t", "e")),
        ("SELECT x FROM RSTREAM(S)", LONG, ("t", "e")),
        ("SELECT x FROM S EMIT EVERY 1", LONG, ("t", "e")),
        ("SELECT x FROM S WINDOW(ROWS 2) GRANULARITY(1)", LONG, ("t", "e")),
        ("SELECT COUNT(*) AS n FROM S WINDOW(RANGE 1000000000) EMIT EVERY 1", FAR, "t"),
        ("SELECT RSTREAM(x) FROM S WINDOW(RANGE 1000000000)", FAR, "t"),
        (
            "SELECT COUNT(*) AS n FROM (SELECT x FROM S WINDOW(UNBOUNDED)) "
            "WINDOW(RANGE 1000000000) GRANULARITY(2)",
            FAR,
            "t",
        ),
    ],
)
def test_too_many_pieces(query: str, rows: list[dict[str, int]], time: str) -> None:
    session = ms.Session(engine="local")
    session.stream("S", rows, time=time)
    with pytest.raises(ms.QueryError) as error:
        session.sql(query).run()
    assert "elements in one batch; the maximum is 20,000,000" in str(error.value)
    assert "write a coarser GRANULARITY(d) or EMIT EVERY d" in str(error.value)
