"""Events in order of time, those of one instant by key: the steps of all keys, one after the other.

No key needs a place of its own for that, as sorting by key does; and what is looked up for each key
lies in memory about as it came.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_SHORT = 24  # so many events are sorted by insertion


@njit(cache=True)
def order_by_time_and_key(times: Ints, codes: Ints, pieces: Ints) -> Ints:
    """The events, which come as pieces in order of time; piece p begins at pieces[p], and the last
    entry is the number of events."""
    times, order = _merged(times, pieces)
    length = len(order)
    begin = 0
    while begin < length:
        stop = begin + 1
        while stop < length and times[stop] == times[begin]:
            stop += 1
        if stop - begin > _SHORT:
            instant = order[begin:stop].copy()
            order[begin:stop] = instant[np.argsort(codes[instant], kind="mergesort")]
        elif stop - begin > 1:
            _sort_by_insertion(order, codes, begin, stop)
        begin = stop
    return order


@njit(cache=True)
def _merged(times: Ints, pieces: Ints) -> tuple[Ints, Ints]:
    """Times in order, and the events that have them: pieces are merged two by two."""
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
    times: Ints, order: Ints, i: int, middle: int, stop: int, to_times: Ints, to_order: Ints
) -> None:
    """What lies from i to the middle with what lies from there on."""
    place, j = i, middle
    while i < middle and j < stop:  # no branches: which one is next cannot be foretold
        is_first = times[i] <= times[j]
        to_times[place] = times[i] if is_first else times[j]
        to_order[place] = order[i] if is_first else order[j]
        i += is_first
        j += 1 - is_first
        place += 1
    rest, last = (i, middle) if i < middle else (j, stop)
    for k in range(rest, last):
        to_times[place], to_order[place] = times[k], order[k]
        place += 1


@njit(cache=True)
def _sort_by_insertion(order: Ints, codes: Ints, begin: int, stop: int) -> None:
    for i in range(begin + 1, stop):
        event = order[i]
        code = codes[event]
        j = i
        while j > begin and codes[order[j - 1]] > code:
            order[j] = order[j - 1]
            j -= 1
        order[j] = event


@njit(cache=True)
def step_bounds(times: Ints, codes: Ints) -> Ints:
    """Where the events of each instant and key begin, and at last the number of events."""
    length = len(times)
    bounds = np.empty(length + 1, np.int64)
    count = 0
    for i in range(length):
        if i == 0 or times[i] != times[i - 1] or codes[i] != codes[i - 1]:
            bounds[count] = i
            count += 1
    bounds[count] = length
    return bounds[: count + 1].copy()


@njit(cache=True)
def count_steps(
    codes: Ints, ports: Ints, deltas: Ints, bounds: Ints, counts: Ints
) -> tuple[Ints, Ints]:
    """For each input and step, how often the key is there before and after it; `counts`, by code
    and input, is brought up to date."""
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
