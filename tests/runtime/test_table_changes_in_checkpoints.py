"""A query with a checkpoint knows what it has been told of a table, however often it changed."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

import millstream as ms
from millstream.relations import table_inlet

TEXT = "SELECT b.k, v FROM B WINDOW(RANGE 10) b JOIN T ON b.k = T.k EMIT CHANGES"


def life(folder: Path, rows: dict[int, int], lives: int, changes: int, seed: int) -> None:
    """Some changes and rows, some of which are unread when the query is stopped."""
    chance = random.Random(seed)
    at = 0
    answer: dict[tuple[int, int], int] = {}
    for _ in range(lives):
        session = ms.Session("local")
        feed = session.feed("B", {"t": "BIGINT", "k": "BIGINT"}, time="t")
        data = [{"k": k, "v": v} for k, v in rows.items()]
        table = session.table("T", data, key="k", schema={"k": "BIGINT", "v": "BIGINT"})

        def keep(given: object, _: object) -> None:
            for row in given.to_pylist():  # type: ignore[attr-defined]
                key = row["k"], row["v"]
                answer[key] = answer.get(key, 0) + row["change"]

        with session.sql(TEXT).start(keep, checkpoint=str(folder)):
            for _ in range(changes):
                key, value = chance.randrange(5), chance.randrange(1000)
                rows[key] = value
                table.upsert([{"k": key, "v": value}])
                at += 1
                feed.send([{"t": at, "k": chance.randrange(5)}])
        if chance.random() < 0.5:  # what happens while no query runs
            rows[chance.randrange(5)] = -1
    session = ms.Session("local")
    feed = session.feed("B", {"t": "BIGINT", "k": "BIGINT"}, time="t")
    session.table("T", [{"k": k, "v": v} for k, v in rows.items()], key="k")
    with session.sql(TEXT).start(keep, checkpoint=str(folder)):
        feed.send([{"t": at + 1, "k": 0}, {"t": at + 2, "k": 0}])
    assert all(count >= 0 for count in answer.values())
    assert {v for (_, v), count in answer.items() if count} <= set(rows.values())


@pytest.mark.parametrize("seed", range(4))
def test_changes_become_one(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_inlet, "_FEW_ROWS", 8)
    monkeypatch.setattr(table_inlet, "_MANY_ENTRIES", 10)
    life(tmp_path, dict.fromkeys(range(5), 0), lives=4, changes=30, seed=seed)
    assert len(list((tmp_path / "spool" / "T").iterdir())) <= 12
    assert len(list((tmp_path / "tables" / "T").iterdir())) == 1


@pytest.mark.parametrize("first", [-1000, 1000])
def test_changes_that_became_one_do_not_hold_later_ones_back(
    tmp_path: Path, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the times of the streams: none was named. Each takes effect at the frontier, where
    the row before it is."""
    monkeypatch.setattr(table_inlet, "_MANY_ENTRIES", 5)
    given: list[tuple[int, int]] = []
    at = first
    for _ in range(2):
        session = ms.Session("local")
        feed = session.feed("B", {"t": "BIGINT", "k": "BIGINT"}, time="t")
        table = session.table("T", [{"k": 1, "v": at}], key="k")
        text = "SELECT t, v FROM B JOIN T ON B.k = T.k"
        with session.sql(text).start(
            lambda rows, _: given.extend((row["t"], row["v"]) for row in rows.to_pylist()),
            checkpoint=str(tmp_path),
        ) as running:
            for _ in range(20):
                at += 1
                table.upsert({"k": 1, "v": at})
                feed.send({"t": at, "k": 1})
                while running.metrics.sources["B"].frontier != at:
                    time.sleep(0.001)
    assert (tmp_path / "tables" / "T").exists()
    assert given == [(t, t + 1) for t in range(first + 1, at)]
