"""Streams whose batches come one by one are taken together, as long as they keep step."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from fragments.handed_batches import TEXT, Handing, session_of, table
from millstream.fragments.remote_input import RemoteInput
from millstream.runtime import worker

BATCHES = 10


@dataclass
class Slowly(Handing):
    """Takes a while for each batch."""

    pause: float = 0.0

    def _run(self, input: RemoteInput) -> None:
        for number, rows in enumerate(self.batches):
            time.sleep(self.pause)
            if not input.hand(rows.to_batches(), number):
                return
        input.end()


def parts(name: str, count: int) -> list[pa.Table]:
    rows = table(name)
    size = len(rows) // count
    return [rows.slice(i * size, size) for i in range(count)]


def test_taken_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "COMPANY", 5_000_000)
    origins = {"A": Handing(parts("A", BATCHES)), "B": Slowly(parts("B", BATCHES), pause=0.03)}
    running = session_of(origins).sql(TEXT).start("noop", checkpoint=str(tmp_path))
    assert running.wait(60)
    assert running.progress.batches <= BATCHES + 3


def test_nobody_waits_twice_for_one_that_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "COMPANY", 1_000_000)
    silent = Handing(parts("B", 1), ends=False)
    origins = {"A": Handing(parts("A", 60)), "B": silent}
    running = session_of(origins).sql(TEXT).start("noop", checkpoint=str(tmp_path))
    began = time.monotonic()
    assert running.wait(120)
    assert time.monotonic() - began < 30
