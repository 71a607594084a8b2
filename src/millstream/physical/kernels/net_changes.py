"""Sums the changes of an instant per row."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def last_events(slots: Ints, ahead: NDArray[np.int8]) -> Ints:
    """The slots of rows without further events after these; updates `ahead`."""
    gone = np.empty(len(slots), np.int64)
    count = 0
    for slot in slots:
        ahead[slot] -= 1
        gone[count] = slot
        count += ahead[slot] == 0
    return gone[:count].copy()


@njit(cache=True)
def tied_events(times: Ints) -> Ints:
    """For events in order of time, those that share their instant with others."""
    length = len(times)
    tied = np.empty(length, np.int64)
    count = 0
    for i in range(length):
        before = i > 0 and times[i - 1] == times[i]
        after = i + 1 < length and times[i + 1] == times[i]
        tied[count] = i
        count += before or after
    return tied[:count].copy()


@njit(cache=True)
def net_changes(codes: Ints, times: Ints, deltas: Ints, scratch: Ints) -> tuple[Ints, Ints]:
    """For events in order of time, the first event per code and instant whose total change is not
    0, and that total. At each instant, removals precede additions. `scratch` is zero for every code
    before and after the call."""
    length = len(times)
    index, net = np.empty(length, np.int64), np.empty(length, np.int64)
    first, total = np.empty(length, np.int64), np.empty(length, np.int64)  # at an instant, by code
    kept = begin = 0
    while begin < length:
        count, stop = 0, begin
        while stop < length and times[stop] == times[begin]:
            place = scratch[codes[stop]] - 1
            if place < 0:
                first[count], total[count] = stop, deltas[stop]
                count += 1
                scratch[codes[stop]] = count
            else:
                total[place] += deltas[stop]
            stop += 1
        for i in range(count):
            scratch[codes[first[i]]] = 0
            if total[i] < 0:
                index[kept], net[kept] = first[i], total[i]
                kept += 1
        for i in range(count):
            if total[i] > 0:
                index[kept], net[kept] = first[i], total[i]
                kept += 1
        begin = stop
    return index[:kept], net[:kept]
