"""A warning, once per stream, where many rows are late."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import millstream as ms
from runtime.live import SOON, Seen, bid, bid_feed, live_session

SQL = "SELECT DISTINCT t FROM Bid WINDOW(RANGE 3)"


@contextmanager
def told() -> Iterator[list[str]]:
    """What is warned of in a block."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    found += [str(each.message) for each in caught if each.category is ms.MillstreamWarning]


def test_many_late_rows_are_warned_of_once() -> None:
    session, _ = live_session()
    feed = bid_feed(session, delay=10)
    with told() as warned, session.sql(SQL).start("noop", name="counts") as running:
        feed.send(bid(1_000))
        assert running._worker.await_frontier(989, SOON)
        for first in (700, 600, 600):
            feed.send([bid(first + i) for i in range(100)])
    (text,) = warned
    found = re.match(
        r'warning: query "counts": (\d+) of the first (\d+) rows of stream "Bid" were late '
        "and are in no answer\n",
        text,
    )
    assert found is not None
    assert int(found[1]) + 1 == int(found[2])


def test_the_warning_names_the_delay_that_is_needed() -> None:
    session, _ = live_session()
    feed = session.feed("Bid", {"t": "BIGINT"}, time="t", unit="seconds", delay="10 seconds")
    with told() as warned, session.sql(SQL.replace("3)", "3 SECONDS)")).start() as running:
        feed.send([(1_000,)])
        assert running._worker.await_frontier(989, SOON)
        feed.send([(910,)])
    (text,) = warned
    assert text == (
        'warning: query "query_1": 1 of the first 2 rows of stream "Bid" were late and are in no '
        "answer\nhelp: they came up to 90 SECONDS behind others: declare ORDERED BY t DELAY 90 "
        "SECONDS, or let the source give them in order (files are read by their time of "
        "modification, then by name; a source that starts over gives old rows again)"
    )


def test_few_late_rows_are_no_reason_to_warn() -> None:
    session, _ = live_session()
    feed = bid_feed(session)
    seen = Seen()
    with told() as warned, session.sql(SQL).start(seen) as running:
        feed.send([bid(t) for t in range(500)])
        seen.await_frontier(499)
        feed.send([bid(t) for t in range(5)])
    assert running.progress.late == 5
    assert warned == []


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_files_in_another_order_than_their_rows(engine: str, tmp_path: Path) -> None:
    """As where files are written within the same moment, or copied."""
    for number in range(4):
        path = tmp_path / f"{number}.csv"
        path.write_text("t\n" + "".join(f"{100 * number + i}\n" for i in range(100)))
        os.utime(path, ns=(0, 10**18 - number))
    session = ms.Session(engine=engine)
    session.sql(f"CREATE STREAM Bid (t BIGINT) SOURCE csv('{tmp_path}') ORDERED BY t")
    with told() as warned, session.sql(SQL).start("noop") as running:
        running.wait(60)
    late = running.progress.late
    if late:  # unless all files were read before the query came for the first
        assert len(warned) == 1
        assert 'rows of stream "Bid" were late' in warned[0]
    assert bool(warned) == bool(late)
