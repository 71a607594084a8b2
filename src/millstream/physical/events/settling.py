"""Pieces: the intervals in which a key's level is constant, output when they end."""

from __future__ import annotations

import numpy as np

from millstream.model.arrays import larger, with_room
from millstream.model.time import INFINITY
from millstream.physical.batch import Ints, State
from millstream.physical.events.open_starts import OpenStarts
from millstream.physical.kernels.pieces import COUNT, FOLLOWING, SINCE, WIDTH, settle_levels
from millstream.physical.kernels.scans import greatest


class Pieces:
    """The open pieces of every key, oldest first; `hold`: track the start of the oldest."""

    def __init__(self, hold: bool = False) -> None:
        self._hold = hold
        self._clear()

    def _clear(self) -> None:
        self._starts = OpenStarts() if self._hold else None
        self._last = np.full(64, -1, np.int32)  # the newest of each key, which links to the oldest
        self._pieces = np.zeros((64, WIDTH), np.int64)
        self._pieces[:, FOLLOWING] = np.append(np.arange(1, 64), -1)
        self._free = 0
        self._open = 0

    def __len__(self) -> int:
        return self._open

    @property
    def nbytes(self) -> int:
        held = 0 if self._starts is None else self._starts.nbytes
        return self._last.nbytes + self._pieces.nbytes + held

    def settle(self, codes: Ints, times: Ints, changes: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """The codes, starts, ends and weights of the pieces that these changes of level end. A
        level that rises and falls at one instant makes no piece."""
        if not len(codes):
            nothing = np.empty(0, np.int64)
            return nothing, nothing, nothing, nothing
        self._make_room(greatest(codes) + 1, len(codes))
        code, start, end, weight, self._free, self._open = settle_levels(
            codes, times, changes, self._last, self._pieces, self._free, self._open
        )
        if self._starts is not None:
            rises = changes > 0
            self._starts.add(times[rises], changes[rises])
            self._starts.remove(start, weight)
        held = start < end
        if held.all():
            return code, start, end, weight
        return code[held], start[held], end[held], weight[held]

    def _make_room(self, keys: int, pieces: int) -> None:
        self._last = with_room(self._last, keys, -1)
        old = len(self._pieces)
        if old - self._open < pieces:
            more = larger(old, self._open + pieces) - old
            self._pieces = np.append(self._pieces, np.zeros((more, WIDTH), np.int64), axis=0)
            self._pieces[old:, FOLLOWING] = np.append(np.arange(old + 1, old + more), self._free)
            self._free = old

    def open_pieces(self) -> tuple[Ints, Ints, Ints]:
        """The codes, starts and weights of the open pieces, oldest first for each key."""
        codes, pieces = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        code = np.flatnonzero(self._last >= 0)
        piece = self._pieces[self._last[code], FOLLOWING]
        while len(piece):
            codes.append(code)
            pieces.append(piece)
            more = piece != self._last[code]
            code, piece = code[more], self._pieces[piece[more], FOLLOWING]
        piece = np.concatenate(pieces)
        return np.concatenate(codes), self._pieces[piece, SINCE], self._pieces[piece, COUNT]

    def end(self) -> tuple[Ints, Ints, Ints, Ints]:
        """All open pieces, which never end."""
        codes, starts, weights = self.open_pieces()
        self._clear()
        return codes, starts, np.full(len(codes), INFINITY), weights

    @property
    def oldest(self) -> int:
        """The smallest start of an open piece."""
        assert self._starts is not None
        return self._starts.least

    def renumber(self, renumbered: Ints) -> None:
        if len(self._pieces) > 4 * (self._open + 1024):  # after a burst
            self.restore(self.save())
        codes = np.flatnonzero(self._last >= 0)
        places = self._last[codes]
        self._last = np.full(greatest(renumbered) + 1, -1, np.int32)
        self._last[renumbered[codes]] = places

    def save(self) -> State:
        codes, starts, weights = self.open_pieces()
        order = np.lexsort([starts, codes])
        return {"codes": codes[order], "starts": starts[order], "weights": weights[order]}

    def restore(self, state: State) -> None:
        self._clear()
        self.settle(state["codes"], state["starts"], state["weights"])
