"""The multisets of rows of one or two inputs, and their changes over time.

The key is the whole row. For each row that occurs or will occur there is a code, the row itself,
and its count per input; future events wait in a timeline. Absent rows are forgotten once they are
as many as the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.physical.batch import NEVER, Batch, Columns, Ints, State
from millstream.physical.events.timeline import Timeline, TimeSteps
from millstream.physical.kernels.levels import change_levels
from millstream.physical.kernels.timeline import count_steps
from millstream.physical.state.counted_rows import CountedRows
from millstream.physical.state.keys import KeySpace


@dataclass(slots=True)
class Counts:
    """The count of each step's row, by input and step."""

    before: Ints
    after: Ints


class Multisets:
    def __init__(self, types: Sequence[pa.DataType], ordered: Sequence[bool]) -> None:
        self._rows = CountedRows(types, len(ordered))
        self._timeline = Timeline(ordered)

    @property
    def keys(self) -> KeySpace:
        return self._rows.keys

    @property
    def counts(self) -> Ints:
        """By code and input."""
        return self._rows.counts

    @property
    def size(self) -> int:
        return len(self._rows) + len(self._timeline)

    @property
    def pending(self) -> int:
        """How many future events there are."""
        return len(self._timeline)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + self._timeline.nbytes

    @property
    def touched(self) -> int:
        return self._timeline.touched

    def add(self, port: int, batch: Batch) -> Ints:
        """Add the elements of a batch; returns the codes of their rows."""
        codes = self._rows.encode(batch.columns, len(batch))
        self._timeline.add(port, codes, batch)
        return codes

    def due(self, frontier: int, floor: int = NEVER) -> tuple[TimeSteps, Counts]:
        """The steps before the frontier in order of time, and the counts of their rows. Events
        before the floor count as if they happened at the floor."""
        steps = self._timeline.due(frontier, floor)
        before, after = count_steps(steps.code, steps.port, steps.delta, steps.bounds, self.counts)
        return steps, Counts(before, after)

    def changed(self, frontier: int, function: int, most: Ints) -> tuple[Ints, Ints, Ints]:
        """The codes of the rows whose level changes before the frontier, when, and by how much. The
        level is a function of the counts in the inputs, each capped at `most`."""
        steps = self._timeline.due(frontier)
        codes, times, changes = change_levels(
            steps.code, steps.time, steps.port, steps.delta, steps.bounds,
            self.counts, function, most,
        )  # fmt: skip
        return codes, times, changes

    def rows(self, codes: Ints) -> Columns:
        return self._rows.rows(codes)

    def forget(self, used: Ints | None = None) -> Ints | None:
        """Forget rows that are in no input, have no future events and are not in `used`. Returns
        the new codes by the old ones if anything was forgotten. Rows returned before must have been
        read."""
        if not self.keys.is_stale:
            return None
        live = self._timeline.live()
        renumbered = self._rows.forget(live if used is None else np.concatenate([live, used]))
        assert renumbered is not None
        self._timeline.renumber(renumbered)
        return renumbered

    def save(self) -> State:
        return {**self._rows.save(), "timeline": self._timeline.save()}

    def restore(self, state: State) -> None:
        self._rows.restore(state)
        self._timeline.restore(state["timeline"])
