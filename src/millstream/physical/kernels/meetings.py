"""Finds elements that may interact, by their intervals and the hashes of their rows."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@njit(cache=True)
def lie_apart(start: Ints, end: Ints) -> bool:
    """Whether each interval is non-empty and starts after the end of all previous ones, with a
    gap."""
    near = 0
    reach = -(2**63)
    for i in range(len(start)):
        near += start[i] <= reach or end[i] <= start[i]
        reach = max(reach, end[i])
    return near == 0


@njit(cache=True)
def last_gap(start: Ints, end: Ints, reach: int, later: int) -> int:
    """The last position such that all elements before it end before any from it on starts; 0 if
    there is none. Elements before the array end by `reach`; those after it start at `later` or
    later."""
    length = len(start)
    latest = np.empty(length, np.int64)  # the largest end so far
    for i in range(length):
        latest[i] = reach
        reach = max(reach, end[i])
    for i in range(length - 1, 0, -1):
        later = min(later, start[i])
        if latest[i] < later:
            return i
    return 0


@njit(cache=True)
def meeting(start: Ints, end: Ints) -> Mask:
    """For elements sorted by start and end: those that overlap or touch a different interval, or an
    element that does."""
    length = len(start)
    found = np.zeros(length, np.bool_)
    first = 0
    while first < length:
        reach = end[first]
        stop = first + 1
        mixed = False
        while stop < length and start[stop] <= reach:
            mixed |= start[stop] != start[first] or end[stop] != end[first]
            reach = max(reach, end[stop])
            stop += 1
        if mixed:
            for i in range(first, stop):
                found[i] = True
        first = stop
    return found


@njit(cache=True)
def may_meet_equals(hashes: NDArray[np.uint64], start: Ints, end: Ints) -> Mask:
    """For elements sorted by start and end: those whose hash is shared by two elements that overlap
    or touch but have different intervals."""
    length = len(start)
    size = 16
    while size < 2 * length:
        size *= 2
    last = np.full(size, -1, np.int32)  # by hash, the last element so far
    met = np.zeros(size, np.bool_)
    places = np.empty(length, np.int32)
    mask = np.uint64(size - 1)
    count = 0
    for i in range(length):
        place = hashes[i] & mask
        while last[place] >= 0 and hashes[last[place]] != hashes[i]:
            place = (place + np.uint64(1)) & mask
        other = last[place]
        near = other >= 0 and end[other] >= start[i]
        if near and (start[other] != start[i] or end[other] != end[i]):
            met[place] = True
            count += 1
        last[place] = i
        places[i] = place
    found = np.zeros(length, np.bool_)
    if count:
        for i in range(length):
            found[i] = met[places[i]]
    return found
