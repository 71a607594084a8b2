"""The rows of changing groups: per step, the row before and the row after.

Rows have numbers: first those after each step, then those that the groups had before all steps, in
order of first occurrence of the group.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@njit(cache=True)
def rows_before(codes: Ints, has_row: Mask, present: Mask) -> tuple[Ints, Mask, Ints]:
    """The number of the row before each step, whether there was one, and the last step of each
    group. Updates `present`: whether each group has a row."""
    steps = len(codes)
    before, had_row, last = np.empty(steps, np.int64), np.empty(steps, np.bool_), codes.copy()
    groups = 0
    for j in range(steps):
        code = codes[j]
        if j == 0 or code != codes[j - 1]:
            before[j] = steps + groups
            groups += 1
        else:
            before[j] = j - 1
        had_row[j], present[code] = present[code], has_row[j]
        last[groups - 1] = j
    return before, had_row, last[:groups]


@njit(cache=True)
def signed_rows(
    codes: Ints, times: Ints, changed: Mask, before: Ints, had_row: Mask, has_row: Mask
) -> tuple[Ints, Ints, Ints, Ints]:
    """The groups, row numbers, times and weights of the rows removed (-1) and added (1)."""
    room = 2 * len(codes)
    group, row = np.empty(room, np.int64), np.empty(room, np.int64)
    time, weight = np.empty(room, np.int64), np.empty(room, np.int64)
    length = 0
    for j in range(len(codes)):
        if not changed[j]:
            continue
        if had_row[j]:
            group[length], row[length] = codes[j], before[j]
            time[length], weight[length] = times[j], -1
            length += 1
        if has_row[j]:
            group[length], row[length] = codes[j], j
            time[length], weight[length] = times[j], 1
            length += 1
    return group[:length], row[:length], time[:length], weight[:length]


@njit(cache=True)
def ended_rows(
    codes: Ints, times: Ints, changed: Mask, before: Ints, had_row: Mask, since: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """The groups, row numbers, starts and ends of the rows that end; updates `since`, when each
    group got its row."""
    room = len(codes)
    group, row = np.empty(room, np.int64), np.empty(room, np.int64)
    start, end = np.empty(room, np.int64), np.empty(room, np.int64)
    length = 0
    for j in range(len(codes)):
        if not changed[j]:
            continue
        code = codes[j]
        if had_row[j]:
            group[length], row[length] = code, before[j]
            start[length], end[length] = since[code], times[j]
            length += 1
        since[code] = times[j]
    return group[:length], row[:length], start[:length], end[:length]
