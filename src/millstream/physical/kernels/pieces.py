"""From changes of the levels of keys over time to intervals."""

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
    """Close and open pieces as levels change: what came first goes first.

    Key k's open pieces are a ring: last[k] (-1 where there is none) is followed by the oldest. The
    free places are a list from `free` on. There must be one for each change; `count_open` pieces
    are open. Gives the codes, starts, ends and weights of the pieces that were closed, where the
    free places begin now, and how many pieces are open.
    """
    room = _most_closed(changes, count_open)
    out_code, out_start = np.empty(room, np.int64), np.empty(room, np.int64)
    out_end, out_weight = np.empty(room, np.int64), np.empty(room, np.int64)
    length = 0
    for j in range(len(codes)):
        code, change = codes[j], changes[j]
        if change > 0:
            piece = free
            free = pieces[piece, FOLLOWING]
            count_open += 1
            pieces[piece, SINCE], pieces[piece, COUNT] = times[j], change
            _append(piece, code, last, pieces)
        while change < 0:
            piece = pieces[last[code], FOLLOWING]
            taken = min(pieces[piece, COUNT], -change)
            out_code[length], out_start[length] = code, pieces[piece, SINCE]
            out_end[length], out_weight[length] = times[j], taken
            length += 1
            change += taken
            pieces[piece, COUNT] -= taken
            if pieces[piece, COUNT] == 0:
                _drop_oldest(piece, code, last, pieces)
                pieces[piece, FOLLOWING] = free
                free = piece
                count_open -= 1
    return (
        out_code[:length].copy(),
        out_start[:length].copy(),
        out_end[:length].copy(),
        out_weight[:length].copy(),
        free,
        count_open,
    )


@njit(cache=True, inline="always")
def _append(piece: int, code: int, last: Places, pieces: Ints) -> None:
    before = last[code]
    if before < 0:
        pieces[piece, FOLLOWING] = piece
    else:
        pieces[piece, FOLLOWING] = pieces[before, FOLLOWING]
        pieces[before, FOLLOWING] = piece
    last[code] = piece


@njit(cache=True, inline="always")
def _drop_oldest(piece: int, code: int, last: Places, pieces: Ints) -> None:
    if last[code] == piece:
        last[code] = -1
    else:
        pieces[last[code], FOLLOWING] = pieces[piece, FOLLOWING]


@njit(cache=True)
def _most_closed(changes: Ints, count_open: int) -> int:
    """No more pieces can be closed: each closes something, and only the last one of a change stays
    open in part."""
    falls = 0
    for j in range(len(changes)):
        falls += max(0, -changes[j])
    return min(falls, 2 * len(changes) + count_open)
