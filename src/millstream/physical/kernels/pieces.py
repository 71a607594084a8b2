"""From the levels of keys over time to intervals, and to granules."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def settle_levels(
    codes: Ints,
    times: Ints,
    before: Ints,
    after: Ints,
    first: Ints,
    last: Ints,
    since: Ints,
    count: Ints,
    following: Ints,
    free: int,
    count_open: int,
) -> tuple[Ints, Ints, Ints, Ints, int, int]:
    """Close and open pieces as levels change: what came first goes first.

    Key k's open pieces are a list from first[k] to last[k] (-1 where there is none); piece p began
    at since[p], counts count[p] times and is followed by following[p], which also links the free
    places from `free` on. There must be a free place for each step; `count_open` pieces are open.
    Gives the codes, starts, ends
    and weights of the pieces that were closed, where the free places begin now, and how many
    more pieces are open.
    """
    out_code = np.empty(2 * len(codes) + count_open, np.int64)
    out_start = np.empty(len(out_code), np.int64)
    out_end = np.empty(len(out_code), np.int64)
    out_weight = np.empty(len(out_code), np.int64)
    length = opened = 0
    for j in range(len(codes)):
        code, change = codes[j], after[j] - before[j]
        if change > 0:
            piece = free
            free = following[piece]
            opened += 1
            since[piece], count[piece], following[piece] = times[j], change, -1
            if first[code] < 0:
                first[code] = piece
            else:
                following[last[code]] = piece
            last[code] = piece
        while change < 0:
            piece = first[code]
            taken = min(count[piece], -change)
            out_code[length] = code
            out_start[length] = since[piece]
            out_end[length] = times[j]
            out_weight[length] = taken
            length += 1
            change += taken
            count[piece] -= taken
            if count[piece] == 0:
                first[code] = following[piece]
                following[piece] = free
                free = piece
                opened -= 1
    return (
        out_code[:length].copy(),
        out_start[:length].copy(),
        out_end[:length].copy(),
        out_weight[:length].copy(),
        free,
        opened,
    )
