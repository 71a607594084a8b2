"""Materialized views: what the statements mean, and how long a view lives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from bids import Auction, bids

import millstream as ms

pytestmark = pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")

QUERIES = [
    "SELECT item, price FROM Bid WINDOW(RANGE 9)",
    "SELECT item, COUNT(*) AS n, AVG(rate) AS r FROM Bid WINDOW(RANGE 12) GROUP BY item",
    "SELECT COUNT(*) AS n, MIN(price) AS least FROM Bid WINDOW(RANGE 3)",
    "SELECT DISTINCT item FROM Bid WINDOW(ROWS 3)",
    "SELECT item, price FROM Bid WINDOW(UNBOUNDED) ORDER BY price DESC LIMIT 3",
    "SELECT a.item, b.price FROM Bid WINDOW(RANGE 5) AS a JOIN Bid WINDOW(RANGE 5) AS b "
    "ON a.item = b.item AND a.price < b.price",
    "SELECT rate FROM Bid WINDOW(RANGE 6) EXCEPT SELECT rate FROM Bid WINDOW(ROWS 2)",
]


@pytest.fixture
def auction() -> Iterator[Auction]:
    made = Auction()
    yield made
    for view in made.session.views.values():
        view.stop()


@pytest.mark.parametrize("query", QUERIES)
def test_it_is_the_snapshot_at_the_frontier(auction: Auction, query: str) -> None:
    view = auction.view(query, "RETAIN 1000")
    rows = bids(60)
    for part in range(0, 60, 15):
        auction.send(rows[part : part + 15])
        last = rows[part + 14]["t"]  # not final: more rows may come at that instant
        assert view.as_of(last - 1, timeout=30).equals(auction.once(query).snapshot(last - 1))
        assert view.table().equals(auction.once(query).snapshot(last - 1))
    asked = auction.once(query)
    for at in range(rows[0]["t"], rows[-1]["t"]):
        assert view.as_of(at).equals(asked.snapshot(at)), at


@pytest.mark.parametrize("query", QUERIES)
def test_the_history_is_the_answer_as_far_as_it_is_retained(auction: Auction, query: str) -> None:
    view = auction.view(query, "RETAIN 30")
    rows = bids(80, seed=1)
    for part in range(0, 80, 10):
        auction.send(rows[part : part + 10])
        last = rows[part + 9]["t"]
        view.as_of(last - 1, timeout=30)
    first = last - 30
    history = view.history().to_pylist()
    assert all(row["valid_to"] > first for row in history)
    asked = auction.once(query)
    for at in range(first, last):
        held = [row for row in history if row["valid_from"] <= at < row["valid_to"]]
        assert _counted(held) == _counted(asked.snapshot(at).to_pylist())
    with pytest.raises(ms.QueryError, match=f"is known from {first} to {last - 1}, not at"):
        view.as_of(first - 1)
    with pytest.raises(ms.QueryError, match=f"is known from {first} to {last - 1}, not at {last}"):
        view.as_of(last)


def _counted(rows: list[dict[str, object]]) -> list[tuple[str, ...]]:
    hidden = ("valid_from", "valid_to")
    told = ({k: v for k, v in row.items() if k not in hidden} for row in rows)
    return sorted(tuple(map(repr, row.values())) for row in told)


def test_without_retain_it_is_known_at_the_frontier_alone(auction: Auction) -> None:
    view = auction.view("SELECT price FROM Bid WINDOW(RANGE 100)")
    auction.send([{"t": 5, "price": 1}, {"t": 9, "price": 2}])
    assert view.as_of(8, timeout=30).to_pylist() == [{"price": 1}]
    with pytest.raises(ms.QueryError, match='"v" is known from 8 to 8, not at 7'):
        view.as_of(7)
    with pytest.raises(ms.QueryError, match='"v" has no history'):
        view.history()
    with pytest.raises(ms.QueryError, match="is not an instant"):
        view.as_of("yesterday")


def test_its_life(auction: Auction) -> None:
    session = auction.session
    view = auction.view("SELECT price FROM Bid WINDOW(RANGE 100)", "RETAIN 50")
    assert session.views == {"v": view}
    assert view.frontier is None
    assert view.table().num_rows == 0
    assert view.schema == pa.schema([("price", pa.int64())])
    with pytest.raises(ms.QueryError, match='nothing is known of "v" yet'):
        view.as_of(3)
    auction.send([{"t": 5, "price": 1}])
    auction.feed.heartbeat(7)
    view.as_of(6, timeout=30)
    assert repr(view) == "<View v: running, at 7>"
    assert session.sql("SHOW VIEWS").to_pylist() == [
        {
            "name": "v",
            "state": "running",
            "frontier": "7",
            "retained": "50",
            "query": "SELECT price FROM Bid WINDOW(RANGE 100)",
        }
    ]
    assert view.stop()
    assert view.state == "stopped"
    assert view.table().to_pylist() == [{"price": 1}]  # it stays as it was
    assert session.sql("SELECT price + 1 AS p FROM v").run().to_pylist() == [{"p": 2}]


def test_a_view_is_dropped_when_nothing_uses_it(auction: Auction) -> None:
    session = auction.session
    view = auction.view("SELECT price FROM Bid WINDOW(RANGE 100)")
    with pytest.raises(ms.CatalogError, match='stream "Bid" is in use by "v"'):
        session.sql("DROP STREAM Bid")
    with pytest.raises(ms.CatalogError, match='"v" is a view, not a stream'):
        session.sql("DROP STREAM v")
    with pytest.raises(ms.CatalogError, match='view "v" exists already'):
        session.sql("CREATE STREAM v AS SELECT price FROM Bid")
    query = session.sql("SELECT * FROM v").named("reader")
    with pytest.raises(ms.CatalogError, match='view "v" is in use by "reader"'):
        session.sql("DROP VIEW v")
    session.sql("DROP QUERY reader")
    question = session.sql("SELECT * FROM v")  # a pull query does not block
    session.sql("DROP MATERIALIZED VIEW v")
    assert view.state == "stopped"
    for asked in (query, question):
        with pytest.raises(ms.QueryError, match='view "v" was dropped'):
            asked.run()
    assert session.views == {}
    session.sql("DROP STREAM Bid")


def test_a_view_that_fails_stays_and_says_so(auction: Auction) -> None:
    workspace = auction.session._workspace
    workspace.settings = replace(workspace.settings, on_error="stop")
    view = auction.view("SELECT 10 / price AS share FROM Bid WINDOW(RANGE 100)")
    auction.send([{"t": 5, "price": 5}])
    auction.feed.heartbeat(6)
    assert view.as_of(5, timeout=30).to_pylist() == [{"share": 2.0}]
    auction.send([{"t": 7, "price": 0}])
    with pytest.raises(ms.QueryError, match="division by zero"):
        view.wait(30)
    assert view.state == "failed"
    assert view.table().to_pylist() == [{"share": 2.0}]
    asked = auction.session.sql("SELECT share FROM v")
    with pytest.warns(ms.MillstreamWarning, match='view "v" has failed, and shows its rows at 6'):
        assert asked.run().to_pylist() == [{"share": 2.0}]


def test_what_cannot_be_started_is_not_there() -> None:
    session = ms.Session(engine="reference")
    session.stream("Bid", [{"t": 1}], time="t")
    with pytest.raises(ms.QueryError, match="does not run queries continuously"):
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT t FROM Bid")
    assert session.views == {}
    session.sql("DROP STREAM Bid")


def test_streams_that_end_leave_what_holds_for_ever(auction: Auction) -> None:
    view = auction.view("SELECT price FROM Bid WINDOW(UNBOUNDED)", name="all_of_them")
    recent = auction.view("SELECT price FROM Bid WINDOW(RANGE 5)", "RETAIN 5", name="recent")
    auction.send([{"t": 5, "price": 1}, {"t": 8, "price": 2}])
    auction.feed.close()
    assert view.wait(30)
    assert recent.wait(30)
    assert view.table().to_pylist() == [{"price": 1}, {"price": 2}]
    assert recent.table().to_pylist() == []
    assert recent.as_of(9).to_pylist() == [{"price": 1}, {"price": 2}]
    assert recent.as_of(10**6).to_pylist() == []
    with pytest.raises(ms.QueryError, match='"recent" is known from 9 on, not at 3'):
        recent.as_of(3)


def test_a_view_in_a_started_query_is_its_plan(auction: Auction) -> None:
    session = auction.session
    auction.view("SELECT item, MAX(price) AS best FROM Bid WINDOW(RANGE 20) GROUP BY item")
    joined = session.sql("SELECT b.price, v.best FROM Bid AS b JOIN v ON v.item = b.item")
    alone = session.sql("SELECT item, best * 2 AS twice FROM v")
    runs = [joined.start(), alone.start()]
    auction.send([{"t": 1, "item": "a", "price": 5}, {"t": 3, "item": "a", "price": 7}])
    auction.feed.close()
    for run in runs:
        assert run.wait(30)
    assert runs[0].results().to_pylist() == [
        {"price": 5, "best": 5, "valid_from": 1, "valid_to": 2},
        {"price": 7, "best": 7, "valid_from": 3, "valid_to": 4},
    ]
    assert runs[1].results().to_pylist() == [
        {"item": "a", "twice": 10, "valid_from": 1, "valid_to": 3},
        {"item": "a", "twice": 14, "valid_from": 3, "valid_to": 23},
    ]
    assert joined.run is not None  # it has a stream: it is no pull query
    derived = session.sql("CREATE STREAM d AS SELECT best FROM v; SELECT * FROM d")
    assert not hasattr(derived, "pull")


def test_streams_retain_what_they_were(auction: Auction) -> None:
    session = auction.session
    session.sql("CREATE STREAM Costly AS SELECT t, price FROM Bid WHERE price > 10 RETAIN 20")
    auction.send([{"t": 1, "price": 50}, {"t": 2, "price": 3}, {"t": 30, "price": 20}])
    auction.send([{"t": 31, "price": 30}, {"t": 40, "price": 40}])
    history = session.sql("SELECT t, price, valid_to - valid_from AS l FROM HISTORY(Costly)")
    kept = session._state.kept.all[0]
    kept.as_of(39, timeout=30)
    assert history.run().to_pylist() == [
        {"t": 30, "price": 20, "l": 1},
        {"t": 31, "price": 30, "l": 1},
    ]
    assert session.views == {}  # it is a stream
    session.sql("DROP STREAM Costly")
    assert kept.state == "stopped"


def test_a_declared_stream_retains_what_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,v\n1,10\n5,20\n9,30\n")
    session = ms.Session(engine="local")
    session.sql(
        "CREATE STREAM S (t BIGINT, v INT) SOURCE csv(:path) ORDERED BY t RETAIN 6;",
        path=str(tmp_path / "a.csv"),
    )
    assert session._state.kept.all[0].wait(30)
    asked = session.sql("SELECT v, valid_from FROM HISTORY(S) ORDER BY v DESC")
    assert asked.run().to_pylist() == [
        {"v": 30, "valid_from": 9},
        {"v": 20, "valid_from": 5},
    ]


def test_a_view_can_be_started_again(auction: Auction, tmp_path: Path) -> None:
    """Without a folder it starts over, with one it resumes."""
    fresh = auction.view("SELECT price FROM Bid WINDOW(RANGE 100)", name="fresh")
    kept = auction.view(
        "SELECT price FROM Bid WINDOW(RANGE 100)", f"IN '{tmp_path}/kept'", name="kept"
    )
    views = (fresh, kept)
    auction.send([{"t": 1, "price": 1}, {"t": 3, "price": 3}])
    for view in views:
        view.as_of(2, timeout=30)
        view.stop()
        assert view.table().to_pylist() == [{"price": 1}]
        view.start()
    auction.send([{"t": 5, "price": 5}, {"t": 7, "price": 7}])
    for view in views:
        view.as_of(6, timeout=30)
    assert fresh.table().to_pylist() == [{"price": 5}]
    assert kept.table().to_pylist() == [{"price": 1}, {"price": 3}, {"price": 5}]


def test_a_stream_that_cannot_be_read_is_not_there(tmp_path: Path) -> None:
    session = ms.Session(engine="local")
    with pytest.raises(ms.QueryError, match='connector "nowhere" does not exist'):
        session.sql("CREATE STREAM S (t BIGINT) SOURCE nowhere() ORDERED BY t RETAIN 5")
    assert session.catalog.streams == []


def test_views_follow_tables(auction: Auction) -> None:
    labels = auction.session.table("labels", [{"item": "a", "label": "A"}], key="item")
    view = auction.view(
        "SELECT l.label, b.price FROM Bid WINDOW(RANGE 100) AS b JOIN labels AS l USING (item)",
        "RETAIN 50",
    )
    auction.send([{"t": 1, "item": "a", "price": 7}])
    auction.feed.heartbeat(5)
    assert view.as_of(4, timeout=30).to_pylist() == [{"label": "A", "price": 7}]
    labels.upsert({"item": "a", "label": "B"})
    auction.feed.heartbeat(9)
    assert view.as_of(8, timeout=30).to_pylist() == [{"label": "B", "price": 7}]
    assert view.as_of(4).to_pylist() == [{"label": "A", "price": 7}]


def test_a_view_in_a_notebook(auction: Auction) -> None:
    view = auction.view("SELECT price FROM Bid WINDOW(RANGE 100)")
    auction.send([{"t": 1, "price": 7}])
    auction.feed.heartbeat(2)
    view.as_of(1, timeout=30)
    assert view._repr_html_() == (
        "<p><b>v</b> (running): frontier 2</p><table><thead><tr><th>price</th></tr></thead>"
        "<tbody><tr><td>7</td></tr></tbody></table>"
    )
