"""Views that are kept elsewhere too, or give whole answers to a sink."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from bids import COLUMNS, Auction, bids

import millstream as ms

pytestmark = pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")

QUERY = "SELECT item, COUNT(*) AS n, SUM(price) AS s FROM Bid WINDOW(RANGE 20) GROUP BY item"


def kept_rows(path: Path) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute("SELECT item, n, s FROM kept").fetchall()


def shown(view: ms.View) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in view.table().to_pylist()]


def test_the_target_has_the_rows_of_the_view(tmp_path: Path) -> None:
    path, rows = tmp_path / "kept.duckdb", bids(120, seed=8)
    source = tmp_path / "bids"
    source.mkdir()
    columns = ", ".join(f"{name} {type}" for name, type in COLUMNS.items())
    for number in range(4):
        part = rows[number * 30 : (number + 1) * 30]
        lines = (",".join("" if v is None else str(v) for v in row.values()) for row in part)
        text = "\n".join([",".join(COLUMNS), *lines])
        (source / f"{number}.csv").write_text(text + "\n")
        session = ms.Session(engine="local")
        session.sql(
            f"CREATE STREAM Bid ({columns}) SOURCE csv(:path, follow => TRUE) ORDERED BY t",
            path=str(source),
        )
        view = session.sql(
            f"CREATE MATERIALIZED VIEW v AS {QUERY} INTO duckdb(:path, 'kept') IN :folder",
            path=str(path),
            folder=str(tmp_path / "view"),
        )
        view.as_of(part[-1]["t"] - 1, timeout=60)
        view.stop()
        assert sorted(map(repr, kept_rows(path))) == sorted(map(repr, shown(view)))


def test_whole_answers_go_to_the_console(capfd: pytest.CaptureFixture[str]) -> None:
    auction = Auction()
    view = auction.view("SELECT price FROM Bid WINDOW(RANGE 20)", "INTO console() EMIT EVERY 10")
    auction.send([{"t": 5, "price": 1}, {"t": 15, "price": 2}, {"t": 31, "price": 3}])
    auction.feed.close()
    assert view.wait(30)
    assert capfd.readouterr().out.splitlines() == [
        "price | at", "1 | 10", "1 | 20", "2 | 20", "2 | 30", "3 | 40", "3 | 50",
    ]  # fmt: skip


def test_a_target_that_refuses_ends_the_view(tmp_path: Path) -> None:
    auction = Auction()
    (tmp_path / "file").write_text("x")
    with pytest.raises(ms.QueryError, match="file"):
        auction.view(QUERY, f"INTO csv('{tmp_path}/file') EMIT EVERY 5")
    assert auction.session.views == {}
    view = auction.view(QUERY)
    auction.send(bids(5))
    assert view.stop()
