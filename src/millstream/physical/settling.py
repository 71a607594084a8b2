"""Pieces: the intervals in which a key's level holds, given when they end."""

from __future__ import annotations

import numpy as np

from millstream.logical.time import INFINITY
from millstream.physical.arrays import larger
from millstream.physical.batch import Ints, State
from millstream.physical.kernels.pieces import settle_levels
from millstream.physical.open_starts import OpenStarts


class Pieces:
    """The open pieces of every key, oldest first; `hold` is to know the start of the oldest."""

    def __init__(self, hold: bool = False) -> None:
        self._starts = OpenStarts() if hold else None
        self._first = np.full(64, -1, np.int64)
        self._last = np.full(64, -1, np.int64)
        self._since = np.zeros(64, np.int64)
        self._count = np.zeros(64, np.int64)
        self._following = np.append(np.arange(1, 64), -1)
        self._free = 0
        self._open = 0

    def __len__(self) -> int:
        return self._open

    @property
    def nbytes(self) -> int:
        held = 0 if self._starts is None else self._starts.nbytes
        return self._first.nbytes * 2 + self._since.nbytes * 3 + held

    def settle(
        self, codes: Ints, times: Ints, before: Ints, after: Ints
    ) -> tuple[Ints, Ints, Ints, Ints]:
        """The codes, starts, ends and weights of the pieces that these changes of level end."""
        if not len(codes):
            nothing = np.empty(0, np.int64)
            return nothing, nothing, nothing, nothing
        self._make_room(int(codes.max()) + 1, len(codes))
        *closed, self._free, opened = settle_levels(
            codes, times, before, after,
            self._first, self._last, self._since, self._count, self._following, self._free,
            self._open,
        )  # fmt: skip
        self._open += opened
        if self._starts is not None:
            rises = after > before
            self._starts.add(times[rises], (after - before)[rises])
            self._starts.remove(closed[1], closed[3])
        return closed[0], closed[1], closed[2], closed[3]

    def _make_room(self, keys: int, pieces: int) -> None:
        if len(self._first) < keys:
            more = np.full(larger(len(self._first), keys) - len(self._first), -1, np.int64)
            self._first = np.append(self._first, more)
            self._last = np.append(self._last, more)
        if len(self._since) - self._open < pieces:
            old = len(self._since)
            new = larger(old, self._open + pieces)
            self._since = np.append(self._since, np.zeros(new - old, np.int64))
            self._count = np.append(self._count, np.zeros(new - old, np.int64))
            self._following = np.append(
                self._following, np.append(np.arange(old + 1, new), self._free)
            )
            self._free = old

    def open_pieces(self) -> tuple[Ints, Ints, Ints]:
        """The codes, starts and weights of the pieces that are open."""
        codes, starts, weights = [], [], []
        current = np.flatnonzero(self._first >= 0)
        piece = self._first[current]
        while len(piece):
            codes.append(current)
            starts.append(self._since[piece])
            weights.append(self._count[piece])
            piece = self._following[piece]
            current, piece = current[piece >= 0], piece[piece >= 0]
        nothing = np.empty(0, np.int64)
        return (
            np.concatenate([nothing, *codes]),
            np.concatenate([nothing, *starts]),
            np.concatenate([nothing, *weights]),
        )

    def end(self) -> tuple[Ints, Ints, Ints, Ints]:
        """All that is open, which holds for ever."""
        codes, starts, weights = self.open_pieces()
        self.__init__(self._starts is not None)  # type: ignore[misc]
        return codes, starts, np.full(len(codes), INFINITY), weights

    @property
    def oldest(self) -> int:
        """The smallest start of an open piece."""
        assert self._starts is not None
        return self._starts.least

    def renumber(self, renumbered: Ints) -> None:
        self.restore(self.save(renumbered))

    def save(self, renumbered: Ints | None = None) -> State:
        codes, starts, weights = self.open_pieces()
        order = np.lexsort([starts, codes])
        codes = codes if renumbered is None else renumbered[codes]
        return {"codes": codes[order], "starts": starts[order], "weights": weights[order]}

    def restore(self, state: State) -> None:
        self.__init__(self._starts is not None)  # type: ignore[misc]
        zero = np.zeros(len(state["codes"]), np.int64)
        self.settle(state["codes"], state["starts"], zero, state["weights"])
