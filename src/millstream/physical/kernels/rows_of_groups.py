"""The rows of groups that change: step by step, the row before and the row after.

Rows are told by number: first those that the groups had before the batch, in the order in which
groups come, then those after each step.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@njit(cache=True)
def signed_rows(
    codes: Ints, times: Ints, changed: Mask, had_row: Mask, has_row: Mask, groups: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """The groups, row numbers, times and weights of the rows that go (-1) and come (1)."""
    room = 2 * len(codes)
    group, row = np.empty(room, np.int64), np.empty(room, np.int64)
    time, weight = np.empty(room, np.int64), np.empty(room, np.int64)
    length, seen = 0, -1
    for j in range(len(codes)):
        is_first = j == 0 or codes[j] != codes[j - 1]
        if is_first:
            seen += 1
        if not changed[j]:
            continue
        if had_row[j]:
            group[length], time[length], weight[length] = codes[j], times[j], -1
            row[length] = seen if is_first else groups + j - 1
            length += 1
        if has_row[j]:
            group[length], time[length], weight[length] = codes[j], times[j], 1
            row[length] = groups + j
            length += 1
    return group[:length], row[:length], time[:length], weight[:length]


@njit(cache=True)
def ended_rows(
    codes: Ints, times: Ints, changed: Mask, had_row: Mask, groups: int, since: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """The groups, row numbers, starts and ends of the rows that end; `since` when each group has
    its row is brought up to date."""
    room = len(codes)
    group, row = np.empty(room, np.int64), np.empty(room, np.int64)
    start, end = np.empty(room, np.int64), np.empty(room, np.int64)
    length, seen = 0, -1
    for j in range(len(codes)):
        code = codes[j]
        is_first = j == 0 or code != codes[j - 1]
        if is_first:
            seen += 1
        if not changed[j]:
            continue
        if had_row[j]:
            group[length], start[length], end[length] = code, since[code], times[j]
            row[length] = seen if is_first else groups + j - 1
            length += 1
        since[code] = times[j]
    return group[:length], row[:length], start[:length], end[:length]
