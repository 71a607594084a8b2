"""The current rows of an answer, maintained from its changes: N's recipient (§5.7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch
from millstream.physical.events.settling import Pieces
from millstream.physical.state.counted_rows import DistinctRows


class AnswerTable:
    """A multiset of rows, each with its start; first in, first out. The cost of a batch is
    proportional to its changes, and the memory to the current rows if it is `swept`.

    >>> table = AnswerTable([pa.string()])
    >>> changes = Batch.of([pa.array(["a", "b", "a"])], [1, 2, 3], [9, 9, 9], [2, 1, -1])
    >>> gone = table.apply(changes)
    >>> gone.columns[0].to_pylist(), gone.start.tolist(), gone.end.tolist(), gone.weight.tolist()
    (['a'], [1], [3], [1])
    >>> held = table.holding()
    >>> held.columns[0].to_pylist(), held.start.tolist(), held.weight.tolist()
    (['a', 'b'], [1, 2], [1, 1])
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._rows = DistinctRows(types)
        self._pieces = Pieces()

    def __len__(self) -> int:
        """The number of current rows that differ in value or start."""
        return len(self._pieces)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + self._pieces.nbytes

    def apply(self, changes: Batch) -> Batch:
        """Add rows (weight > 0) and remove rows (weight < 0) at their starts. Returns the elements
        that end."""
        order = changes.start.argsort(kind="stable")
        codes = self._rows.encode(changes.columns, len(changes))[order]
        times, weights = changes.start[order], changes.weight[order]
        code, start, end, weight = self._pieces.settle(codes, times, weights)
        return Batch(self._rows.rows(code), start, end, weight, changes.frontier).gathered()

    def swept(self) -> AnswerTable:
        """The same rows without ended ones, once they are as many as the current ones; this object
        does not change, so that readers need not wait."""
        if len(self._rows) <= 2 * len(self._pieces) + 1024:
            return self
        fresh = AnswerTable(self._rows.keys.types)
        fresh.apply(self.holding())
        return fresh

    def holding(self) -> Batch:
        """All current rows, without an end."""
        codes, start, weight = self._pieces.open_pieces()
        rows = self._rows.rows(codes)
        return Batch(rows, start, np.full(len(codes), INFINITY), weight, NEVER).gathered()
