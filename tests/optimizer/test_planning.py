"""What is chosen by cost in queries: only where rates are known, and the answer stays."""

from __future__ import annotations

from random import Random

import millstream as ms
from millstream.logical.plan import Join, Plan, Source

CHAIN = """SELECT a.v AS x, d.v AS y FROM A WINDOW(RANGE 40) a
JOIN B WINDOW(RANGE 40) b ON a.k = b.k
JOIN C WINDOW(RANGE 40) c ON b.k = c.k
JOIN D WINDOW(RANGE 40) d ON c.k = d.k"""
DISTINCT = """SELECT DISTINCT a.k, b.v FROM A WINDOW(RANGE 40) a
JOIN C WINDOW(RANGE 40) b ON a.k = b.k"""
ROWS = {"A": 240, "B": 120, "C": 12, "D": 6}


def session_of(engine: str = "local", **options: bool) -> ms.Session:
    """Four streams of the same time, of which each has fewer rows than the one before."""
    session = ms.Session(engine=engine, **options)
    for name, count in ROWS.items():
        random = Random(name)
        times = sorted(random.randrange(240) for _ in range(count))
        rows = [{"t": t, "k": random.randrange(4), "v": random.randrange(3)} for t in times]
        session.stream(name, rows, time="t")
    return session


def query_of(session: ms.Session, sql: str) -> ms.Query:
    query = session.sql(sql)
    assert isinstance(query, ms.Query)
    return query


def first_joined(plan: Plan) -> set[str]:
    """The streams of the lowest join."""
    joins = [node for node in plan.walk() if isinstance(node, Join)]
    return {node.stream for node in joins[-1].walk() if isinstance(node, Source)}


def test_streams_in_memory_tell_their_rates() -> None:
    query = query_of(session_of(), CHAIN)
    assert "after reorder_joins" in query.explain(verbose=True)
    assert first_joined(query.optimized_plan) == {"C", "D"}


def test_nothing_is_chosen_where_nobody_knows() -> None:
    session = ms.Session(engine="local")
    for name in ROWS:
        session.feed(name, {"t": "BIGINT", "k": "BIGINT", "v": "BIGINT"}, time="t")
    query = query_of(session, CHAIN)
    assert "reorder_joins" not in query.explain(verbose=True)
    assert first_joined(query.optimized_plan) == {"A", "B"}


def test_the_answer_stays() -> None:
    for sql in (CHAIN, DISTINCT):
        expected = query_of(session_of(optimize=False), sql).run()
        assert query_of(session_of(), sql).run().equals(expected)


def declared(rate: float, distinct: int) -> ms.Session:
    session = ms.Session(engine="local")
    for name in "AB":
        session.sql(
            f"CREATE STREAM {name} (t BIGINT, k INT) SOURCE memory('{name}') "
            f"ORDERED BY t UNIT MILLISECONDS WITH (rate = {rate}, distinct(k) = {distinct})"
        )
    return session


SAME = """SELECT DISTINCT a.k FROM A WINDOW(RANGE 10 SECONDS) a
JOIN B WINDOW(RANGE 10 SECONDS) b ON a.k = b.k"""


def test_distinct_rows_are_joined_where_many_are_equal() -> None:
    names = [name for name, _ in query_of(declared(5_000, 10), SAME).rewrites]
    assert "distinct_below_join" in names


def test_rows_are_joined_first_where_few_are_equal() -> None:
    names = [name for name, _ in query_of(declared(1, 100_000), SAME).rewrites]
    assert "distinct_below_join" not in names
