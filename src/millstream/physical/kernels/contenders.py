"""Rows dominated by others: better ones that last at least as long."""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@njit(cache=True)
def outlived(ranks: Ints, limit: int) -> Mask:
    """Which rows, given in order of end, have `limit` better ones (of a lower rank) that end no
    earlier."""
    worse = np.zeros(len(ranks), np.bool_)
    best = [-ranks[-1]]  # of those that end no earlier, the worst one first
    for i in range(len(ranks) - 2, -1, -1):
        if len(best) < limit:
            heapq.heappush(best, -ranks[i])
        elif ranks[i] < -best[0]:
            heapq.heapreplace(best, -ranks[i])
        else:
            worse[i] = ranks[i] > -best[0]
    return worse


@njit(cache=True)
def cover(codes: Ints, starts: Ints, ends: Ints, frontier: int, until: Ints, over: Ints) -> None:
    """Add elements in order of start: a row that is present now stays without a gap at least until
    `until`, and is absent from `over` on, both by code."""
    for i in range(len(codes)):
        code = codes[i]
        if starts[i] <= until[code]:
            until[code] = max(until[code], ends[i])
        elif over[code] <= frontier:
            until[code] = ends[i]
        over[code] = max(over[code], ends[i])
