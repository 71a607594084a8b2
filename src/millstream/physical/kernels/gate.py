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
    following: Ints,
    leading: Ints,
    covered_passes: bool,
) -> tuple[Ints, Ints, Ints]:
    """Go through the steps of each group: events of port 0 change how often row `ids` is there, of
    port 1 by how much the group is covered.

    The rows of group g that are there are a list from first[g] through following (and back through
    leading). Gives the rows, times and changes of what passes.
    """
    room = 2 * len(groups) + 16
    out_id = np.empty(room, np.int64)
    out_time = np.empty(room, np.int64)
    out_change = np.empty(room, np.int64)
    length = 0
    for j in range(len(bounds) - 1):
        begin, stop = bounds[j], bounds[j + 1]
        group, time = groups[begin], times[begin]
        was_open = (cover[group] > 0) == covered_passes
        for i in range(begin, stop):
            if ports[i] == 1:
                cover[group] += deltas[i]
        is_open = (cover[group] > 0) == covered_passes
        if was_open and not is_open:
            row = first[group]
            while row >= 0:
                if length == room:
                    room *= 2
                    out_id, out_time = _larger(out_id, room), _larger(out_time, room)
                    out_change = _larger(out_change, room)
                out_id[length], out_time[length] = row, time
                out_change[length] = -count[row]
                length += 1
                row = following[row]
        for sign in (1, -1):  # first what comes: so nothing goes that is not there
            for i in range(begin, stop):
                if ports[i] == 1 or deltas[i] * sign <= 0:
                    continue
                row = ids[i]
                if was_open and is_open:
                    if length == room:
                        room *= 2
                        out_id, out_time = _larger(out_id, room), _larger(out_time, room)
                        out_change = _larger(out_change, room)
                    out_id[length], out_time[length] = row, time
                    out_change[length] = deltas[i]
                    length += 1
                before = count[row]
                count[row] = before + deltas[i]
                if before == 0 and count[row] != 0:
                    following[row] = first[group]
                    leading[row] = -1
                    if first[group] >= 0:
                        leading[first[group]] = row
                    first[group] = row
                elif before != 0 and count[row] == 0:
                    if leading[row] >= 0:
                        following[leading[row]] = following[row]
                    else:
                        first[group] = following[row]
                    if following[row] >= 0:
                        leading[following[row]] = leading[row]
        if is_open and not was_open:
            row = first[group]
            while row >= 0:
                if length == room:
                    room *= 2
                    out_id, out_time = _larger(out_id, room), _larger(out_time, room)
                    out_change = _larger(out_change, room)
                out_id[length], out_time[length] = row, time
                out_change[length] = count[row]
                length += 1
                row = following[row]
    return out_id[:length], out_time[:length], out_change[:length]


@njit(cache=True)
def _larger(array: Ints, room: int) -> Ints:
    larger = np.empty(room, np.int64)
    larger[: len(array)] = array
    return larger
