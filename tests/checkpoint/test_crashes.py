"""A query that is ended between any two writes of its checkpoint, or within one, goes on from there
with the right answer.

All writes of a run are recorded. Then each beginning of them is what a crash left: the last write
may be torn, and files that nothing was promised about may be there in part. A new process takes it
over and runs the rest; each batch of answers counts once, by its number.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import millstream as ms
from checkpoint.crash_recording import Recorder, left_by_crash
from fragments.fragment_agreement import MemoryFiles
from millstream.checkpoint.files import CheckpointError
from millstream.fragments.cutting import fragments_of
from millstream.fragments.pipeline import InProcess, Pipeline
from millstream.fragments.progress import Advance, BatchStep
from millstream.fragments.remote_query import RemoteQuery
from millstream.fragments.tasks import LeafInput
from millstream.logical.plan import Plan
from millstream.logical.reference import Reference
from millstream.model.elements import Element, normal_form
from millstream.model.records import Records
from millstream.model.time import INFINITY
from millstream.optimizer.choice import choose
from millstream.physical.batch import NEVER
from papers.local_engine import elements_of

QUERIES = [
    "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM A WINDOW(RANGE 6) GROUP BY k",
    "SELECT a.k, b.v FROM A WINDOW(RANGE 5) a JOIN B WINDOW(RANGE 3) b ON a.k = b.k",
    "SELECT k FROM A WINDOW(RANGE 4) EXCEPT SELECT k FROM B WINDOW(RANGE 4)",
    "SELECT SUM(v) AS s FROM A WINDOW(ROWS 3)",
    "SELECT k, v FROM A WINDOW(PARTITION BY k ROWS 2)",
]
ROWS = 24
BATCH = 5  # rows of each stream


class Run:
    """A query, from where its checkpoint is to its end. `sink` has the answers by batch."""

    def __init__(self, session: ms.Session, plan: Plan, files: MemoryFiles, shards: int) -> None:
        physical = choose(plan, "FINAL")
        self._work = RemoteQuery(fragments_of(physical), shards, shards, {}, {}, seed=1)
        self._pipeline = Pipeline(self._work, files, InProcess(self._work, files))
        self._files = files
        self._inputs = session._origins.inputs(plan)
        self._plan = plan

    def had(self, whole: dict[int, list[Element]]) -> dict[int, list[Element]]:
        """What the sink had got when the checkpoint was left: all before the last batch, and that
        one if it is noted as published."""
        last = self._pipeline.manifest.batch
        known = last if self._pipeline.published() is not None else last - 1
        return {batch: answers for batch, answers in whole.items() if batch <= known}

    def finish(self, sink: dict[int, list[Element]]) -> None:
        pipeline = self._pipeline
        if pipeline.manifest.batch >= 0 and pipeline.published() is None:
            self._publish(sink)
        beginning = pipeline.manifest.beginning
        for number in range(pipeline.manifest.batch + 1, ROWS // BATCH + 2):
            step, inputs = self._batch(number, beginning)
            beginning = pipeline.run(step, inputs, [], lambda _: b"driver").present.beginning
            self._publish(sink)

    def _publish(self, sink: dict[int, list[Element]]) -> None:
        answers = list(elements_of(self._pipeline.answers(), self._plan.schema))
        batch = self._pipeline.manifest.batch
        assert sink.get(batch, answers) == answers, "a batch that comes again is the same"
        sink[batch] = answers
        self._pipeline.note_published(b"")

    def _batch(self, number: int, beginning: int) -> tuple[BatchStep, list[LeafInput]]:
        first, at_end = number * BATCH, (number + 1) * BATCH > ROWS
        rows = {name: r.slice(*_bounds(r, first)) for name, r in self._inputs.items()}
        advances = {
            name: Advance(INFINITY if at_end else _reached(self._inputs[name], first + BATCH))
            for name in rows
        }
        inputs = [LeafInput(name, r, min(first, ROWS)) for name, r in rows.items()]
        return BatchStep(advances, beginning), inputs


def _bounds(records: Records, first: int) -> tuple[int, int]:
    return min(first, len(records)), min(first + BATCH, len(records))


def _reached(records: Records, stop: int) -> int:
    return int(records.start[min(stop, len(records)) - 1]) if len(records) else NEVER


@pytest.fixture(scope="module")
def session() -> ms.Session:
    session = ms.Session(engine="local")
    for name, factor in (("A", 3), ("B", 5)):
        rows = [{"t": 2 * i // 3, "k": i * factor % 4, "v": i * 7 % 11} for i in range(ROWS)]
        session.stream(name, rows, time="t")
    return session


def answer(sink: dict[int, list[Element]], beginning: int) -> list[Element]:
    elements = (element for batch in sink.values() for element in batch)
    return normal_form(
        Element(e.row, max(e.start, beginning), max(e.end, beginning), e.weight) for e in elements
    )


def crashes(recorder: Recorder) -> Iterator[MemoryFiles]:
    for count in range(len(recorder.writes) + 1):
        for torn in (False, True):
            yield left_by_crash(recorder.writes[:count], torn)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("least", [1 << 18, 300])
def test_every_crash(
    session: ms.Session, text: str, shards: int, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.fragments.keeping.LEAST", least)
    plan = session.sql(text).plan
    inputs = {name: records.elements() for name, records in session._origins.inputs(plan).items()}
    expected = Reference(plan, inputs).result()
    recorder = Recorder()
    whole: dict[int, list[Element]] = {}
    Run(session, plan, recorder, shards).finish(whole)
    assert answer(whole, 0) == expected
    assert len(recorder.content) < 30, "old files are removed"
    for files in crashes(recorder):
        run = Run(session, plan, files, shards)
        sink = run.had(whole)
        run.finish(sink)
        assert answer(sink, 0) == expected


def test_damage_is_refused(session: ms.Session) -> None:
    """A byte that changed anywhere is found, or does no harm."""
    plan = session.sql(QUERIES[0]).plan
    recorder = Recorder()
    whole: dict[int, list[Element]] = {}
    Run(session, plan, recorder, 1).finish(whole)
    half = recorder.writes[: 2 * len(recorder.writes) // 3]
    refused = 0
    for name in sorted(left_by_crash(half, torn=False).content):
        for damage in (lambda data: None, lambda data: b"", lambda data: data[:-1], _one_bit):
            files = left_by_crash(half, torn=False)
            damaged = damage(files.content.pop(name))
            if damaged is not None:
                files.content[name] = damaged
            try:
                run = Run(session, plan, files, 1)
                sink = run.had(whole)
                run.finish(sink)
            except CheckpointError:
                refused += 1
            else:
                assert answer(sink, 0) == answer(whole, 0)
    assert refused > 0


def _one_bit(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
