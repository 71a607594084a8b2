"""Messages between the tasks of a batch, and to its driver, as rows that can be shuffled.

They are few and large: the elements for one shard as bytes, and the progress of sources and shards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import pyarrow as pa

from millstream.model.codec import packed, unpacked

SCHEMA = "place int, level int, kind int, number int, shard int, payload binary"
_ARROW = pa.schema(
    [("place", pa.int32()), ("level", pa.int32()), ("kind", pa.int32()), ("number", pa.int32()),
     ("shard", pa.int32()), ("payload", pa.binary())]
)  # fmt: skip
DRIVER = 0  # the place of messages to the driver; any would do


class Kind(IntEnum):
    """The kind of a message; `number` and `shard` are its exchange and shard."""

    ELEMENTS = 0
    SOURCES = 1  # the span of the rows read by the leaves, by stream
    FRONTIER = 2  # the frontier of a shard in an exchange
    ERRORS = 3
    STATE = 4  # where the state of a shard is stored
    STAGED = 5  # where a part of the answer is stored
    FAILURE = 6  # the error that ends the batch
    INTAKE = 7  # the bad and late rows that a task has read
    TALLIES = 8  # the metrics of a shard's operators
    DISCARDED = 9  # how many rows of the answer were discarded


@dataclass(frozen=True)
class Message:
    place: int
    level: int
    kind: Kind
    number: int
    shard: int
    payload: bytes  # elements: see `payload`; others: a record, see `codec`


def packed_messages(messages: Sequence[Message]) -> bytes:
    return packed([[m.place, m.level, int(m.kind), m.number, m.shard, m.payload] for m in messages])


def unpacked_messages(data: bytes) -> list[Message]:
    return [
        Message(place, level, Kind(kind), number, shard, payload)
        for place, level, kind, number, shard, payload in unpacked(data)
    ]


def as_record(messages: Sequence[Message]) -> pa.RecordBatch:
    columns = [
        pa.array([getattr(message, field.name) for message in messages], field.type)
        for field in _ARROW
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def messages_in(record: pa.RecordBatch) -> Iterator[Message]:
    numbers = [record.column(index).to_pylist() for index in range(5)]
    for index, (place, level, kind, number, shard) in enumerate(zip(*numbers, strict=True)):
        payload = record.column(5)[index].as_buffer()
        yield Message(place, level, Kind(kind), number, shard, payload)
