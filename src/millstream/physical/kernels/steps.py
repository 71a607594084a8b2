"""Groups events in order of time by key: the steps of each key's step function."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


_SHORT = 24  # fewer events are sorted by insertion


@njit(cache=True)
def order_by_key(codes: Ints, scratch: Ints) -> Ints:
    """The events grouped by key, in the given order within a key. `scratch` is zero for every code
    before and after the call."""
    return grouped(codes, scratch)[0]


@njit(cache=True)
def ordered_steps(codes: Ints, times: Ints, scratch: Ints) -> tuple[Ints, Ints]:
    """The events grouped by key and sorted by time; and the offset of each (code, time), followed
    by the total. The input is a few pieces sorted by time, so the events of a key are a few sorted
    runs."""
    order, starts = grouped(codes, scratch)
    buffer = np.empty(len(order), np.int64)
    for j in range(len(starts) - 1):
        sort_by_time(order, times, starts[j], starts[j + 1], buffer)
    return order, _step_bounds(order, starts, times)


@njit(cache=True)
def instants(times: Ints) -> Ints:
    """The offset of each instant's events, which are in order of time, followed by the total."""
    bounds = np.empty(len(times) + 1, np.int64)
    count = 0
    for i in range(len(times)):
        bounds[count] = i
        count += i == 0 or times[i] != times[i - 1]
    bounds[count] = len(times)
    return bounds[: count + 1]


@njit(cache=True)
def instants_by_key(codes: Ints, times: Ints) -> Ints:
    """As `instants`, for events grouped by key."""
    bounds = np.empty(len(times) + 1, np.int64)
    count = 0
    for i in range(len(times)):
        bounds[count] = i
        count += i == 0 or times[i] != times[i - 1] or codes[i] != codes[i - 1]
    bounds[count] = len(times)
    return bounds[: count + 1]


@njit(cache=True)
def _step_bounds(order: Ints, starts: Ints, times: Ints) -> Ints:
    bounds = np.empty(len(order) + 1, np.int64)
    count = 0
    for j in range(len(starts) - 1):
        for i in range(starts[j], starts[j + 1]):
            if i == starts[j] or times[order[i]] != times[order[i - 1]]:
                bounds[count] = i
                count += 1
    bounds[count] = len(order)
    return bounds[: count + 1].copy()


@njit(cache=True)
def grouped(codes: Ints, scratch: Ints) -> tuple[Ints, Ints]:
    """The events by key, and the offset of each key, followed by the total. `scratch` is zero for
    every code before and after the call."""
    length = len(codes)
    seen = np.empty(length, np.int64)
    keys = 0
    for i in range(length):
        code = codes[i]
        if scratch[code] == 0:
            seen[keys] = code
            keys += 1
        scratch[code] += 1
    starts = np.empty(keys + 1, np.int64)
    place = 0
    for j in range(keys):
        starts[j] = place
        count = scratch[seen[j]]
        scratch[seen[j]] = place
        place += count
    starts[keys] = length
    order = np.empty(length, np.int64)
    for i in range(length):
        code = codes[i]
        order[scratch[code]] = i
        scratch[code] += 1
    for j in range(keys):
        scratch[seen[j]] = 0
    return order, starts


@njit(cache=True)
def sort_by_time(order: Ints, times: Ints, begin: int, stop: int, buffer: Ints) -> None:
    """Sort the events from `begin` to `stop`; fast for a few sorted runs."""
    if stop - begin <= _SHORT:
        _sort_by_insertion(order, times, begin, stop)
    else:
        while not _merge_runs(order, times, begin, stop, buffer):
            pass


@njit(cache=True)
def _sort_by_insertion(order: Ints, times: Ints, begin: int, stop: int) -> None:
    for i in range(begin + 1, stop):
        event = order[i]
        time = times[event]
        j = i
        while j > begin and times[order[j - 1]] > time:
            order[j] = order[j - 1]
            j -= 1
        order[j] = event


@njit(cache=True)
def _merge_runs(order: Ints, times: Ints, begin: int, stop: int, buffer: Ints) -> bool:
    """Merge sorted runs pairwise; True if there was only one."""
    first = begin
    while first < stop:
        middle = _end_of_run(order, times, first, stop)
        if middle == stop:
            return first == begin
        last = _end_of_run(order, times, middle, stop)
        for i in range(first, middle):
            buffer[i] = order[i]
        i, j = first, middle
        for place in range(first, last):
            if i == middle:
                break
            if j == last or times[buffer[i]] <= times[order[j]]:
                order[place] = buffer[i]
                i += 1
            else:
                order[place] = order[j]
                j += 1
        first = last
    return False


@njit(cache=True)
def _end_of_run(order: Ints, times: Ints, first: int, stop: int) -> int:
    end = first + 1
    while end < stop and times[order[end - 1]] <= times[order[end]]:
        end += 1
    return end


@njit(cache=True)
def running_counts(codes: Ints, deltas: Ints, bounds: Ints, counts: Ints) -> Ints:
    """The multiplicity of the key after each step; updates `counts`, by code."""
    after = np.empty(len(bounds) - 1, np.int64)
    for j in range(len(after)):
        code = codes[bounds[j]]
        count = counts[code]
        for i in range(bounds[j], bounds[j + 1]):
            count += deltas[i]
        counts[code] = after[j] = count
    return after


@njit(cache=True)
def previous_steps(codes: Ints) -> Ints:
    """The previous step of the same key, -1 for the first one of each key."""
    previous = np.empty(len(codes), np.int64)
    for j in range(len(codes)):
        previous[j] = j - 1 if j > 0 and codes[j] == codes[j - 1] else -1
    return previous
