"""Batches as bytes, for shuffles and files.

A payload is an Arrow stream of one record batch. Times come first: the starts; the ends unless all
intervals have the same length; the weights unless all are 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from millstream.model.arrays import of_int64
from millstream.model.time import FARTHEST, INFINITY
from millstream.physical.batch import NEVER, Batch, Columns, Ints, merged

_LENGTH = b"length"  # of all intervals
_START, _END, _WEIGHT = "start", "end", "weight"


def encoded(batch: Batch) -> bytes:
    """The elements of a batch; its frontier is sent separately."""
    names, arrays = [_START], [of_int64(batch.start)]
    about: dict[bytes, bytes] = {}
    length = _common_length(batch)
    if length is None:
        names, arrays = [*names, _END], [*arrays, of_int64(batch.end)]
    else:
        about[_LENGTH] = str(length).encode()
    if (batch.weight != 1).any():
        names, arrays = [*names, _WEIGHT], [*arrays, of_int64(batch.weight)]
    names += [str(position) for position in range(len(batch.columns))]
    arrays += list(batch.columns)
    fields = [pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)]
    record = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, about))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, record.schema) as writer:
        writer.write_batch(record)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def decoded(payload: pa.Buffer | bytes) -> Batch:
    with pa.ipc.open_stream(payload) as reader:
        record = reader.read_next_batch()
    names = record.schema.names
    start = _ints(record.column(0))
    if names[1:2] == [_END]:
        end = _ints(record.column(1))
    else:
        length = int(record.schema.metadata[_LENGTH])
        end = np.full(len(start), INFINITY) if length == INFINITY else start + length
    weighted = _WEIGHT in names[1:3]
    weight = _ints(record.column(names.index(_WEIGHT))) if weighted else np.ones_like(start)
    first = 1 + (names[1:2] == [_END]) + weighted
    return Batch(Columns.of(record.columns[first:]), start, end, weight, NEVER)


def gathered(types: Iterable[pa.DataType], payloads: Iterable[bytes], frontier: int) -> Batch:
    """The elements of several payloads, sorted by start: shards are independent of each other."""
    batch = merged([Batch.empty(types, NEVER), *map(decoded, payloads)])
    return batch.take(np.argsort(batch.start, kind="stable")).up_to(frontier)


def _ints(array: pa.Array) -> Ints:
    return array.to_numpy()  # type: ignore[no-any-return]


def _common_length(batch: Batch) -> int | None:
    if not len(batch):
        return 1
    for_ever = batch.end == INFINITY
    if for_ever.any():
        return INFINITY if for_ever.all() else None
    first = int(batch.end[0]) - int(batch.start[0])
    if first > FARTHEST:  # valid from before time begins
        return None
    return first if (batch.end - batch.start == first).all() else None


def split(batch: Batch, shards: Ints) -> Iterator[tuple[int, Batch]]:
    """The rows of each shard, in the given order."""
    if not len(batch):
        return
    counts = np.bincount(shards)
    used = np.flatnonzero(counts)
    if len(used) == 1:
        yield int(used[0]), batch
        return
    small = shards.astype(np.uint16) if len(counts) <= 1 << 16 else shards  # enables counting sort
    placed = batch.take(np.argsort(small, kind="stable")).gathered()
    stops = np.cumsum(counts)
    for shard in used:
        yield int(shard), part(placed, int(stops[shard] - counts[shard]), int(stops[shard]))


def part(batch: Batch, first: int, stop: int) -> Batch:
    return Batch(
        Columns.of(array.slice(first, stop - first) for array in batch.columns),
        batch.start[first:stop],
        batch.end[first:stop],
        batch.weight[first:stop],
        batch.frontier,
    )
