"""The report on `run` beside `start`: both give the same rows, over events as NEXMark has them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from benchmarks.nexmark import QUERIES, streams

import millstream as ms
from benchmarks import run_and_start


def test_events_are_persons_auctions_and_bids() -> None:
    data = streams(5_000)
    assert {name: len(table) for name, table in data.items()} == {
        "person": 100,
        "auction": 300,
        "bid": 4_600,
    }
    for name, key, table in (("auction", "seller", "person"), ("bid", "auction", "auction")):
        assert pc.all(pc.is_in(data[name][key], data[table]["id"])).as_py()


@pytest.mark.parametrize("name", QUERIES)
def test_run_gives_what_start_gives(name: str) -> None:
    found: list[pa.Table] = []
    data = streams(100_000)
    session = run_and_start._session(data)
    query = session.sql(QUERIES[name])
    assert isinstance(query, ms.Query)
    query.start(lambda table, batch: found.append(table)).wait()
    given = pa.concat_tables(found)
    order = [(column, "ascending") for column in ("valid_from", "valid_to", *given.column_names)]
    assert given.num_rows > 0
    assert query.run().sort_by(order).equals(given.sort_by(order))


def test_figures() -> None:
    (measured,) = run_and_start.measure(["q3"], 5_000, turns=1)
    assert measured.run > 0 < measured.start
    assert measured.rows == run_and_start._ran(
        run_and_start._session(streams(5_000)).sql(QUERIES["q3"])  # type: ignore[arg-type]
    )
