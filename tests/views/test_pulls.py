"""Pull queries: plain SQL over what views keep; DuckDB is the judge."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from bids import Auction, bids

import millstream as ms
from millstream.api.pulls import PullQuery
from millstream.physical.batch import Batch
from millstream.physical.operator import PhysicalPlan
from millstream.runtime import bounded

pytestmark = pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")

LATEST = "SELECT item, price, rate FROM Bid WINDOW(RANGE 25)"
TOTALS = "SELECT item, COUNT(*) AS n, SUM(price) AS total FROM Bid WINDOW(RANGE 40) GROUP BY item"

QUERIES = [
    "SELECT * FROM latest",
    "SELECT item, price * 2 AS twice FROM latest WHERE price > 20",
    "SELECT COUNT(*) AS n, SUM(price) AS s, MAX(rate) AS m FROM latest",
    "SELECT item, COUNT(*) AS n FROM latest GROUP BY item HAVING COUNT(*) > 1",
    "SELECT DISTINCT item FROM latest",
    "SELECT l.item, l.price, t.total FROM latest l JOIN totals t ON l.item = t.item",
    "SELECT t.item, l.price FROM totals t LEFT JOIN latest l ON l.item = t.item AND l.price > 30",
    "SELECT item FROM latest EXCEPT SELECT item FROM totals WHERE n > 5",
    "SELECT item, price FROM latest UNION ALL SELECT item, total FROM totals",
    "SELECT item, price FROM latest WHERE price = (SELECT MAX(price) FROM latest)",
    "SELECT item FROM totals t WHERE EXISTS (SELECT 1 FROM latest l WHERE l.item = t.item)",
    "SELECT item FROM latest WHERE item NOT IN (SELECT item FROM totals WHERE item IS NOT NULL)",
    "WITH x AS (SELECT item, price FROM latest WHERE price > 5) SELECT COUNT(*) AS n FROM x",
    "SELECT s.n FROM (SELECT item, COUNT(*) AS n FROM latest GROUP BY item) s WHERE s.n > 1",
    "SELECT a.item, b.item AS other FROM totals a, totals b WHERE a.total < b.total",
    "SELECT COUNT(*) AS n FROM latest WHERE price > 1000",
    "SELECT CASE WHEN price > 25 THEN 'high' END AS c, COUNT(*) AS n FROM latest GROUP BY 1",
]

ORDERED = [
    "SELECT item, price FROM latest ORDER BY price DESC, item NULLS FIRST",
    "SELECT item, price FROM latest ORDER BY price, item NULLS LAST LIMIT 4",
    "SELECT item FROM latest ORDER BY price * 3 DESC, rate NULLS FIRST, item NULLS FIRST LIMIT 5",
    "SELECT DISTINCT item FROM latest ORDER BY item DESC NULLS LAST",
    "SELECT item, SUM(price) AS s FROM latest GROUP BY item ORDER BY s DESC LIMIT 2",
    "SELECT item AS x FROM latest UNION SELECT item FROM totals ORDER BY x NULLS FIRST",
    "SELECT rate FROM latest ORDER BY rate DESC NULLS LAST",
]


@pytest.fixture(scope="module")
def auction() -> Iterator[Auction]:
    made = Auction()
    views = [made.view(LATEST, name="latest"), made.view(TOTALS, "RETAIN 60", name="totals")]
    rows = bids(150, seed=5)
    made.send(rows)
    for view in views:
        view.as_of(rows[-1]["t"] - 1, timeout=60)
    yield made
    for view in views:
        view.stop()


def judged(auction: Auction, query: str) -> list[tuple[object, ...]]:
    connection = duckdb.connect()
    for name, view in auction.session.views.items():
        connection.register(name, view.table())
    return connection.execute(query).fetchall()


def answer(table: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("query", QUERIES)
def test_any_query_over_views(auction: Auction, query: str) -> None:
    table = auction.session.sql(query).run()
    assert sorted(map(repr, answer(table))) == sorted(map(repr, judged(auction, query)))
    assert not {"valid_from", "valid_to"} & {*table.column_names}


@pytest.mark.parametrize("query", ORDERED)
def test_rows_come_in_the_order_that_is_asked_for(auction: Auction, query: str) -> None:
    assert answer(auction.session.sql(query).run()) == judged(auction, query)


def test_without_an_order_rows_come_by_their_columns(auction: Auction) -> None:
    everything = answer(auction.session.sql("SELECT price, item FROM latest").run())
    assert [row[0] for row in everything] == sorted(row[0] for row in everything)
    assert (
        answer(auction.session.sql("SELECT price, item FROM latest LIMIT 3").run())
        == (everything[:3])
    )


def test_as_of_and_history(auction: Auction) -> None:
    session = auction.session
    last = int(auction.sent[-1]["t"]) - 1
    past, now = (
        session.sql(f"SELECT item, total FROM totals AS OF {at}").run() for at in (last - 40, last)
    )
    asked = auction.once("SELECT item, total FROM (" + TOTALS + ") s")
    assert past.equals(asked.snapshot(last - 40))
    assert now.equals(asked.snapshot(last))
    grown = session.sql(
        "SELECT t.item, t.total - p.total AS more FROM totals AS OF :at p JOIN totals t "
        "ON t.item = p.item",
        at=last - 40,
    )
    before, after = (dict(answer(table)) for table in (past, now))
    assert dict(answer(grown.run())) == {
        item: after[item] - before[item]  # type: ignore[operator]
        for item in before
        if item in after and item is not None
    }
    connection = duckdb.connect()
    connection.register("history", session.views["totals"].history())
    judge = "SELECT item, MAX(total), COUNT(*) FROM history GROUP BY item"
    most = connection.execute(judge).fetchall()
    query = "SELECT item, MAX(total) AS m, COUNT(*) AS n FROM HISTORY(totals) GROUP BY item"
    assert sorted(map(repr, answer(session.sql(query).run()))) == sorted(map(repr, most))
    two = f"SELECT COUNT(*) AS n FROM totals AS OF {last} a, totals AS OF {last - 1} b, totals c"
    assert answer(session.sql(two).run()) == [(len(after) ** 2 * len(before),)]


def test_rows_that_cannot_be_evaluated(auction: Auction) -> None:
    query = auction.session.sql("SELECT item, 100 / (price - price) AS x FROM latest")
    assert query.run().num_rows == 0
    assert "division by zero" in query.errors[0][1]


def test_views_of_different_times_can_meet() -> None:
    session = ms.Session(engine="local")
    numbers = session.feed("Numbers", {"t": "BIGINT", "k": "INT"}, time="t")
    moments = session.feed("Moments", {"ts": "TIMESTAMP", "k": "INT"}, time="ts")
    a = session.sql("CREATE MATERIALIZED VIEW a AS SELECT k FROM Numbers WINDOW(RANGE 10)")
    b = session.sql(
        "CREATE MATERIALIZED VIEW b AS SELECT k FROM Moments WINDOW(RANGE 1 DAY) RETAIN 1 DAY"
    )
    numbers.send([{"t": 1, "k": 1}, {"t": 3, "k": 2}])
    day = datetime.datetime(2026, 11, 16)
    moments.send([{"ts": day, "k": 2}, {"ts": day + datetime.timedelta(hours=2), "k": 3}])
    a.as_of(2, timeout=30)
    b.as_of("2026-11-16 01:00:00", timeout=30)
    both = session.sql("SELECT a.k AS ka, b.k AS kb FROM a, b")
    assert both.run().to_pylist() == [{"ka": 1, "kb": 2}]
    with pytest.raises(ms.QueryError, match=r"cannot run continuously: .* different times"):
        both.start()
    past = "SELECT k FROM b AS OF TIMESTAMP '2026-11-16 01:30:00'"
    assert session.sql(past).run().to_pylist() == [{"k": 2}]
    assert session.sql("SELECT k FROM b AS OF :d", d=day).run().to_pylist() == [{"k": 2}]
    history = session.sql("SELECT k, valid_from, valid_to FROM HISTORY(b)").run()
    assert history["valid_from"].to_pylist() == [day]
    assert history["valid_to"].to_pylist()[0].year == 9999
    for view in (a, b):
        view.stop()


def test_a_query_that_needs_time_is_none(auction: Auction) -> None:
    session = auction.session
    windowed = "SELECT n FROM totals GRANULARITY(5)"
    for text in ("SELECT n FROM totals EMIT CHANGES", windowed, "SELECT * FROM ISTREAM(totals)"):
        assert not hasattr(session.sql(text), "pull"), text
    assert hasattr(session.sql("SELECT n FROM totals"), "pull")


def test_explain_tells_what_is_read(auction: Auction) -> None:
    query = auction.session.sql("SELECT n FROM totals AS OF 3 WHERE n > 2 ORDER BY n")
    assert query.schema == pa.schema([("n", pa.int64())])
    logical, physical = query.explain(physical=True).split("\n\n")
    assert logical.splitlines()[-1].strip() == "Source stream=`totals AS OF 3` as=totals"
    lines = [line.rpartition(" id=")[0] for line in physical.splitlines()]
    assert lines == [
        "Map columns=[totals.n] pattern=MONOTONIC emits=[+]",
        "  Filter where=totals.n > 2 pattern=MONOTONIC emits=[+]",
        "    Source stream=`totals AS OF 3` as=totals pattern=MONOTONIC emits=[+]",
    ]


def test_explain_shows_the_plan_that_answers(
    auction: Auction, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered: list[PhysicalPlan] = []
    answer = bounded.answer

    def noted(plan: PhysicalPlan, *rest: Any) -> Batch:
        answered.append(plan)
        return answer(plan, *rest)

    monkeypatch.setattr(bounded, "answer", noted)
    query = auction.session.sql("SELECT n FROM totals WHERE n > 1 + 1")
    query.run()
    query.run()
    planned = query.planned
    assert answered == [planned.elements, planned.elements]
    logical, *steps, physical = query.explain(verbose=True, physical=True).split("\n\n")
    assert "1 + 1" in logical
    assert [step.splitlines()[0] for step in steps] == [f"after {r}" for r, _ in planned.rewrites]
    assert "after fold_constants" in {step.splitlines()[0] for step in steps}
    assert "1 + 1" not in physical
    with pytest.raises(ms.QueryError, match='format "xml" does not exist'):
        query.explain("xml")


def test_tables_are_read_as_they_are(auction: Auction) -> None:
    session = auction.session
    names = session.table("names", [{"item": "desk", "n": 1}, {"item": "sofa", "n": 2}], key="item")
    joined = session.sql("SELECT t.item, n.n FROM totals t JOIN names n ON n.item = t.item")
    alone = session.sql("SELECT item FROM names WHERE n > 1")
    assert joined.run()["n"].to_pylist() == [1, 2]
    assert alone.run().to_pylist() == [{"item": "sofa"}]
    names.insert({"item": "lamp", "n": 3})
    names.delete({"item": "sofa"})
    assert joined.run()["n"].to_pylist() == [1, 3]
    assert alone.run().to_pylist() == [{"item": "lamp"}]
    with pytest.raises(ms.BindError, match='table "names" has no history'):
        session.sql("SELECT * FROM HISTORY(names)")
    with pytest.raises(ms.BindError, match='table "names" has no history: AS OF reads views'):
        session.sql("SELECT * FROM names AS OF 3")
    session.sql("DROP TABLE names")


# --- names of WITH --------------------------------------------------------------------------------

SCOPES = [
    "WITH t AS (SELECT id + 1 AS id FROM t) SELECT SUM(id) AS s FROM t",
    "WITH T AS (SELECT id + 1 AS id FROM t) SELECT SUM(id) AS s FROM t",
    "WITH a AS (SELECT id FROM t), t AS (SELECT id * 2 AS id FROM a) SELECT SUM(id) AS s FROM t",
    "WITH u AS (SELECT id FROM t), t AS (SELECT id FROM u) SELECT SUM(t.id + u.id) AS s FROM t, u",
    "WITH t AS (SELECT id FROM u), u AS (SELECT id * 10 AS id FROM t) SELECT SUM(id) AS s FROM u",
    "WITH v AS (SELECT id FROM t) SELECT SUM(id) AS s FROM v",
    "WITH s AS (SELECT id FROM t) SELECT SUM(id) AS s FROM s",
    "SELECT SUM(id) AS s FROM (WITH t AS (SELECT id + 1 AS id FROM t) SELECT id FROM t) x",
    "SELECT (SELECT SUM(id) FROM (WITH t AS (SELECT id FROM u) SELECT id FROM t) x) AS s, id "
    "FROM t",
    "WITH t AS (WITH t AS (SELECT id * 3 AS id FROM t) SELECT id + 1 AS id FROM t) "
    "SELECT SUM(id) AS s FROM t",
    "WITH t AS (SELECT id + 1 AS id FROM t) SELECT id FROM t WHERE id IN (SELECT id FROM t)",
    "WITH t AS (SELECT id FROM u) SELECT id FROM t UNION ALL SELECT id FROM t",
    "SELECT id FROM t WHERE id IN (WITH t AS (SELECT id + 1 AS id FROM t) SELECT id FROM t)",
    "WITH x AS (SELECT id FROM t) SELECT x.id FROM x JOIN (WITH x AS (SELECT id FROM u) "
    "SELECT id FROM x) y ON x.id = y.id",
    "WITH v AS (SELECT id FROM v), t AS (SELECT id FROM v) SELECT COUNT(*) AS n FROM t",
]


@pytest.fixture(scope="module")
def named() -> Iterator[ms.Session]:
    session = ms.Session(engine="local")
    session.sql("CREATE TABLE t (id INT)")
    session.sql("CREATE TABLE u (id INT)")
    session.sql("INSERT INTO t VALUES (1), (2), (5)")
    session.sql("INSERT INTO u VALUES (2), (3)")
    session.feed("s", {"ts": "BIGINT"}, time="ts")
    session.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE id < 5")
    deadline = time.monotonic() + 30
    while session.views["v"].table().num_rows < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    yield session
    session.views["v"].stop()


@pytest.mark.parametrize("query", SCOPES)
def test_a_query_in_with_hides_what_has_its_name(named: ms.Session, query: str) -> None:
    connection = duckdb.connect()
    for name, rows in {"t": [1, 2, 5], "u": [2, 3], "v": [1, 2]}.items():
        connection.register(name, pa.table({"id": pa.array(rows, pa.int32())}))
    ours = answer(named.sql(query).run())
    assert sorted(ours) == sorted(connection.execute(query).fetchall())


@pytest.mark.parametrize(
    "query",
    [
        "WITH s AS (SELECT ts FROM s) SELECT COUNT(*) AS n FROM s",
        "WITH a AS (SELECT ts FROM s), s AS (SELECT id FROM t) SELECT COUNT(*) AS n FROM a, s",
        "WITH t AS (SELECT id FROM t WHERE id IN (SELECT ts FROM s)) SELECT id FROM t",
        "SELECT COUNT(*) AS n FROM t WHERE id IN (WITH t AS (SELECT ts FROM s) SELECT ts FROM t)",
        "SELECT id FROM (WITH s AS (SELECT id FROM t) SELECT id FROM s) x "
        "WHERE id IN (SELECT ts FROM s)",
    ],
)
def test_a_stream_that_is_not_hidden_makes_a_query_that_runs_on(
    named: ms.Session, query: str
) -> None:
    registered = named.sql(query)
    assert not isinstance(registered, PullQuery)
    named.sql(f"DROP QUERY {registered.name}")


def test_a_pull_query_has_the_warnings_of_its_statement() -> None:
    session = ms.Session(engine="local")
    session.sql("CREATE TABLE d (amount DECIMAL); INSERT INTO d VALUES (2)")
    with pytest.warns(ms.MillstreamWarning, match="DECIMAL without a scale") as caught:
        assert session.sql("SELECT amount > 1.5 AS large FROM d").run().num_rows == 1
    assert caught[0].filename == __file__
