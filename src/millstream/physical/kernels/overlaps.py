"""Overlapping intervals of two sides, key by key, by a sweep over their starts.

Of two overlapping intervals, one starts within the other. So for each interval, in order of start,
its partners are those of the other side that start within it, and they are adjacent: every
examination but the last finds a pair (a forward scan). Neither side needs to be ordered by end.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from millstream.physical.kernels.steps import sort_by_time

Ints = NDArray[np.int64]


@njit(cache=True)
def overlapping(
    mine: Ints,
    my_bounds: Ints,
    start: Ints,
    end: Ints,
    theirs: Ints,
    their_bounds: Ints,
    their_start: Ints,
    their_end: Ints,
) -> tuple[Ints, Ints]:
    """Pairs (i, place). `mine` has elements i, key by key with offsets `my_bounds`, and `theirs`
    the places of the same keys; both are sorted here by start, key by key."""
    keys = len(my_bounds) - 1
    buffer = np.empty(max(len(mine), len(theirs)), np.int64)
    count = 0
    for key in range(keys):
        sort_by_time(mine, start, my_bounds[key], my_bounds[key + 1], buffer)
        sort_by_time(theirs, their_start, their_bounds[key], their_bounds[key + 1], buffer)
    room = np.empty(0, np.int64)
    for key in range(keys):
        count = _sweep(
            mine, my_bounds[key], my_bounds[key + 1], start, end,
            theirs, their_bounds[key], their_bounds[key + 1], their_start, their_end,
            room, room, count, False,
        )  # fmt: skip
    found, places = np.empty(count, np.int64), np.empty(count, np.int64)
    count = 0
    for key in range(keys):
        count = _sweep(
            mine, my_bounds[key], my_bounds[key + 1], start, end,
            theirs, their_bounds[key], their_bounds[key + 1], their_start, their_end,
            found, places, count, True,
        )  # fmt: skip
    return found, places


@njit(cache=True)
def _sweep(
    mine: Ints,
    i: int,
    stop: int,
    start: Ints,
    end: Ints,
    theirs: Ints,
    j: int,
    their_stop: int,
    their_start: Ints,
    their_end: Ints,
    found: Ints,
    places: Ints,
    count: int,
    write: bool,
) -> int:
    while i < stop and j < their_stop:
        if start[mine[i]] <= their_start[theirs[j]]:
            last = end[mine[i]]
            k = j
            while k < their_stop and their_start[theirs[k]] < last:
                if write:
                    found[count], places[count] = mine[i], theirs[k]
                count += 1
                k += 1
            i += 1
        else:
            last = their_end[theirs[j]]
            k = i
            while k < stop and start[mine[k]] < last:
                if write:
                    found[count], places[count] = mine[k], theirs[j]
                count += 1
                k += 1
            j += 1
    return count
