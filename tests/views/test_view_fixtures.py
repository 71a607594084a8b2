"""Views restore from the files of this release and of earlier ones that can be read.

Each fixture is an archive of what this module writes as a program; after a change of the format, it
writes the next one: python test_view_fixtures.py <folder>, then zip the folder.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest
from bids import COLUMNS, bids

import millstream as ms
from millstream.relations import live_answer, view_files
from millstream.runtime.sources import Feed

QUERY = "SELECT item, COUNT(*) AS n, SUM(price) AS s FROM Bid WINDOW(RANGE 15) GROUP BY item"
ROWS = bids(120, seed=5)
HALF = 60
FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.zip"))


def opened(folder: Path) -> tuple[Feed, ms.View]:
    session = ms.Session(engine="local")
    feed = session.feed("Bid", COLUMNS, time="t")
    made = f"CREATE MATERIALIZED VIEW v AS {QUERY} RETAIN 500 IN :folder"
    return feed, session.sql(made, folder=str(folder))


def write(folder: Path) -> None:
    """The view after half of the rows, some of its history in files of their own."""
    live_answer._SMALL = 20
    feed, view = opened(folder)
    for place in range(0, HALF, 10):
        feed.send(ROWS[place : place + 10])
        view.as_of(ROWS[place + 9]["t"] - 1, timeout=60)
    assert view.stop(60)


def test_there_is_one_of_this_format() -> None:
    assert f"format-{view_files.FORMAT}" in [fixture.stem for fixture in FIXTURES]


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.stem)
def test_a_view_restores(fixture: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(fixture) as archive:
        archive.extractall(tmp_path)
    feed, view = opened(tmp_path)
    feed.send(ROWS[HALF:])
    feed.close()
    assert view.wait(60)
    asked = ms.Session(engine="local")
    asked.stream("Bid", ROWS, time="t", schema=COLUMNS)
    query = asked.sql(QUERY)
    last = ROWS[-1]["t"]
    for at in range(ROWS[0]["t"], last):
        assert view.as_of(at).equals(query.snapshot(at)), at


if __name__ == "__main__":
    write(Path(sys.argv[1]))
