"""Rows of a stream that tasks read, not the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.connectors.intake.rows import typed_table
from millstream.fragments.messages import Kind, Message
from millstream.fragments.payload import decoded, encoded
from millstream.fragments.progress import Span, wider
from millstream.fragments.remote_query import RemoteQuery
from millstream.fragments.tasks import LeafInput, leaf_messages
from millstream.logical.catalog import Stream
from millstream.model.codec import is_packable
from millstream.model.elements import Row
from millstream.model.errors import MillstreamError
from millstream.model.records import Records
from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch


@dataclass(frozen=True)
class Reading:
    """How to read the rows of a stream. Rows without a time get `now`. Rows that start before
    `frontier` are late; rows after `until` are not read yet."""

    stream: Stream
    frontier: int = NEVER
    until: int = INFINITY
    now: int = 0

    @property
    def has_late(self) -> bool:
        return self.frontier > NEVER

    @property
    def has_bound(self) -> bool:
        return self.until < INFINITY

    def timed(self, records: Records) -> Records:
        if self.stream.time:
            return records
        start = np.full(len(records), self.now, np.int64)
        return Records(records.columns, start, start + 1)


@dataclass
class Intake:
    """The rows that a task has read but that did not enter the query."""

    stream: str
    received: int = 0
    refused: list[tuple[Row, str]] = field(default_factory=list)
    _late: list[bytes] = field(default_factory=list)

    def take(self, reading: Reading, table: pa.Table) -> Records:
        """The rows of a table that enter the query."""
        self.received += table.num_rows
        records, bad = typed_table(reading.stream, table)
        self.refused += [(_row(table, row.number - 1), row.message) for row in bad]
        records = reading.timed(records)
        late = records.start < reading.frontier
        if late.any():
            there = records.take(np.flatnonzero(late))
            self._late.append(encoded(Batch.of(there.columns, there.start, there.end)))
        wanted = ~late & (records.start <= reading.until)
        return records if wanted.all() else records.take(np.flatnonzero(wanted))

    def told(self) -> list[Any]:
        """As plain values."""
        return [self.stream, self.received, self.refused, self._late]

    @staticmethod
    def of(told: Sequence[Any]) -> Intake:
        return Intake(*told)

    @property
    def late(self) -> list[Records]:
        batches = map(decoded, self._late)
        return [Records(list(batch.columns), batch.start, batch.end) for batch in batches]


def _row(table: pa.Table, index: int) -> Row:
    return tuple(_shown(column[index]) for column in table.columns)


def _shown(value: pa.Scalar) -> object:
    """A value of a row that may be bad because it is not UTF-8; as text if a message cannot carry
    it."""
    try:
        shown = value.as_py()
    except UnicodeDecodeError:
        if isinstance(value, pa.StringScalar | pa.LargeStringScalar):
            return value.as_buffer().to_pybytes().decode(errors="replace")
        return str(value.type)
    return shown if is_packable(shown) else str(shown)


@dataclass(frozen=True)
class RemoteRows:
    """Rows outside the driver, in the executor's own form."""

    reading: Reading
    rows: Any


def read_messages(
    work: RemoteQuery,
    reading: Reading,
    records: Iterable[pa.RecordBatch],
    first: int,
    told: bool = True,
) -> Iterator[Message]:
    """The messages for the rows that one task reads; `first` makes its random draws unique. It
    reports the rows' span unless another task does, and always the rows it rejects."""
    intake = Intake(reading.stream.name)

    def inputs() -> Iterator[LeafInput]:
        for number, record in enumerate(records):
            taken = intake.take(reading, pa.Table.from_batches([record]))
            yield LeafInput(reading.stream.name, taken, first + number)

    try:
        yield from leaf_messages(work, inputs())
    except MillstreamError as error:  # a retry would not help
        yield from work.told_failure(error)
    if not told:
        intake.received = 0
    if told or intake.refused:
        yield work.told_driver(Kind.INTAKE, 0, 0, intake.told())


def time_messages(
    work: RemoteQuery, reading: Reading, records: Iterable[pa.RecordBatch]
) -> Iterator[Message]:
    """Reports rows with these starts; other tasks process them."""
    intake = Intake(reading.stream.name)
    span: Span | None = None
    for record in records:
        starts = record.column(0).to_numpy()
        span = wider(span, Records([], starts, starts))
        intake.received += len(starts)
    if span is not None:
        yield from work.told_everywhere(Kind.SOURCES, {reading.stream.name: span})
    yield work.told_driver(Kind.INTAKE, 0, 0, intake.told())
