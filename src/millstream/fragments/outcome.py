"""The result of a batch at the driver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from millstream.checkpoint.files import Files
from millstream.checkpoint.manifest import ShardState
from millstream.checkpoint.records import Ref
from millstream.fragments.edges import ANSWER
from millstream.fragments.failures import failure_of
from millstream.fragments.messages import Kind, Message
from millstream.fragments.payload import gathered
from millstream.fragments.progress import BatchStep, Span, joined_spans
from millstream.fragments.reading import Intake
from millstream.fragments.remote_query import RemoteQuery
from millstream.fragments.shard import leaf_frontiers
from millstream.model.codec import unpacked
from millstream.model.elements import Row
from millstream.model.metrics import Tally
from millstream.model.values import canonical
from millstream.physical.batch import Batch, Columns


class Outcome:
    """The result of a batch: the answer, as bytes or by reference; errors, the states of shards,
    the metrics of their operators (a leaf has several tasks), and the progress."""

    def __init__(self, work: RemoteQuery, step: BatchStep, messages: Iterable[Message]) -> None:
        self.inline: list[bytes] = []
        self.staged: list[Ref] = []
        self.states: dict[tuple[int, int], ShardState] = {}
        self.errors: dict[tuple[Row, str], None] = {}
        self.intakes: list[Intake] = []
        self.tallies: dict[tuple[int, int], list[list[Tally]]] = defaultdict(list)
        self.discarded = 0  # rows of the answer that were discarded
        self._types = work.answer_types
        spans: list[Mapping[str, Span]] = []
        frontiers: list[int] = []
        for message in messages:
            match message.kind:
                case Kind.ELEMENTS:
                    self.inline.append(message.payload)
                case Kind.STAGED:
                    self.staged.append(Ref(*unpacked(message.payload)))
                case Kind.STATE:
                    state = ShardState.of(unpacked(message.payload))
                    self.states[message.number, message.shard] = state
                case Kind.SOURCES:
                    spans.append(unpacked(message.payload))
                case Kind.FRONTIER:
                    frontiers.append(unpacked(message.payload))
                case Kind.TALLIES:
                    key = message.number, message.shard
                    self.tallies[key].append([Tally(*each) for each in unpacked(message.payload)])
                case Kind.DISCARDED:
                    self.discarded += unpacked(message.payload)
                case Kind.INTAKE:
                    self.intakes.append(Intake.of(unpacked(message.payload)))
                case Kind.FAILURE:
                    raise failure_of(unpacked(message.payload))
                case Kind.ERRORS:
                    told = unpacked(message.payload)
                    self.errors |= dict.fromkeys((_canonical(row), why) for row, why in told)
        self.present = step.present(joined_spans(spans))
        if frontiers:
            self.frontier = min(frontiers)
        else:  # only leaves
            self.frontier = leaf_frontiers(work, self.present.sources)[ANSWER]

    def answer(self, files: Files | None = None) -> Batch:
        """The elements of the answer, read from their references; discarded rows are only
        counted."""
        if self.discarded:
            starts = np.broadcast_to(np.int64(self.present.beginning), self.discarded)
            return Batch(Columns.of([]), starts, starts, starts, self.frontier)
        payloads = list(self.inline)
        if files is not None:
            payloads += [ref.read(files) for ref in self.staged]
        return gathered(self._types, payloads, self.frontier)


def _canonical(row: Row) -> Row:
    """Restores the identity of NaN, which serialization loses."""
    return tuple(map(canonical, row))
