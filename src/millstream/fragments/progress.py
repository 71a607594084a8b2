"""The progress of the sources in a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.model.records import Records
from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER
from millstream.physical.operators.source import first_start

Span = tuple[int, int, int]  # number of rows, first and last start


@dataclass(frozen=True)
class SourceProgress:
    """The state of the sources after a batch: when time begins, and the frontier of each."""

    beginning: int
    sources: Mapping[str, int]

    def told(self) -> list[Any]:
        """As plain values."""
        return [self.beginning, dict(self.sources)]


@dataclass(frozen=True)
class Advance:
    """How far a batch advances a source: to the last start minus the delay; without a delay exactly
    to `least`, as the driver has decided."""

    least: int
    delay: int | None = None

    def frontier(self, span: Span | None) -> int:
        if span is None or self.delay is None or not span[0]:
            return self.least
        return max(self.least, span[2] - self.delay)


@dataclass(frozen=True)
class BatchStep:
    """What the driver knows before a batch: the advance of each source, and when time began."""

    advances: Mapping[str, Advance]
    beginning: int

    def told(self) -> list[Any]:
        """As plain values."""
        advances = {stream: [each.least, each.delay] for stream, each in self.advances.items()}
        return [advances, self.beginning]

    @staticmethod
    def of(told: Sequence[Any]) -> BatchStep:
        advances, beginning = told
        return BatchStep({stream: Advance(*each) for stream, each in advances.items()}, beginning)

    def present(self, spans: Mapping[str, Span]) -> SourceProgress:
        """The progress after the batch."""
        beginning = min([self.beginning, *(first for _, first, _ in spans.values())])
        sources = {s: advance.frontier(spans.get(s)) for s, advance in self.advances.items()}
        return SourceProgress(beginning, sources)


def wider(span: Span | None, records: Records, begins: bool = True) -> Span:
    """The span extended by more rows; rows of a source that does not start time have no first
    start."""
    if not len(records):
        return span or (0, INFINITY, NEVER)
    rows, first, last = span or (0, INFINITY, NEVER)
    if begins:
        first = min(first, first_start(records.start))
    return rows + len(records), first, max(last, int(records.start.max()))


def joined_spans(spans: Iterable[Mapping[str, Span]]) -> dict[str, Span]:
    joined: dict[str, Span] = {}
    for each in spans:
        for stream, (rows, first, last) in each.items():
            known = joined.get(stream, (0, INFINITY, NEVER))
            joined[stream] = known[0] + rows, min(known[1], first), max(known[2], last)
    return joined
