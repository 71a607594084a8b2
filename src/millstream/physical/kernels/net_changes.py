"""The changes of an instant added up: of each row once."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def net_changes(codes: Ints, times: Ints, deltas: Ints, scratch: Ints) -> tuple[Ints, Ints]:
    """For events in order of time, the first one of each code at an instant, where what it changes
    in all is not nothing; and how much that is. `scratch` is zero for every code and is left so."""
    length = len(times)
    first, net = np.empty(length, np.int64), np.empty(length, np.int64)
    count = begin = 0
    while begin < length:
        stop, kept = begin, count
        while stop < length and times[stop] == times[begin]:
            place = scratch[codes[stop]] - 1
            if place < 0:
                first[count], net[count] = stop, deltas[stop]
                count += 1
                scratch[codes[stop]] = count
            else:
                net[place] += deltas[stop]
            stop += 1
        for i in range(kept, count):
            scratch[codes[first[i]]] = 0
            if net[i] != 0:
                first[kept], net[kept] = first[i], net[i]
                kept += 1
        count, begin = kept, stop
    return first[:count], net[:count]
