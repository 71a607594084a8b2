"""Levels: the multiplicity of a row in the output given its multiplicity in each input, step by
step."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

IDENTITY, DISTINCT, DIFFERENCE, STRICT_DIFFERENCE, INTERSECTION, MAX_UNION = range(6)


@njit(cache=True, inline="always")
def _level(function: int, left: int, right: int, most_left: int, most_right: int) -> int:
    left, right = min(left, most_left), min(right, most_right)
    if function == DIFFERENCE:
        return max(left - right, 0)
    if function == DISTINCT:
        return min(left, 1)
    if function == STRICT_DIFFERENCE:
        return 0 if right > 0 else left
    if function == INTERSECTION:
        return min(left, right)
    if function == MAX_UNION:
        return max(left, right)
    return left


@njit(cache=True)
def change_levels(
    codes: Ints,
    times: Ints,
    ports: Ints,
    deltas: Ints,
    bounds: Ints,
    counts: Ints,
    function: int,
    most: Ints,
) -> tuple[Ints, Ints, Ints]:
    """The rows whose level changes, when, and by how much. Updates `counts`, by code and input; an
    input counts a row at most `most` times."""
    steps = len(bounds) - 1
    out_code = np.empty(steps, np.int64)
    out_time = np.empty(steps, np.int64)
    out_change = np.empty(steps, np.int64)
    last = counts.shape[1] - 1  # with one input, no function reads the other
    most_left, most_right = most[0], most[last]
    length = 0
    for j in range(steps):
        first = bounds[j]
        code = codes[first]
        before = _level(function, counts[code, 0], counts[code, last], most_left, most_right)
        for i in range(first, bounds[j + 1]):
            counts[code, ports[i]] += deltas[i]
        after = _level(function, counts[code, 0], counts[code, last], most_left, most_right)
        out_code[length], out_time[length] = code, times[first]
        out_change[length] = after - before
        length += after != before
    return out_code[:length], out_time[:length], out_change[:length]
