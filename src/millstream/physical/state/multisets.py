"""The multisets of the rows of one or two inputs, and how they change over time.

The key is the whole row. For each row that occurs or will occur there is a code, the row itself,
and how often each input has it; what the future brings waits in a timeline. Rows that are gone are
forgotten once there are as many of them as of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.model.arrays import larger
from millstream.physical.batch import NEVER, Batch, Columns, Ints, State
from millstream.physical.events.timeline import Steps, Timeline
from millstream.physical.kernels.levels import change_levels
from millstream.physical.kernels.timeline import count_steps
from millstream.physical.state.key_rows import KeyRows
from millstream.physical.state.keys import KeySpace


@dataclass(slots=True)
class Counts:
    """How often each input has the row of each step, by input and step."""

    before: Ints
    after: Ints


class Multisets:
    def __init__(self, types: Sequence[pa.DataType], ordered: Sequence[bool]) -> None:
        self.keys = KeySpace(types)
        self.counts = np.zeros((64, len(ordered)), np.int64)  # by code and input
        self._rows = KeyRows(self.keys)
        self._timeline = Timeline(ordered)

    @property
    def size(self) -> int:
        return self.keys.count + len(self._timeline)

    @property
    def pending(self) -> int:
        """How many events lie ahead."""
        return len(self._timeline)

    @property
    def nbytes(self) -> int:
        parts = self.keys.nbytes + self._rows.nbytes + self._timeline.nbytes
        return parts + self.counts.nbytes

    @property
    def touched(self) -> int:
        return self._timeline.touched

    def add(self, port: int, batch: Batch) -> Ints:
        """Take in the elements of a batch; gives the codes of their rows."""
        known = self.keys.count
        codes = self.keys.encode(batch.columns, len(batch))
        if self.keys.count > known:
            self._store_new(codes, known, batch.columns)
        self._timeline.add(port, codes, batch)
        return codes

    def _store_new(self, codes: Ints, known: int, columns: Columns) -> None:
        count = self.keys.count
        if len(self.counts) < count:
            self.counts = _with_room(self.counts, larger(len(self.counts), count))
        self._rows.grow(count)
        fresh = np.flatnonzero(codes >= known)
        self._rows.put(codes[fresh], columns.take(fresh))

    def due(self, frontier: int, floor: int = NEVER) -> tuple[Steps, Counts]:
        """The steps before the frontier in order of time, and the counts of their rows. What
        happened before the floor counts as if it happened then."""
        steps = self._timeline.due(frontier, floor)
        before, after = count_steps(steps.code, steps.port, steps.delta, steps.bounds, self.counts)
        return steps, Counts(before, after)

    def changed(self, frontier: int, function: int, most: Ints) -> tuple[Ints, Ints, Ints]:
        """The codes of the rows whose level changes before the frontier, when, and by how much: a
        function of the counts in the inputs, each at most so large."""
        steps = self._timeline.due(frontier)
        codes, times, changes = change_levels(
            steps.code, steps.time, steps.port, steps.delta, steps.bounds,
            self.counts, function, most,
        )  # fmt: skip
        return codes, times, changes

    def rows(self, codes: Ints) -> Columns:
        return self._rows.rows(codes)

    def forget(self, used: Ints | None = None) -> Ints | None:
        """Forget rows that are in no input, have no future and are not in `used`. Gives the new
        codes by the old ones if anything was forgotten. Rows given before must have been read."""
        if not self.keys.is_stale:
            return None
        needed = np.zeros(self.keys.count, np.bool_)
        needed[self._timeline.live()] = True
        needed |= (self.counts[: self.keys.count] != 0).any(axis=1)
        if used is not None:
            needed[used] = True
        kept = np.flatnonzero(needed)
        renumbered = self.keys.keep(kept)
        self._rows.move(kept, len(kept) + 1024)
        self._rows.vacuum(np.arange(len(kept)))
        self.counts = _with_room(self.counts[kept], len(kept) + 1024)
        self._timeline.renumber(renumbered)
        return renumbered

    def save(self) -> State:
        return {
            "keys": self.keys.save(),
            "rows": self._rows.save(self.keys.count),
            "counts": self.counts[: self.keys.count].copy(),
            "timeline": self._timeline.save(),
        }

    def restore(self, state: State) -> None:
        self.keys.restore(state["keys"])
        count = self.keys.count
        self._rows.restore(state["rows"], count)
        self.counts = _with_room(state["counts"], max(64, count))
        self._timeline.restore(state["timeline"])


def _with_room(counts: Ints, room: int) -> Ints:
    roomy = np.zeros((room, counts.shape[1]), np.int64)
    roomy[: len(counts)] = counts
    return roomy
