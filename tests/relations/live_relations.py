"""A table that changes while a query runs: between any two batches, with and without a time, and
across stops and crashes, after which a program creates the same table again.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from random_relations import SNAPSHOTS, Change, RelationCase

import millstream as ms
from millstream.api.tables import TableHandle
from millstream.model.elements import Element, normal_form
from oracle.random_streams import Tape

SOON = 60.0
SCHEMA = {"t": "BIGINT", "k": "BIGINT", "x": "BIGINT"}


class Crash(Exception):
    pass


class Play:
    """A case, its streams sent instant by instant and its changes made in between."""

    def __init__(self, case: RelationCase, folder: Path, chance: Random, **options: Any) -> None:
        self.case = case
        self.options = options
        self.folder = folder
        self.chance = chance
        self.given: dict[int, list[dict[str, Any]]] = {}  # by the number of the batch
        self.crashing = False
        fixed = case.kind in ("constant", "temporal")
        self.left = [change for change in case.changes if change.at is not None and not fixed]
        self.played = [change for change in case.changes if change not in self.left]
        self.latest = -100
        self.session: ms.Session
        self.table: TableHandle
        self._open(None)
        for change in self.played:
            case.apply(self.table, change)
        self._start()

    def _open(self, rows: pa.Table | None) -> None:
        self.session = ms.Session(**self.options)
        self.feeds = {name: self.session.feed(name, SCHEMA, "t") for name in ("S", "U")}
        rest = [{"k": 1, "v": 10}, {"k": 2, "v": 20}]
        self.session.table("C", rest, key="k", changes="constant")
        self.table = self.case.add_table(self.session)
        if rows is not None and len(rows):
            self.table.insert(rows)

    def _start(self) -> None:
        self.query = self.session.sql(self.case.text)
        self.running = self.query.start(self._sink, checkpoint=str(self.folder))

    def _sink(self, table: pa.Table, batch: Any) -> None:
        if self.crashing:
            raise Crash
        self.given[batch.id] = table.to_pylist()

    def play(self) -> None:
        instants = sorted({row["t"] for rows in self.case.streams.values() for row in rows})
        for instant in instants:
            self._send(instant, crash=self.chance.random() < 0.15)
            if self.crashing or self.chance.random() < 0.15:
                self._restart(instant)
            for _ in range(self.chance.randrange(3)):
                if self.left:
                    self._change(self.left.pop(0), instant)
        for feed in self.feeds.values():
            feed.close()
        self.running.wait(SOON)

    def _send(self, instant: int, crash: bool) -> None:
        for name, feed in self.feeds.items():
            feed.send([row for row in self.case.streams[name] if row["t"] == instant])
        self.crashing = crash  # once all is sent: unread rows are lost
        for feed in self.feeds.values():
            feed.heartbeat(instant)
        self._await(instant)

    def _await(self, instant: int) -> None:
        """Until all is read that was sent, or the query has failed."""
        deadline = time.monotonic() + SOON
        while self.running.exception is None:
            read = {node.stream for node in self.query.plan.walk() if hasattr(node, "stream")}
            sources = self.running.metrics.sources
            frontiers = [sources[name].frontier for name in self.feeds if name in read]
            if all(frontier is not None and frontier >= instant for frontier in frontiers):
                return
            assert time.monotonic() < deadline, self.case
            time.sleep(0.001)

    def _restart(self, instant: int) -> None:
        with suppress(ms.QueryError):  # that of the crash
            self.running.stop()
        self.crashing = False
        self._open(self.table.rows())
        self._start()
        for feed in self.feeds.values():  # what was sent is forgotten
            feed.heartbeat(instant)
        self._await(instant)

    def _change(self, change: Change, instant: int) -> None:
        """Perhaps without a time: then it takes effect where the streams are, or with the last."""
        named = self.chance.random() < 0.6
        at = max(self.latest, instant + (self.chance.choice([0, 0, 1, 3]) if named else 0))
        self.latest = at
        timed = replace(change, at=at)
        if named or self.case.kind == "since":
            self.case.apply(self.table, timed)
        else:
            self.case.apply(self.table, replace(change, at=None))
        self.played.append(timed)


def elements(rows: list[dict[str, Any]]) -> list[Element]:
    return normal_form(
        Element(tuple(row.values())[:-2], row["valid_from"], row["valid_to"]) for row in rows
    )


def check_as_it_changes(shape: str, seed: int, folder: Path, **options: Any) -> None:
    """Require that what a query gives is the answer of the definition over the changes as they took
    effect."""
    chance = Random(f"{shape} {seed}")
    kinds = ["retroactive", "since", "constant", "temporal"]
    kinds += [] if shape in SNAPSHOTS else ["non retroactive"] * 2
    case = RelationCase(Tape(chance.randbytes(160)), kind=chance.choice(kinds), shape=shape)
    play = Play(case, folder, chance, **options)
    play.play()
    ours = [row for _, rows in sorted(play.given.items()) for row in rows]
    case.changes = play.played
    theirs = case.filled(engine="reference").sql(case.text).run().to_pylist()
    assert elements(ours) == elements(theirs), case
