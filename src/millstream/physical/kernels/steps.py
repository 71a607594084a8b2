"""Events in order of time, put together by key: the steps of each key's step function."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def merge(times: Ints, first: int) -> Ints:
    """The order of times of which the first so many are sorted, and the others too."""
    order = np.empty(len(times), np.int64)
    i, j = 0, first
    for place in range(len(times)):
        if j == len(times) or (i < first and times[i] <= times[j]):
            order[place] = i
            i += 1
        else:
            order[place] = j
            j += 1
    return order


@njit(cache=True)
def order_by_key(codes: Ints, scratch: Ints) -> Ints:
    """The events, key after key, each key's as they stood. `scratch` is zero for every code and is
    left so."""
    length = len(codes)
    seen = np.empty(length, np.int64)
    keys = 0
    for i in range(length):
        code = codes[i]
        if scratch[code] == 0:
            seen[keys] = code
            keys += 1
        scratch[code] += 1
    place = 0
    for j in range(keys):
        count = scratch[seen[j]]
        scratch[seen[j]] = place
        place += count
    order = np.empty(length, np.int64)
    for i in range(length):
        code = codes[i]
        order[scratch[code]] = i
        scratch[code] += 1
    for j in range(keys):
        scratch[seen[j]] = 0
    return order


@njit(cache=True)
def step_bounds(codes: Ints, times: Ints) -> Ints:
    """Where the events of each (code, time) begin, and at last the number of events."""
    length = len(codes)
    bounds = np.empty(length + 1, np.int64)
    count = 0
    for i in range(length):
        if i == 0 or codes[i] != codes[i - 1] or times[i] != times[i - 1]:
            bounds[count] = i
            count += 1
    bounds[count] = length
    return bounds[: count + 1].copy()


@njit(cache=True)
def running_counts(codes: Ints, ports: Ints, deltas: Ints, bounds: Ints, counts: Ints) -> Ints:
    """For each input and step, how often the key is there after it; `counts`, by input and code,
    is brought up to date."""
    steps = len(bounds) - 1
    after = np.empty((len(counts), steps), np.int64)
    for j in range(steps):
        code = codes[bounds[j]]
        for i in range(bounds[j], bounds[j + 1]):
            counts[ports[i], code] += deltas[i]
        for port in range(len(counts)):
            after[port, j] = counts[port, code]
    return after


@njit(cache=True)
def levels_before(codes: Ints, after: Ints, levels: Ints) -> Ints:
    """The level of each step's key before it, given those after it; `levels`, by code, is brought
    up to date."""
    before = np.empty(len(codes), np.int64)
    for j in range(len(codes)):
        before[j] = levels[codes[j]]
        levels[codes[j]] = after[j]
    return before


@njit(cache=True)
def previous_steps(codes: Ints) -> Ints:
    """The step of the same key before each step, -1 for the first one of each key."""
    previous = np.empty(len(codes), np.int64)
    for j in range(len(codes)):
        previous[j] = j - 1 if j > 0 and codes[j] == codes[j - 1] else -1
    return previous
