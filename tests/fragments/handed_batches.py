"""A stream whose rows are handed over batch by batch."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass

import pyarrow as pa

import millstream as ms
from millstream.fragments.remote_input import RemoteInput
from millstream.runtime.inputs import InputPlace

TEXT = """SELECT a.k, COUNT(*) AS n, SUM(b.v) AS s FROM A WINDOW(RANGE 20) a
JOIN B WINDOW(RANGE 30) b ON a.k = b.k GROUP BY a.k EMIT CHANGES"""
COLUMNS = {"t": "BIGINT", "k": "BIGINT", "v": "BIGINT"}
DELAY = 4


def table(seed: str) -> pa.Table:
    """Rows that are out of order within the delay."""
    chance = random.Random(seed)
    times = [i // 2 + chance.randrange(DELAY) for i in range(120)]
    rows = [{"t": t, "k": chance.randrange(4), "v": chance.randrange(9)} for t in times]
    return pa.Table.from_pylist(rows, pa.schema([(name, pa.int64()) for name in COLUMNS]))


def batches(rows: pa.Table, chance: random.Random) -> list[pa.Table]:
    bounds = sorted(chance.choices(range(len(rows) + 1), k=chance.randrange(8)))
    firsts, stops = [0, *bounds], [*bounds, len(rows)]
    return [rows.slice(a, b - a) for a, b in zip(firsts, stops, strict=True)]


@dataclass
class Handing:
    """Hands over batches from where the input is."""

    batches: list[pa.Table]
    ends: bool = True
    failure: Exception | None = None

    def open(self, place: InputPlace) -> RemoteInput:
        return RemoteInput(place.stream, place.sources, self, place.inbox)

    def begin(self, input: RemoteInput) -> None:
        threading.Thread(target=self._run, args=(input,), daemon=True).start()

    def _run(self, input: RemoteInput) -> None:
        first = 0 if input.mark is None else input.mark + 1
        for number in range(first, len(self.batches)):
            if not input.hand(self.batches[number].to_batches(), number):
                return
        if self.ends:
            input.end(self.failure)
        else:
            input.run_dry()

    def stop(self) -> None:
        pass


def session_of(origins: dict[str, Handing], delay: int = DELAY) -> ms.Session:
    session = ms.Session(engine="local")
    for name in origins:
        session.feed(name, COLUMNS, time="t", delay=delay)
    session._origins.origin = lambda name, *_: origins[name]  # type: ignore[method-assign]
    return session
