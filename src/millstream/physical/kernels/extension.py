"""What each element adds to the time that its key has covered so far."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def extend(codes: Ints, starts: Ints, ends: Ints, largest: Ints) -> tuple[Ints, Ints]:
    """The elements, in order of start, that extend beyond the largest end of their key, and the
    instant from which they do; updates `largest`, by code."""
    added = np.empty(len(codes), np.int64)
    start = np.empty(len(codes), np.int64)
    count = 0
    for i in range(len(codes)):
        so_far = largest[codes[i]]
        if ends[i] > so_far:
            added[count] = i
            start[count] = max(starts[i], so_far)
            count += 1
            largest[codes[i]] = ends[i]
    return added[:count].copy(), start[:count].copy()
