"""Workloads of the papers: their texts are queries, their data gives results of the sizes told."""

from __future__ import annotations

from collections import Counter, deque

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from benchmarks.papers import golab_ozsu, kraemer

import millstream as ms
from millstream.connectors import nexmark
from millstream.connectors.nexmark import generate

pytestmark = pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")

WINDOW = 2_000


def last_window(stream: pa.Table, protocol: str | None = None) -> np.ndarray:
    rows = stream.slice(len(stream) - WINDOW)
    if protocol is not None:
        rows = rows.filter(pc.equal(rows["protocol"], protocol))
    return rows["src"].to_numpy()


@pytest.fixture(scope="module")
def links() -> dict[str, pa.Table]:
    return golab_ozsu.links(WINDOW)


@pytest.mark.parametrize("query", golab_ozsu.queries(WINDOW))
def test_queries_of_golab_and_ozsu_are_understood(query: str) -> None:
    session = ms.Session()
    session.sql(golab_ozsu.declarations())
    assert session.sql(golab_ozsu.queries(WINDOW)[query]).explain()


def test_both_plans_of_query_5_are_one_query() -> None:
    answers = []
    for name in ("5 negation below", "5 negation above"):
        session = ms.Session()
        for link, stream in golab_ozsu.links(20, windows=3).items():
            session.stream(link, stream, time="ts")
        query = session.sql(golab_ozsu.queries(20)[name])
        answers.append([sorted(query.snapshot(at)["src"].to_pylist()) for at in range(0, 70, 3)])
    assert answers[0] == answers[1]
    assert any(answers[0])


@pytest.mark.parametrize(("protocol", "times"), [("ftp", 1), ("telnet", 10)])
def test_size_of_query_1(links: dict[str, pa.Table], protocol: str, times: int) -> None:
    one, two = (Counter(last_window(links[n], protocol).tolist()) for n in ("Link1", "Link2"))
    results = sum(count * two[source] for source, count in one.items())
    assert results == pytest.approx(times * WINDOW, rel=0.3)


def test_size_of_query_2() -> None:
    link = golab_ozsu.links(200_000, windows=1)["Link1"]
    assert len(link["src"].unique()) == 2_000
    assert len(link.group_by(["src", "dst"]).aggregate([])) == pytest.approx(20_000, rel=0.01)


def test_early_retractions_of_query_3(links: dict[str, pa.Table]) -> None:
    """About 40 % of what enters the result leaves it early, when its value arrives on Link2."""
    counts: Counter[int] = Counter()  # in Link1, less those in Link2
    windows: tuple[deque[int], deque[int]] = deque(), deque()
    entered = retracted = 0
    rows = zip(links["Link1"]["src"].to_pylist(), links["Link2"]["src"].to_pylist(), strict=True)
    for pair in rows:
        if len(windows[0]) == WINDOW:
            counts[windows[0].popleft()] -= 1
            expired = windows[1].popleft()
            counts[expired] += 1
            entered += counts[expired] > 0
        for window, source in zip(windows, pair, strict=True):
            window.append(source)
        counts[pair[0]] += 1
        entered += counts[pair[0]] > 0
        retracted += counts[pair[1]] > 0
        counts[pair[1]] -= 1
    assert retracted / entered == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize("query", [*kraemer.QUERIES, "Q5 grouped first"])
def test_queries_of_kraemer_are_understood(query: str) -> None:
    session = ms.Session()
    session.source("nexmark", nexmark.connect)
    session.sql(kraemer.declarations())
    assert session.sql(kraemer.QUERIES.get(query, kraemer.Q5_GROUPED_FIRST)).explain()


def test_closing_prices_are_found() -> None:
    """Q5 in both plans finds the closing price of each auction, once."""
    streams = kraemer.streams(bids=60)
    closed = generate("ClosedAuction", bids=60).select(["itemID", "closing_price"])
    expected = closed.rename_columns(["itemID", "price"]).sort_by("itemID").to_pylist()
    for text in (kraemer.QUERIES["Q5"], kraemer.Q5_GROUPED_FIRST):
        session = ms.Session()
        for name, stream in streams.items():
            session.stream(name, stream, time="timestamp")
        answer = session.sql(text).run().select(["itemID", "price"])
        assert answer.sort_by("itemID").to_pylist() == expected
