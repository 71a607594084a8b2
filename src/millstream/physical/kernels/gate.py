"""A gate for each group: its rows pass while the group is covered, or while it is not."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# The columns of a row and of a group, together in memory.
COUNT, FOLLOWING, LEADING, END = 0, 1, 2, 3
ROW_WIDTH = 4
COVER, FIRST, SIZE = 0, 1, 2
GROUP_WIDTH = 3


@njit(cache=True)
def swing(
    codes: Ints,
    times: Ints,
    ports: Ints,
    deltas: Ints,
    ids: Ints,
    bounds: Ints,
    groups: Ints,
    rows: Ints,
    covered_passes: bool,
) -> tuple[Ints, Ints, Ints, Ints]:
    """Go through the steps of groups: events of port 0 change how often row `ids` is there, of
    port 1 by how much the group is covered.

    The rows of a group that are there are a list from FIRST through FOLLOWING (and back through
    LEADING), SIZE of them. Gives the rows, times and changes of what passes, and the rows that
    went.
    """
    room = 2 * len(codes) + 16
    passed = np.empty((3, room), np.int64)
    gone = np.empty(len(codes), np.int64)
    step, length, went = 0, 0, 0
    while True:
        step, length, went = _swing_steps(
            codes, times, ports, deltas, ids, bounds, groups, rows, covered_passes,
            passed, gone, step, length, went,
        )  # fmt: skip
        if step == len(bounds) - 1:
            return passed[0, :length], passed[1, :length], passed[2, :length], gone[:went]
        # No loop may assign its own arrays anew: that makes it several times slower.
        needed = length + 2 * (bounds[step + 1] - bounds[step]) + groups[codes[bounds[step]], SIZE]
        larger = np.empty((3, max(2 * passed.shape[1], needed)), np.int64)
        larger[:, :length] = passed[:, :length]
        passed = larger


@njit(cache=True)
def _swing_steps(
    codes: Ints,
    times: Ints,
    ports: Ints,
    deltas: Ints,
    ids: Ints,
    bounds: Ints,
    groups: Ints,
    rows: Ints,
    covered_passes: bool,
    passed: Ints,
    gone: Ints,
    step: int,
    length: int,
    went: int,
) -> tuple[int, int, int]:
    """From one step on, until there may be no room for what the next one gives."""
    while step < len(bounds) - 1:
        begin, stop = bounds[step], bounds[step + 1]
        group, time = codes[begin], times[begin]
        if length + 2 * (stop - begin) + groups[group, SIZE] > passed.shape[1]:
            break
        was_open = (groups[group, COVER] > 0) == covered_passes
        for i in range(begin, stop):
            if ports[i] == 1:
                groups[group, COVER] += deltas[i]
        is_open = (groups[group, COVER] > 0) == covered_passes
        if was_open and not is_open:
            length = _pass_all(groups[group, FIRST], time, -1, rows, passed, length)
        both = stop - begin > 1
        for goes in range(2 if both else 1):  # first what comes: so nothing goes that is not there
            for i in range(begin, stop):
                if ports[i] == 1 or (both and (deltas[i] < 0) != goes):
                    continue
                row = ids[i]
                if was_open and is_open:
                    passed[0, length], passed[1, length], passed[2, length] = row, time, deltas[i]
                    length += 1
                before = rows[row, COUNT]
                rows[row, COUNT] = before + deltas[i]
                if before == 0:
                    _link(row, group, groups, rows)
                elif rows[row, COUNT] == 0:
                    _unlink(row, group, groups, rows)
                    gone[went] = row
                    went += 1
        if is_open and not was_open:
            length = _pass_all(groups[group, FIRST], time, 1, rows, passed, length)
        step += 1
    return step, length, went


@njit(cache=True)
def _pass_all(row: int, time: int, sign: int, rows: Ints, passed: Ints, length: int) -> int:
    while row >= 0:
        passed[0, length], passed[1, length] = row, time
        passed[2, length] = sign * rows[row, COUNT]
        length += 1
        row = rows[row, FOLLOWING]
    return length


@njit(cache=True)
def _link(row: int, group: int, groups: Ints, rows: Ints) -> None:
    first = groups[group, FIRST]
    groups[group, SIZE] += 1
    rows[row, FOLLOWING], rows[row, LEADING] = first, -1
    if first >= 0:
        rows[first, LEADING] = row
    groups[group, FIRST] = row


@njit(cache=True)
def _unlink(row: int, group: int, groups: Ints, rows: Ints) -> None:
    following, leading = rows[row, FOLLOWING], rows[row, LEADING]
    groups[group, SIZE] -= 1
    if leading >= 0:
        rows[leading, FOLLOWING] = following
    else:
        groups[group, FIRST] = following
    if following >= 0:
        rows[following, LEADING] = leading
