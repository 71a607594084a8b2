"""Turns changes of the levels of keys over time into intervals."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Places = NDArray[np.int32]

# The columns of a piece, together in memory.
SINCE, COUNT, FOLLOWING = 0, 1, 2
WIDTH = 3


@njit(cache=True)
def settle_levels(
    codes: Ints, times: Ints, changes: Ints, last: Places, pieces: Ints, free: int, count_open: int
) -> tuple[Ints, Ints, Ints, Ints, int, int]:
    """Close and open pieces as levels change, first in, first out.

    The open pieces of key k are a ring: last[k] (-1 if there is none) is followed by the oldest.
    The free places are a list from `free` on, with at least one per change; `count_open` pieces are
    open. Returns the codes, starts, ends and weights of the closed pieces, the head of the free
    list, and how many pieces are open.
    """
    room = _most_closed(changes, count_open)
    out_code, out_start = np.empty(room, np.int64), np.empty(room, np.int64)
    out_end, out_weight = np.empty(room, np.int64), np.empty(room, np.int64)
    length, head = np.uint64(0), np.uint64(free)
    for j in range(len(codes)):
        code, change = np.uint64(codes[j]), changes[j]
        newest = last[code]
        if change > 0:
            piece, oldest = head, head
            head = np.uint64(pieces[piece, FOLLOWING])
            count_open += 1
            if newest >= 0:
                oldest = np.uint64(pieces[np.uint64(newest), FOLLOWING])
                pieces[np.uint64(newest), FOLLOWING] = piece
            pieces[piece, SINCE], pieces[piece, COUNT] = times[j], change
            pieces[piece, FOLLOWING] = oldest
            last[code] = piece
        while change < 0:
            piece = np.uint64(pieces[np.uint64(newest), FOLLOWING])
            count = pieces[piece, COUNT]
            taken = min(count, -change)
            out_code[length], out_start[length] = code, pieces[piece, SINCE]
            out_end[length], out_weight[length] = times[j], taken
            length += np.uint64(1)
            change += taken
            pieces[piece, COUNT] = count - taken
            if count == taken:
                if piece == np.uint64(newest):
                    last[code] = -1
                else:
                    pieces[np.uint64(newest), FOLLOWING] = pieces[piece, FOLLOWING]
                pieces[piece, FOLLOWING] = head
                head = piece
                count_open -= 1
    return (
        out_code[:length].copy(),
        out_start[:length].copy(),
        out_end[:length].copy(),
        out_weight[:length].copy(),
        int(np.int64(head)),  # signed like the argument
        count_open,
    )


@njit(cache=True)
def _most_closed(changes: Ints, count_open: int) -> int:
    """An upper bound on the pieces closed: each open piece closes at most once, plus one partial
    piece per change."""
    falls = 0
    for j in range(len(changes)):
        falls += max(0, -changes[j])
    return min(falls, 2 * len(changes) + count_open)
