"""The history of an answer: its ended elements, as far back as retained.

The elements that end in a batch end after those of all batches before, so a history is a list of
pieces in order of time, in memory or in files, and expired history is dropped by whole pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.physical.batch import Ints, Mask

_PIECE = 1 << 16  # rows: smaller pieces in memory are merged


@dataclass(frozen=True)
class HistoryPiece:
    """Rows with valid_from and valid_to, which all end by `until`. `read` returns them."""

    until: int
    rows: int
    read: Callable[[], pa.Table]

    @staticmethod
    def of(table: pa.Table, until: int) -> HistoryPiece:
        return HistoryPiece(until, table.num_rows, lambda: table)


class History:
    """The pieces in order. `stored` of them, the first ones, are in files."""

    def __init__(self) -> None:
        self.pieces: list[HistoryPiece] = []
        self.stored = 0

    def add(self, table: pa.Table, until: int) -> None:
        """Add a piece in memory; each row is copied a few times at most."""
        if not table.num_rows:
            return
        self.pieces.append(HistoryPiece.of(table, until))
        while len(self.pieces) > self.stored + 1:
            before, last = self.pieces[-2:]
            if before.rows > 2 * last.rows or before.rows >= _PIECE:
                return
            both = pa.concat_tables([before.read(), last.read()]).combine_chunks()
            self.pieces[-2:] = [HistoryPiece.of(both, last.until)]

    def recent(self) -> list[HistoryPiece]:
        """The pieces that are only in memory."""
        return self.pieces[self.stored :]

    def store(self, piece: HistoryPiece) -> None:
        """Replace the pieces in memory by a stored one."""
        self.pieces[self.stored :] = [piece]
        self.stored += 1

    def forget(self, horizon: int) -> list[HistoryPiece]:
        """Drop whole pieces that ended before the horizon; returns the dropped pieces."""
        count = next((n for n, p in enumerate(self.pieces) if p.until > horizon), len(self.pieces))
        gone, self.pieces = self.pieces[:count], self.pieces[count:]
        self.stored = max(self.stored - count, 0)
        return gone


def rows_at(tables: Iterable[pa.Table], instant: int) -> list[pa.Table]:
    """The rows that are valid at an instant, without their times."""
    held = []
    for table in tables:
        start, end = instants(table["valid_from"]), instants(table["valid_to"])
        mask: Mask = (start <= instant) & (instant < end)
        held.append(table.filter(pa.array(mask)).drop_columns(["valid_from", "valid_to"]))
    return held


def instants(column: pa.ChunkedArray) -> Ints:
    """The chronons of a column of times."""
    numbers: Ints = column.cast(pa.int64()).to_numpy()
    return numbers if numbers.flags.aligned else np.array(numbers)
