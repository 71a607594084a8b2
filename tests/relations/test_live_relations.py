"""Tables that change while a query runs, stops, crashes and starts again."""

from __future__ import annotations

import datetime
import time
from pathlib import Path

import pytest
from live_relations import check_as_it_changes
from random_relations import COUNTED, LOOKUPS, SNAPSHOTS

import millstream as ms
from effort import examples

pytestmark = pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")

SHAPES = [*LOOKUPS, *COUNTED, *(shape for shape in SNAPSHOTS if "FINAL" not in SNAPSHOTS[shape])]
ROUNDS = examples(40) // 40


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("shape", SHAPES)
def test_as_it_changes(shape: str, seed: int, tmp_path: Path) -> None:
    check_as_it_changes(shape, seed, tmp_path, engine="local")


def test_tables_alone_have_an_answer_from_the_start() -> None:
    """Also an empty one; and what changes then changes by the clock."""
    session = ms.Session("local")
    session.table("Full", [{"k": 1}])
    empty = session.table("Empty", schema={"k": "BIGINT"})
    given: list[dict[str, object]] = []
    text = "SELECT (SELECT COUNT(*) FROM Full) AS n, (SELECT COUNT(*) FROM Empty) AS m FROM Full"
    query = session.sql(text + " EMIT CHANGES")
    with query.start(lambda table, _: given.extend(table.to_pylist())):
        until = time.monotonic() + 60
        while not given and time.monotonic() < until:
            time.sleep(0.01)
        assert [(row["n"], row["m"]) for row in given] == [(1, 0)]
        changed = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        empty.insert([{"k": 5}])
        while len(given) < 3 and time.monotonic() < until:
            time.sleep(0.01)
        assert all(row["at"] >= changed for row in given[1:])  # type: ignore[operator]
