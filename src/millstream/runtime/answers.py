"""Answers as tables: elements with valid_from and valid_to, changes with at and change.

The answer of a finished run is normalized and sorted (`normal_form.py`), so that it does not depend
on the batches of the input; a running query emits answers as they are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.logical.plan import Schema
from millstream.model.arrays import of_int64, of_view, view
from millstream.model.long_texts import ordinary
from millstream.model.time import INFINITY, TimeDomain
from millstream.model.types import LAST_TIMESTAMP
from millstream.physical.batch import NEVER, Batch, Columns, Ints, are_ones
from millstream.physical.instants import up
from millstream.physical.kernels.scans import greatest, has_value, least
from millstream.physical.ordering import order_words
from millstream.physical.pieces import check_pieces
from millstream.physical.state.counted_rows import counted_rows


def shown(rows: Columns) -> Columns:
    """The displayed form of rows: without negative zeros."""
    return Columns.of(map(_without_negative_zeros, rows))


def _without_negative_zeros(array: pa.Array) -> pa.Array:
    if not pa.types.is_floating(array.type):
        return array
    if not has_value(view(array), _NEGATIVE_ZERO[array.type.bit_width]):
        return array
    return pc.add(array, pa.scalar(0, array.type))


_NEGATIVE_ZERO = {32: -(2**31), 64: -(2**63)}  # the bits of a REAL, of a DOUBLE


def cropped(batch: Batch, beginning: int, in_order: bool = False) -> Batch:
    """Crops elements before the beginning of time, where tables may have rows. In order of start,
    only the first element needs a check."""
    start = batch.start
    if (start[0] if in_order and len(start) else least(start)) >= beginning:
        return batch
    batch = batch.where(batch.end > beginning)
    return batch.timed(np.maximum(batch.start, beginning), batch.end)


def cut(batch: Batch, granule: int) -> Batch:
    """Each element once per granule; elements without an end cannot be cut."""
    finite = batch.end < INFINITY
    first = batch.start // granule
    count = np.where(finite, (batch.end - 1) // granule - first + 1, 1)
    check_pieces(count, granule)
    index = np.repeat(np.arange(len(batch)), count)
    number = np.arange(len(index)) - np.repeat(np.cumsum(count) - count, count)
    begin = (first[index] + number) * granule
    pieces = batch.take(index)
    start = np.maximum(pieces.start, begin)
    end = np.where(finite[index], np.minimum(pieces.end, begin + granule), pieces.end)
    return replace(pieces, start=start, end=end)


def repeated(batch: Batch, granule: int) -> Batch:
    """Each element at every multiple of the granule at which it is valid; elements without an end
    up to the first multiple after the last change."""
    start, end = up(batch.start, granule), up(batch.end, granule)
    changes = np.concatenate([start, end[end < INFINITY], [NEVER]])
    end = np.minimum(end, changes.max() + granule)
    return cut(batch.timed(start, end), granule)


def final_table(schema: Schema, domain: TimeDomain, batch: Batch) -> pa.Table:
    """A row of weight n occurs n times."""
    batch = _counted(batch)
    times = _times(domain, batch.start), _times(domain, batch.end)
    return _table(schema, batch.columns, times, ("valid_from", "valid_to"))


def changes_table(schema: Schema, domain: TimeDomain, batch: Batch) -> pa.Table:
    more = _times(domain, batch.start), of_int64(batch.weight)
    return _table(schema, batch.columns, more, ("at", "change"))


def instants_table(schema: Schema, domain: TimeDomain, batch: Batch) -> pa.Table:
    """The rows that are valid at each instant; a row of weight n occurs n times."""
    batch = _counted(batch)
    return _table(schema, batch.columns, [_times(domain, batch.start)], ["at"])


def _counted(batch: Batch) -> Batch:
    if not are_ones(batch.weight):
        batch = batch.take(np.repeat(np.arange(len(batch)), batch.weight))
    return batch


def snapshot_table(schema: Schema, batch: Batch) -> pa.Table:
    """The rows of a snapshot, sorted."""
    counted = counted_rows(batch.columns, batch.weight)
    rows = shown(batch.columns.take(np.repeat(counted.first, counted.weight)))
    words = [word for array in rows for word in order_words(array)]
    if words:
        rows = rows.take(np.lexsort(words[::-1]))
    return _table(schema, rows)


def _table(
    schema: Schema, columns: Columns, more: Sequence[pa.Array] = (), names: Sequence[str] = ()
) -> pa.Table:
    """The columns of a plan, and extra ones."""
    shown = [ordinary(column) for column in columns]
    return pa.Table.from_arrays([*shown, *more], [*(field.name for field in schema), *names])


def _times(domain: TimeDomain, instants: Ints) -> pa.Array:
    if pa.types.is_timestamp(domain.type):
        if greatest(instants) > LAST_TIMESTAMP:
            instants = np.minimum(instants, LAST_TIMESTAMP)
        return of_view(instants, domain.type)
    return of_int64(instants)
