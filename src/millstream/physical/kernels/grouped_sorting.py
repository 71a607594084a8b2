"""Sorting within groups that are already in order.

The rows of a group are adjacent: `alike[i]` says whether row i + 1 is in the group of row i.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_SHORT = 24  # shorter groups are sorted by insertion


@njit(cache=True)
def same_times(start: Ints, end: Ints) -> Mask | None:
    """For elements in order of start, whether each has the same interval as the previous one; None
    if elements with equal starts are not in order of end."""
    alike = np.empty(max(len(start) - 1, 0), np.bool_)
    down = 0
    for i in range(len(alike)):
        together = start[i] == start[i + 1]
        alike[i] = together and end[i] == end[i + 1]
        down += together and end[i] > end[i + 1]
    return None if down else alike


@njit(cache=True)
def groups_of(alike: Mask) -> tuple[Ints, Ints]:
    """The places of rows in groups of more than one row, and their group numbers."""
    length = len(alike) + 1
    places, group = np.empty(length, np.int64), np.empty(length, np.int64)
    count, last = 0, -1
    for i in range(length):
        follows = i > 0 and alike[i - 1]
        if follows or (i < length - 1 and alike[i]):
            last += not follows
            places[count], group[count] = i, last
            count += 1
    return places[:count], group[:count]


@njit(cache=True)
def sort_groups(group: Ints, word: Ints, order: Ints) -> bool:
    """Sort the rows of each group by their word (stable). `group` has runs of equal numbers;
    `order` has the rows and is sorted in place. Returns whether any row was moved."""
    length = len(group)
    moved = False
    first = 0
    while first < length:
        stop = first + 1
        sorted_so_far = True
        while stop < length and group[stop] == group[first]:
            sorted_so_far &= word[order[stop - 1]] <= word[order[stop]]
            stop += 1
        if not sorted_so_far:
            moved = True
            if stop - first <= _SHORT:
                for i in range(first + 1, stop):
                    row = order[i]
                    value = word[row]
                    j = i
                    while j > first and word[order[j - 1]] > value:
                        order[j] = order[j - 1]
                        j -= 1
                    order[j] = row
            else:
                rows = order[first:stop].copy()
                order[first:stop] = rows[np.argsort(word[rows], kind="mergesort")]
        first = stop
    return moved


@njit(cache=True)
def split_groups(group: Ints, word: Ints, order: Ints, same: Mask) -> None:
    """Write to `same` whether each row but the first is in the group of the previous one and has
    the same word, given the result for the previous words."""
    for i in range(len(same)):
        same[i] &= group[i] == group[i + 1] and word[order[i]] == word[order[i + 1]]
