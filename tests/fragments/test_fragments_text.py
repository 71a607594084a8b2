"""Which operators share a fragment, and by which keys rows change places."""

from __future__ import annotations

import re

import pytest

import millstream as ms
from millstream.fragments.cutting import fragments_of
from millstream.fragments.edges import LEAVES


@pytest.fixture(scope="module")
def session() -> ms.Session:
    session = ms.Session(engine="spark")
    for name in ("A", "B"):
        session.stream(name, [{"t": 1, "k": 1, "v": 1}], time="t")
    return session


def exchanges(session: ms.Session, text: str) -> list[str]:
    """What each exchange is placed by; the answer comes last."""
    plan = session.sql(text).physical_plan
    edges = [edge for fragment in fragments_of(plan) for edge in fragment.exchanges]
    return [
        f"{edge.producer}>{edge.consumer} "
        + (
            "everywhere"
            if edge.everywhere
            else str([getattr(key, "name", "?") for key in edge.keys])
        )
        for edge in edges
        if edge.consumer is not None
    ]


GROUPED = "SELECT k, COUNT(*) AS n FROM {} WINDOW(RANGE 5) GROUP BY k"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT k + 1 AS l FROM A WHERE v > 0", []),
        (GROUPED.format("A"), ["0>1 ['k']"]),
        ("SELECT COUNT(*) AS n FROM A WINDOW(RANGE 5)", ["0>1 []"]),
        ("SELECT DISTINCT k, v FROM A WINDOW(RANGE 5)", ["0>1 ['k', 'v']"]),
        ("SELECT v FROM A WINDOW(PARTITION BY k ROWS 2)", ["0>1 ['k']"]),
        # A join of two grouped queries by their key: one fragment.
        (
            f"SELECT x.k, y.n FROM ({GROUPED.format('A')}) x JOIN ({GROUPED.format('B')}) y "
            "ON x.k = y.k",
            ["0>1 ['k']", "0>1 ['k']"],
        ),
        # Groups by another column than the join's: rows change places again.
        (
            "SELECT a.v, COUNT(*) AS n FROM A WINDOW(RANGE 5) a JOIN B WINDOW(RANGE 5) b "
            "ON a.k = b.k GROUP BY a.v",
            ["0>1 ['k']", "0>1 ['k']", "1>2 ['v']"],
        ),
        # The side that an outer join fills up with NULLs is not where its key says.
        (
            "SELECT b.k, COUNT(*) AS n FROM A WINDOW(RANGE 5) a LEFT JOIN B WINDOW(RANGE 5) b "
            "ON a.k = b.k GROUP BY b.k",
            ["0>1 ['k']", "0>1 ['k']", "1>2 ['k']"],
        ),
        # Without a key the rows of one side are spread, those of the other are everywhere.
        ("SELECT a.k FROM A WINDOW(RANGE 5) a, B WINDOW(RANGE 5) b WHERE a.k < b.k",
         ["0>1 ['k']", "0>1 everywhere"]),
        ("SELECT a.k FROM A WINDOW(RANGE 5) a LEFT JOIN B WINDOW(RANGE 5) b ON a.k < b.k",
         ["0>1 ['k']", "0>1 everywhere"]),
        ("SELECT a.k FROM A WINDOW(RANGE 5) a RIGHT JOIN B WINDOW(RANGE 5) b ON a.k < b.k",
         ["0>1 everywhere", "0>1 ['k']"]),
        ("SELECT a.k FROM A WINDOW(RANGE 5) a FULL JOIN B WINDOW(RANGE 5) b ON a.k < b.k",
         ["0>1 []", "0>1 []"]),
        # What is in one shard is small, whichever side it is.
        (
            "SELECT a.k FROM A WINDOW(RANGE 5) a "
            "WHERE a.v > (SELECT AVG(b.v) FROM B WINDOW(RANGE 5) b)",
            ["0>1 []", "0>2 ['k', 'v']", "1>2 everywhere"],
        ),
    ],
)  # fmt: skip
def test_exchanges(session: ms.Session, text: str, expected: list[str]) -> None:
    assert exchanges(session, text) == expected


def test_leaves_come_first(session: ms.Session) -> None:
    fragments = fragments_of(session.sql(GROUPED.format("A")).physical_plan)
    assert [fragment.number for fragment in fragments] == [LEAVES, 1]
    assert [fragment.level for fragment in fragments] == [0, 1]


def test_explained(session: ms.Session) -> None:
    told = session.sql(GROUPED.format("A")).explain(physical=True)
    told, count = re.subn(r" id=[0-9a-f]{8}$", "", told, flags=re.MULTILINE)
    assert count == 6
    assert told.endswith("""
Fragment 1: shards by key
  the answer
    Map columns=[A.k, count AS n] pattern=WEAK emits=[+]
      Aggregate by=[A.k] compute=[count(*) AS count] form=intervals final=yes pattern=WEAK \
emits=[+] state=[accumulators, queue]
        Received exchange=#1 pattern=WEAKEST emits=[+]
Leaves: where the rows are read
  #1 to fragment 1 by A.k
    TimeWindow range=5 pattern=WEAKEST emits=[+]
      Map columns=[A.k AS A.k] pattern=WEAKEST emits=[+]
        Source stream=A pattern=WEAKEST emits=[+]""")
