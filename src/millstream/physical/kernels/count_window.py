"""The last rows of each partition, in order of arrival."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def slide_window(times: Ints, first: int, held: int, rows: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Add rows in order of time, stored after `held` others from place `first` on. Returns the
    places, times and changes (1 or -1) of rows that enter and leave, and the offset of each
    instant, followed by the total. A row that leaves at the instant it enters is not returned."""
    place = np.empty(2 * len(times), np.int64)
    time = np.empty(2 * len(times), np.int64)
    change = np.empty(2 * len(times), np.int64)
    bounds = np.empty(len(times) + 1, np.int64)
    length = steps = i = 0
    oldest, behind = first, first + held
    while i < len(times):
        now, before = times[i], behind
        while i < len(times) and times[i] == now:
            i += 1
            behind += 1
        bounds[steps] = length
        steps += 1
        least = behind - rows
        for gone in range(oldest, min(least, before)):
            place[length], time[length], change[length] = gone, now, -1
            length += 1
        oldest = max(oldest, least)
        for come in range(max(before, oldest), behind):
            place[length], time[length], change[length] = come, now, 1
            length += 1
    bounds[steps] = length
    return place[:length], time[:length], change[:length], bounds[: steps + 1]


@njit(cache=True)
def slide_windows(
    partitions: Ints,
    times: Ints,
    slots: Ints,
    stored: int,
    rows: int,
    slide: int,
    arrived: Ints,
    oldest: Ints,
    oldest_number: Ints,
    latest: Ints,
    unseen: Ints,
    following: Ints,
) -> tuple[Ints, Ints, Ints, Ints]:
    """Add rows in order of partition and time, at these slots; `stored` existed before.

    The rows of partition p that are in its window, or wait to enter it, are a list of slots from
    oldest[p], which is number oldest_number[p] of its arrivals, to latest[p]; those from unseen[p]
    on wait. Returns slots, times and changes (1 or -1), and the slots freed.
    """
    room = 2 * min(len(slots) * slide, len(slots) + stored)
    out_slot = np.empty(room, np.int64)
    out_time = np.empty(room, np.int64)
    out_change = np.empty(room, np.int64)
    freed = np.empty(room, np.int64)
    length = free = i = 0
    while i < len(slots):
        p = partitions[i]
        came, first, last, hidden = arrived[p], oldest[p], latest[p], unseen[p]
        first_number, end = oldest_number[p], came // slide * slide
        while i < len(slots) and partitions[i] == p:
            time, shown = times[i], end
            while i < len(slots) and partitions[i] == p and times[i] == time:
                slot = slots[i]
                following[slot] = -1
                if first < 0:
                    first, first_number = slot, came
                else:
                    following[last] = slot
                hidden = slot if hidden < 0 else hidden
                last = slot
                came += 1
                i += 1
            end = came if slide == 1 else came // slide * slide  # division is slow
            while first >= 0 and first_number < end - rows:
                if first_number < shown:
                    out_slot[length], out_time[length], out_change[length] = first, time, -1
                    length += 1
                freed[free] = first
                free += 1
                after = following[first]
                hidden = after if hidden == first else hidden  # it left before it was seen
                first = after
                first_number += 1
            number = max(shown, first_number)
            while hidden >= 0 and number < end:
                out_slot[length], out_time[length], out_change[length] = hidden, time, 1
                length += 1
                hidden = following[hidden]
                number += 1
        arrived[p], oldest[p], latest[p], unseen[p] = came, first, last, hidden
        oldest_number[p] = first_number
    return (
        out_slot[:length].copy(),
        out_time[:length].copy(),
        out_change[:length].copy(),
        freed[:free].copy(),
    )
