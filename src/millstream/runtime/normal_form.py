"""Whole answers in normal form: maximal pieces of constant weight, by start, end and row.

The definition is `_pieces`: number the rows, add up their weights over time, and cut where the sum
changes. Most answers are in normal form already, and checking that is cheaper than normalizing. Two
elements form different pieces only if their rows are equal and their intervals overlap or touch but
differ (equal rows with equal intervals occur twice, which needs no other pieces). So, from cheap to
expensive:

- The answer is cut at instants at which everything before has ended, and each part is processed
separately.
- Disjoint elements, each starting after all previous ones have ended, are in normal form and in
order, whatever their rows are. The rows are not read.
- Elements that overlap or touch are compared by the hash of their row.
- Only those whose hash recurs while they are valid are cut into pieces.

Cost: a scan of the times of all elements; a hash and a table lookup per element that overlaps
another; the rest, usually nothing, is numbered and sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa

from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch, are_ones, merged
from millstream.physical.events.sweep import Sweep
from millstream.physical.kernels.meetings import last_gap, lie_apart, may_meet_equals, meeting
from millstream.physical.kernels.positions import positions
from millstream.physical.kernels.scans import greatest, least
from millstream.physical.kernels.steps import previous_steps, running_counts
from millstream.physical.ordering import in_order
from millstream.physical.row_hashes import row_hashes
from millstream.physical.state.counted_rows import first_rows
from millstream.physical.state.keys import KeySpace
from millstream.runtime.answers import shown

SMALL = 1 << 16  # elements merged into one part


def whole_answer(batches: Sequence[Batch]) -> list[Batch]:
    """The normal form of all batches, in order: in one piece, or in pieces one after the other."""
    if sum(map(len, batches)) <= SMALL:
        return [normal_form(merged(batches))]
    return [normal_form(merged(part)) for part in _parts([b for b in batches if len(b)])]


def _parts(batches: Sequence[Batch]) -> Iterator[list[Batch]]:
    """All elements, in parts that end before the next one starts: parts that fit into the
    processor's cache take less time than one large one."""
    following = [*accumulate([least(batch.start) for batch in reversed(batches)], min)][::-1]
    reach = NEVER
    part: list[Batch] = []
    for batch, later in zip(batches, [*following[1:], INFINITY], strict=True):
        ended = max(reach, greatest(batch.end))
        cut = len(batch) if ended < later else last_gap(batch.start, batch.end, reach, later)
        if cut:
            yield [*part, batch if cut == len(batch) else batch.head(cut)]
            part = []
        if cut < len(batch):
            part.append(batch.tail(cut) if cut else batch)
        reach = ended
    if part:
        yield part


def normal_form(batch: Batch) -> Batch:
    """Maximal pieces of constant weight, by start, end and row; equal rows with equal intervals are
    not merged (`added_up` does that)."""
    if _lie_apart(batch):
        return _shown(batch)
    if any(pa.types.is_nested(array.type) for array in batch.columns) or not _are_there(batch):
        return added_up(batch)
    batch = in_order(batch.where(batch.start < batch.end))
    met = meeting(batch.start, batch.end)
    near = positions(met)
    if len(near):
        part = batch if len(near) == len(batch) else batch.take(near)
        hashes = row_hashes(part.columns, len(part))
        equal = may_meet_equals(hashes, part.start, part.end)
        if equal.any():
            met[near] = equal
            pieces = _pieces(batch.where(met))
            return in_order(merged([_shown(batch.where(~met)), pieces]))
    return _shown(batch)


def added_up(batch: Batch) -> Batch:
    """Maximal pieces of constant weight, by start, end and row, each once."""
    return in_order(_pieces(batch))


def _are_there(batch: Batch) -> bool:
    """Whether no element is negative."""
    return are_ones(batch.weight) or least(batch.weight) > 0


def _lie_apart(batch: Batch) -> bool:
    return bool(lie_apart(batch.start, batch.end)) and _are_there(batch)


def _shown(batch: Batch) -> Batch:
    columns = shown(batch.columns)
    return Batch(columns, batch.start, batch.end, batch.weight, batch.frontier)


def _pieces(batch: Batch) -> Batch:
    """Maximal pieces of constant weight."""
    types = [array.type for array in batch.columns]
    codes = KeySpace(types).encode(batch.columns, len(batch))
    sweep = Sweep(ordered=False)
    sweep.add(codes, batch)
    count = int(codes.max(initial=-1)) + 1
    steps = sweep.due(INFINITY, count)
    levels = running_counts(steps.code, steps.delta, steps.bounds, np.zeros(count, np.int64))
    code, time = steps.step_code, steps.step_time
    previous = previous_steps(code)
    moved = np.flatnonzero(levels != np.where(previous < 0, 0, levels[previous]))
    code, time, levels = code[moved], time[moved], levels[moved]
    follows = np.append(code[1:] == code[:-1], False)[: len(code)]
    end = np.where(follows, np.append(time[1:], 0)[: len(code)], INFINITY)
    held = np.flatnonzero(levels != 0)
    rows = shown(batch.columns.take(first_rows(codes, count)[code[held]]))
    return Batch(rows, time[held], end[held], levels[held], batch.frontier)
