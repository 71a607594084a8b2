"""A gate for each group: its rows pass while the group is covered, or while it is not."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def swing(
    groups: Ints,
    times: Ints,
    ports: Ints,
    deltas: Ints,
    ids: Ints,
    bounds: Ints,
    cover: Ints,
    count: Ints,
    first: Ints,
    size: Ints,
    following: Ints,
    leading: Ints,
    covered_passes: bool,
) -> tuple[Ints, Ints, Ints, Ints]:
    """Go through the steps of each group: events of port 0 change how often row `ids` is there, of
    port 1 by how much the group is covered.

    The size[g] rows of group g that are there are a list from first[g] through following (and back
    through leading). Gives the rows, times and changes of what passes, and the rows that went.
    """
    room = 2 * len(groups) + 16
    rows = np.empty(room, np.int64)
    when = np.empty(room, np.int64)
    change = np.empty(room, np.int64)
    gone = np.empty(len(groups), np.int64)
    step, length, went = 0, 0, 0
    while True:
        step, length, went = _swing_steps(
            groups, times, ports, deltas, ids, bounds,
            cover, count, first, size, following, leading, covered_passes,
            rows, when, change, gone, step, length, went,
        )  # fmt: skip
        if step == len(bounds) - 1:
            return rows[:length], when[:length], change[:length], gone[:went]
        # No loop may assign its own arrays anew: that makes it several times slower.
        needed = length + 2 * (bounds[step + 1] - bounds[step]) + size[groups[bounds[step]]]
        room = max(2 * room, needed)
        rows, when, change = _larger(rows, room), _larger(when, room), _larger(change, room)


@njit(cache=True)
def _swing_steps(
    groups: Ints,
    times: Ints,
    ports: Ints,
    deltas: Ints,
    ids: Ints,
    bounds: Ints,
    cover: Ints,
    count: Ints,
    first: Ints,
    size: Ints,
    following: Ints,
    leading: Ints,
    covered_passes: bool,
    rows: Ints,
    when: Ints,
    change: Ints,
    gone: Ints,
    step: int,
    length: int,
    went: int,
) -> tuple[int, int, int]:
    """From one step on, until there may be no room for what the next one gives."""
    while step < len(bounds) - 1:
        begin, stop = bounds[step], bounds[step + 1]
        group, time = groups[begin], times[begin]
        if length + 2 * (stop - begin) + size[group] > len(rows):
            break
        was_open = (cover[group] > 0) == covered_passes
        for i in range(begin, stop):
            if ports[i] == 1:
                cover[group] += deltas[i]
        is_open = (cover[group] > 0) == covered_passes
        if was_open and not is_open:
            row = first[group]
            while row >= 0:
                rows[length], when[length], change[length] = row, time, -count[row]
                length += 1
                row = following[row]
        for sign in (1, -1):  # first what comes: so nothing goes that is not there
            for i in range(begin, stop):
                if ports[i] == 1 or deltas[i] * sign <= 0:
                    continue
                row = ids[i]
                if was_open and is_open:
                    rows[length], when[length], change[length] = row, time, deltas[i]
                    length += 1
                before = count[row]
                count[row] = before + deltas[i]
                if before == 0 and count[row] != 0:
                    size[group] += 1
                    following[row] = first[group]
                    leading[row] = -1
                    if first[group] >= 0:
                        leading[first[group]] = row
                    first[group] = row
                elif before != 0 and count[row] == 0:
                    gone[went] = row
                    went += 1
                    size[group] -= 1
                    if leading[row] >= 0:
                        following[leading[row]] = following[row]
                    else:
                        first[group] = following[row]
                    if following[row] >= 0:
                        leading[following[row]] = leading[row]
        if is_open and not was_open:
            row = first[group]
            while row >= 0:
                rows[length], when[length], change[length] = row, time, count[row]
                length += 1
                row = following[row]
        step += 1
    return step, length, went


@njit(cache=True)
def _larger(array: Ints, room: int) -> Ints:
    larger = np.empty(room, np.int64)
    larger[: len(array)] = array
    return larger
