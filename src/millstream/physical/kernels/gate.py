"""A gate for each group: its rows pass while the group is covered, or while it is not.

Row r is at node r + 1. Node 0 is a sentinel at the end of lists: writes to it are never read, so no
test is needed. Nodes and places are unsigned, since signed indexes need a test for negative values.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# The columns of a node and of a group, together in memory.
COUNT, FOLLOWING, LEADING, END = 0, 1, 2, 3
ROW_WIDTH = 4
COVER, FIRST, SIZE = 0, 1, 2
GROUP_WIDTH = 3

_NOBODY = np.uint64(0)
_ONE = np.uint64(1)


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
    """Process the steps of groups: events of port 0 change the multiplicity of row `ids`, those of
    port 1 the coverage of the group. Within a step, additions precede removals, so that no absent
    row is removed.

    The present rows of a group are a list of SIZE nodes from FIRST through FOLLOWING (and back
    through LEADING). Returns the rows, times and changes that pass, and the rows removed.
    """
    room = 2 * len(codes) + 16
    passed = np.empty((3, room), np.int64)
    gone = np.empty(len(codes), np.int64)
    step, length, went = 0, _NOBODY, _NOBODY
    while True:
        step, length, went = _swing_steps(
            codes, times, ports, deltas, ids, bounds, groups, rows, covered_passes,
            passed, gone, step, length, went,
        )  # fmt: skip
        if step == len(bounds) - 1:
            return passed[0, :length], passed[1, :length], passed[2, :length], gone[:went]
        # A loop must not reassign its arrays: that makes it several times slower.
        more = 2 * (bounds[step + 1] - bounds[step]) + groups[codes[bounds[step]], SIZE]
        larger = np.empty((3, max(2 * passed.shape[1], np.int64(length) + more)), np.int64)
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
    length: np.uint64,
    went: np.uint64,
) -> tuple[int, np.uint64, np.uint64]:
    """Continues at a step, until there may be no room for the output of the next one.

    Row handling is inlined: passing arrays to a function counts references, which takes as long as
    everything else.
    """
    room = passed.shape[1]
    while step < len(bounds) - 1:
        i, stop = np.uint64(bounds[step]), np.uint64(bounds[step + 1])
        group, time = np.uint64(codes[i]), times[i]
        if np.int64(length) + 2 * np.int64(stop - i) + groups[group, SIZE] > room:
            break
        step += 1
        cover = groups[group, COVER]
        was_open = is_open = (cover > 0) == covered_passes
        if stop - i > _ONE or ports[i] == 1:
            for j in range(i, stop):
                cover += ports[j] * deltas[j]
            groups[group, COVER] = cover
            is_open = (cover > 0) == covered_passes
            if was_open and not is_open:
                length = _pass_all(group, time, -1, groups, rows, passed, length)
        while i < stop:
            if ports[i] == 0:
                row, delta = np.uint64(ids[i]), deltas[i]
                passed[0, length], passed[1, length], passed[2, length] = row, time, delta
                length += np.uint64(was_open and is_open)
                node, first = row + _ONE, np.uint64(groups[group, FIRST])
                before = rows[node, COUNT]
                rows[node, COUNT] = before + delta
                if before == 0:
                    groups[group, SIZE] += 1
                    groups[group, FIRST] = node
                    rows[node, FOLLOWING], rows[node, LEADING] = first, _NOBODY
                    rows[first, LEADING] = node
                elif before + delta == 0:
                    following = np.uint64(rows[node, FOLLOWING])
                    leading = np.uint64(rows[node, LEADING])
                    groups[group, SIZE] -= 1
                    groups[group, FIRST] = following if leading == _NOBODY else first
                    rows[leading, FOLLOWING] = following
                    rows[following, LEADING] = leading
                    gone[went] = row
                    went += _ONE
            i += _ONE
        if is_open and not was_open:
            length = _pass_all(group, time, 1, groups, rows, passed, length)
    return step, length, went


@njit(cache=True)
def _pass_all(
    group: np.uint64,
    time: int,
    sign: int,
    groups: Ints,
    rows: Ints,
    passed: Ints,
    length: np.uint64,
) -> np.uint64:
    node = np.uint64(groups[group, FIRST])
    while node != _NOBODY:
        passed[0, length], passed[1, length] = node - _ONE, time
        passed[2, length] = sign * rows[node, COUNT]
        length += _ONE
        node = np.uint64(rows[node, FOLLOWING])
    return length
