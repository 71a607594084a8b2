"""The last rows of each partition, as they come."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


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
    """Take in rows in order of partition and time, at these slots; `stored` were there before.

    The rows of partition p that are in its window, or wait to come into it, are a list of slots
    from oldest[p], which is number oldest_number[p] of its arrivals, to latest[p]; those from
    unseen[p] on wait. Gives slots, times and changes (1 or -1), and the slots that are free now.
    """
    room = 2 * min(len(slots) * slide, len(slots) + stored)
    out_slot = np.empty(room, np.int64)
    out_time = np.empty(room, np.int64)
    out_change = np.empty(room, np.int64)
    freed = np.empty(room, np.int64)
    length = free = 0
    i = 0
    while i < len(slots):
        p, time = partitions[i], times[i]
        shown = arrived[p] // slide * slide
        while i < len(slots) and partitions[i] == p and times[i] == time:
            slot = slots[i]
            following[slot] = -1
            if oldest[p] < 0:
                oldest[p] = slot
                oldest_number[p] = arrived[p]
            else:
                following[latest[p]] = slot
            if unseen[p] < 0:
                unseen[p] = slot
            latest[p] = slot
            arrived[p] += 1
            i += 1
        end = arrived[p] // slide * slide
        begin = end - rows
        while oldest[p] >= 0 and oldest_number[p] < begin:
            slot = oldest[p]
            if oldest_number[p] < shown:
                out_slot[length], out_time[length], out_change[length] = slot, time, -1
                length += 1
            if unseen[p] == slot:  # it left before it was seen
                unseen[p] = following[slot]
            freed[free] = slot
            free += 1
            oldest[p] = following[slot]
            oldest_number[p] += 1
        number = max(shown, oldest_number[p])
        while unseen[p] >= 0 and number < end:
            out_slot[length], out_time[length], out_change[length] = unseen[p], time, 1
            length += 1
            unseen[p] = following[unseen[p]]
            number += 1
    return (
        out_slot[:length].copy(),
        out_time[:length].copy(),
        out_change[:length].copy(),
        freed[:free].copy(),
    )
