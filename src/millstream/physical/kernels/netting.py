"""Turns elements that are added and removed in one batch into elements with an end."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def net_elements(
    codes: Ints, keys: int, order: Ints, start: Ints, end: Ints, weight: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """Elements of one code have the same row and the same end. Each negative one ends positive ones
    that started before it, the latest first. Returns the number of an element with the row, and
    start, end and weight. `order` is by start; a positive element counts before a negative one of
    the same instant."""
    length = len(order)
    latest = np.full(keys, -1, np.int64)  # by code, the positive element with the latest start
    before = np.empty(length, np.int64)  # by element, the one that started before it
    left = weight.copy()
    rows, starts, ends, weights = (
        np.empty(length, np.int64),
        np.empty(length, np.int64),
        np.empty(length, np.int64),
        np.empty(length, np.int64),
    )
    count = begin = 0
    while begin < length:
        now = start[order[begin]]
        stop = begin
        while stop < length and start[order[stop]] == now:
            element = order[stop]
            if weight[element] > 0:
                before[element] = latest[codes[element]]
                latest[codes[element]] = element
            stop += 1
        for i in range(begin, stop):
            element = order[i]
            code = codes[element]
            while left[element] < 0 and latest[code] >= 0:
                ended = latest[code]
                taken = min(left[ended], -left[element])
                left[ended] -= taken
                left[element] += taken
                if start[ended] < now:
                    rows[count], starts[count], ends[count] = ended, start[ended], now
                    weights[count] = taken
                    count += 1
                if left[ended] == 0:
                    latest[code] = before[ended]
        begin = stop
    for i in range(length):
        element = order[i]
        if left[element] != 0:
            rows[count], starts[count], ends[count] = element, start[element], end[element]
            weights[count] = left[element]
            count += 1
    return rows[:count], starts[:count], ends[:count], weights[:count]
