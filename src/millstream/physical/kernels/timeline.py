"""Events in order of time, those of one instant by key: the steps of all keys, one after the other.

Unlike sorting by key, this needs no storage per key, and the data of each key is read in about the
order in which it was stored.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_SHORT = 24  # fewer events are sorted by insertion
_ONE = np.uint64(1)


@njit(cache=True)
def in_order(events: Ints, pieces: Ints) -> tuple[Ints, Ints]:
    """Events in order of time and key, additions before removals; and the offset of each instant
    and key, followed by the total. Rows are times, codes, changes and others. The input is pieces
    in order of time; piece p begins at pieces[p], and the last entry is the number of events."""
    times, order = _merged(events[0], pieces)
    _order_instants(times, events[1], events[2], order)
    ordered = np.empty_like(events)
    ordered[0] = times
    for row in range(1, len(events)):
        for i in range(len(order)):
            ordered[row, i] = events[row, order[i]]
    return ordered, _step_bounds(times, ordered[1])


@njit(cache=True)
def _merged(times: Ints, pieces: Ints) -> tuple[Ints, Ints]:
    """Sorted times and their events: pieces are merged pairwise."""
    order = np.arange(len(times))
    while len(pieces) > 2:
        next_times, next_order = np.empty_like(times), np.empty_like(order)
        for p in range(0, len(pieces) - 1, 2):
            middle, stop = pieces[p + 1], pieces[min(p + 2, len(pieces) - 1)]
            _merge(times, order, pieces[p], middle, stop, next_times, next_order)
        times, order = next_times, next_order
        pieces = np.append(pieces[:-1:2], pieces[-1])
    return times, order


@njit(cache=True)
def _merge(
    times: Ints, order: Ints, first: int, middle: int, stop: int, to_times: Ints, to_order: Ints
) -> None:
    """Merges the events before the middle with those after it.

    From both ends at once, so that neither waits for the other; without branches, since the next
    one is unpredictable; and with unsigned indexes, which need no test for negative values.
    """
    i, j, place = np.uint64(first), np.uint64(middle), np.uint64(first)
    k, m, back = np.uint64(middle - 1), np.uint64(stop - 1), np.uint64(stop - 1)
    while i < k and j < m:
        left = times[i] <= times[j]
        to_times[place] = times[i] if left else times[j]
        to_order[place] = order[i] if left else order[j]
        i, j, place = i + np.uint64(left), j + np.uint64(not left), place + _ONE
        right = times[k] <= times[m]
        to_times[back] = times[m] if right else times[k]
        to_order[back] = order[m] if right else order[k]
        k, m, back = k - np.uint64(not right), m - np.uint64(right), back - _ONE
    while i <= k or j <= m:
        left = i <= k and (j > m or times[i] <= times[j])
        to_times[place] = times[i] if left else times[j]
        to_order[place] = order[i] if left else order[j]
        i, j, place = i + np.uint64(left), j + np.uint64(not left), place + _ONE


@njit(cache=True)
def _order_instants(times: Ints, codes: Ints, changes: Ints, order: Ints) -> None:
    """Sort the events of each instant by key and sign."""
    length = len(order)
    begin = 0
    while begin < length:
        stop = begin + 1
        while stop < length and times[stop] == times[begin]:
            stop += 1
        if stop - begin > _SHORT:
            instant = order[begin:stop].copy()
            ranks = 2 * codes[instant] + (changes[instant] < 0)
            order[begin:stop] = instant[np.argsort(ranks, kind="mergesort")]
        else:
            for i in range(begin + 1, stop):  # by insertion
                event = order[i]
                rank = 2 * codes[event] + (changes[event] < 0)
                j = i
                while j > begin and 2 * codes[order[j - 1]] + (changes[order[j - 1]] < 0) > rank:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = event
        begin = stop


@njit(cache=True)
def _step_bounds(times: Ints, codes: Ints) -> Ints:
    """The offset of each instant and key, followed by the number of events."""
    length = len(times)
    bounds = np.empty(length + 1, np.int64)
    count = 0
    for i in range(length):
        bounds[count] = i
        count += i == 0 or times[i] != times[i - 1] or codes[i] != codes[i - 1]
    bounds[count] = length
    return bounds[: count + 1].copy()


@njit(cache=True)
def count_steps(
    codes: Ints, ports: Ints, deltas: Ints, bounds: Ints, counts: Ints
) -> tuple[Ints, Ints]:
    """For each input and step, the multiplicity of the key before and after it; updates `counts`,
    by code and input."""
    steps, inputs = len(bounds) - 1, counts.shape[1]
    before = np.empty((inputs, steps), np.int64)
    after = np.empty((inputs, steps), np.int64)
    for j in range(steps):
        code = codes[bounds[j]]
        for port in range(inputs):
            before[port, j] = counts[code, port]
        for i in range(bounds[j], bounds[j + 1]):
            counts[code, ports[i]] += deltas[i]
        for port in range(inputs):
            after[port, j] = counts[code, port]
    return before, after
