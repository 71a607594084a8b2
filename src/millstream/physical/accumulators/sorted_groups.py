"""Sorted groups: for every group, its distinct values in order, each with a count.

The values of a group are in *leaves*, sorted slabs, so that a value is found quickly and inserted
by moving a few others. A group of more than one leaf has an *index*, which is also a slab: the
smallest value of each leaf, and its place. So changing a count costs about the logarithm of the
size of its group, the extremes cost nothing, and only the group's own memory is touched.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from millstream.physical.accumulators.compiled import in_place
from millstream.physical.accumulators.slab_groups import SlabGroups
from millstream.physical.accumulators.slabs import (
    NONE,
    SMALLEST,
    USED,
    SlabPool,
    allocate,
    append_all,
    insert,
    is_full,
    is_sparse,
    moved,
    release,
    remove,
    room,
    upper_bound,
)
from millstream.physical.accumulators.words import ABSENT
from millstream.physical.batch import Ints, Mask

_LEAST = -(2**63)  # the key of the first leaf, which has all values below the second one's
_LEAF = 5  # the power of the largest leaf in a group with few leaves


class SortedGroups(SlabGroups):
    """The root of a group is a leaf, or -2 - index.

    Memory: 16 bytes per pair of the pool, at most 4 times the slabs in use, which are at least a
    quarter full."""

    def extremes(
        self,
        greatest: bool,
        group: Ints,
        value: Ints,
        flag: Ints,
        checked: bool,
        delta: Ints,
        bounds: Ints,
    ) -> tuple[Ints, Mask]:
        """The greatest or the least value after each segment, and whether there is one. If
        `checked`, rows whose flag is ABSENT are skipped."""
        result = np.zeros(len(bounds) - 1, np.int64)
        valid = np.zeros(len(bounds) - 1, np.bool_)
        events = group, value, flag, checked, delta, bounds
        event = segment = 0
        self.tidy()
        while segment < len(result):
            state = self.roots, self.pool
            event, segment = _extremes(greatest, *events, *state, event, segment, result, valid)
            if segment < len(result):
                self.enlarge()
        return result, valid

    def crossings(self, group: Ints, value: Ints, flag: Ints, checked: bool, delta: Ints) -> Ints:
        """1 for each event by which a value enters its group, -1 by which it leaves, 0 for
        others."""
        result = np.zeros(len(group), np.int64)
        event = 0
        self.tidy()
        while event < len(group):
            state = self.roots, self.pool
            event = _crossings(group, value, flag, checked, delta, *state, event, result)
            if event < len(group):
                self.enlarge()
        return result

    def values(self) -> Ints:
        """All values of all groups."""
        return _all_values(self.roots, self.pool)

    def _copy_all(self, pool: SlabPool) -> None:
        _copy_all(self.roots, self.pool, pool)


@in_place
def _extremes(
    greatest: bool,
    group: Ints,
    value: Ints,
    flag: Ints,
    checked: bool,
    delta: Ints,
    bounds: Ints,
    roots: Ints,
    pool: SlabPool,
    event: int,
    segment: int,
    result: Ints,
    valid: Mask,
) -> tuple[int, int]:
    """Continues at an event of a segment; returns those at which the pool is full, or the end."""
    for j in range(segment, len(bounds) - 1):
        g = group[bounds[j]]
        for i in range(max(event, bounds[j]), bounds[j + 1]):
            if checked and flag[i] == ABSENT:
                continue
            if lacks_room(roots, pool, g):
                return i, j
            change(roots, pool, g, value[i], delta[i])
        if roots[g] != NONE:
            result[j] = _greatest(roots, pool, g) if greatest else _least(roots, pool, g)
            valid[j] = True
    return len(group), len(bounds) - 1


@njit(cache=True, inline="always")
def _least(roots: Ints, pool: SlabPool, g: int) -> int:
    root = roots[g]
    leaf = root if root >= 0 else pool.items[-2 - root + 1]
    return int(pool.keys[leaf + 1])


@njit(cache=True, inline="always")
def _greatest(roots: Ints, pool: SlabPool, g: int) -> int:
    root = roots[g]
    leaf = root if root >= 0 else pool.items[-2 - root + pool.keys[-2 - root]]
    return int(pool.keys[leaf + pool.keys[leaf]])


@in_place
def _crossings(
    group: Ints,
    value: Ints,
    flag: Ints,
    checked: bool,
    delta: Ints,
    roots: Ints,
    pool: SlabPool,
    event: int,
    result: Ints,
) -> int:
    for i in range(event, len(group)):
        if checked and flag[i] == ABSENT:
            continue
        if lacks_room(roots, pool, group[i]):
            return i
        before = change(roots, pool, group[i], value[i], delta[i])
        result[i] = (before + delta[i] > 0) - (before > 0)
    return len(group)


# --- changing a group -------------------------------------------------------------------------


@njit(cache=True, inline="always")
def _leaf_power(pool: SlabPool, index: int) -> int:
    """The power of the largest leaf: it grows with the index, to balance the work on both."""
    return _LEAF if index < 0 else max(_LEAF, (pool.items[index] + 3) >> 1)


@njit(cache=True, inline="always")
def lacks_room(roots: Ints, pool: SlabPool, g: int) -> bool:
    """Whether the pool might be too small for the most that `change` allocates: a leaf, and an
    index of twice the size."""
    index = -2 - roots[g]
    if index < 0:
        return bool(room(pool) < 4 << _LEAF)
    return bool(room(pool) < (2 << pool.items[index]) + (2 << _leaf_power(pool, index)))


@njit(cache=True, inline="always")
def change(roots: Ints, pool: SlabPool, g: int, value: int, delta: int) -> int:
    """Change the count of a value, and return the previous count; values with a count of 0 are
    removed."""
    root = roots[g]
    if root == NONE:
        if delta != 0:
            roots[g] = allocate(pool, SMALLEST)
            insert(pool, roots[g], 1, value, delta)
        return 0
    index, place, leaf = -1, 0, root
    if root < 0:
        index = -2 - root
        place = max(upper_bound(pool, index, value) - 1, 1)
        leaf = pool.items[index + place]
    at = upper_bound(pool, leaf, value) - 1
    if at == 0 or pool.keys[leaf + at] != value:
        if delta != 0 and not is_full(pool, leaf):
            insert(pool, leaf, at + 1, value, delta)
        elif delta != 0:
            _add_to_full(roots, pool, g, index, place, leaf, at + 1, value, delta)
        return 0
    before = pool.items[leaf + at]
    pool.items[leaf + at] = before + delta
    if before + delta == 0:
        remove(pool, leaf, at)
        if pool.keys[leaf] == 0 or is_sparse(pool, leaf):
            _shrink(roots, pool, g, index, place, leaf)
    return int(before)


@njit(cache=True)
def _add_to_full(
    roots: Ints,
    pool: SlabPool,
    g: int,
    index: int,
    place: int,
    leaf: int,
    at: int,
    value: int,
    count: int,
) -> None:
    """Insert a value into a full leaf, which has a place in the index, if there is one."""
    if pool.items[leaf] < _leaf_power(pool, index):
        larger = moved(pool, leaf, pool.items[leaf] + 1)
        _set_leaf(roots, pool, g, index, place, larger)
        insert(pool, larger, at, value, count)
    else:
        size = pool.keys[leaf]
        # Ascending values fill their leaves; others leave them half full.
        kept = size if at > size else size // 2
        right = allocate(pool, pool.items[leaf])
        append_all(pool, right, pool, leaf + kept + 1, leaf + size + 1)
        pool.keys[leaf] = kept
        if at > kept:
            insert(pool, right, at - kept, value, count)
        else:
            insert(pool, leaf, at, value, count)
        _enter_leaf(roots, pool, g, index, place, leaf, right)


@njit(cache=True)
def _enter_leaf(
    roots: Ints, pool: SlabPool, g: int, index: int, place: int, leaf: int, right: int
) -> None:
    """Insert a new leaf, the right neighbour of another, into the index."""
    if index < 0:
        index, place = allocate(pool, SMALLEST), 1
        insert(pool, index, 1, _LEAST, leaf)
    elif is_full(pool, index):
        index = moved(pool, index, pool.items[index] + 1)
    insert(pool, index, place + 1, pool.keys[right + 1], right)
    roots[g] = -2 - index


@njit(cache=True)
def _shrink(roots: Ints, pool: SlabPool, g: int, index: int, place: int, leaf: int) -> None:
    """Move a sparse leaf to a smaller slab, or remove an empty one."""
    if pool.keys[leaf] > 0:
        smaller = moved(pool, leaf, pool.items[leaf] - 1)
        _set_leaf(roots, pool, g, index, place, smaller)
        return
    release(pool, leaf)
    if index < 0:
        roots[g] = NONE
        return
    remove(pool, index, place)
    pool.keys[index + 1] = _LEAST
    if pool.keys[index] == 1:
        roots[g] = pool.items[index + 1]
        release(pool, index)
    elif is_sparse(pool, index):
        roots[g] = -2 - moved(pool, index, pool.items[index] - 1)


@njit(cache=True)
def _set_leaf(roots: Ints, pool: SlabPool, g: int, index: int, place: int, leaf: int) -> None:
    if index < 0:
        roots[g] = leaf
    else:
        pool.items[index + place] = leaf


# --- all groups -------------------------------------------------------------------------------


@njit(cache=True)
def _copy_all(roots: Ints, source: SlabPool, pool: SlabPool) -> None:
    """Copy all slabs to an empty pool."""
    for g in range(len(roots)):
        root = roots[g]
        if root >= 0:
            roots[g] = _copied(source, root, pool)
        elif root < NONE:
            index = _copied(source, -2 - root, pool)
            for k in range(index + 1, index + 1 + pool.keys[index]):
                pool.items[k] = _copied(source, pool.items[k], pool)
            roots[g] = -2 - index


@njit(cache=True)
def _copied(source: SlabPool, slab: int, pool: SlabPool) -> int:
    other = allocate(pool, source.items[slab])
    append_all(pool, other, source, slab + 1, slab + 1 + source.keys[slab])
    return other


@njit(cache=True)
def _all_values(roots: Ints, pool: SlabPool) -> Ints:
    values = np.empty(pool.marks[USED], np.int64)
    count = 0
    for g in range(len(roots)):
        index = -2 - roots[g]
        leaves = pool.keys[index] if index >= 0 else 1 if roots[g] != NONE else 0
        for k in range(leaves):
            leaf = pool.items[index + 1 + k] if index >= 0 else roots[g]
            for i in range(leaf + 1, leaf + 1 + pool.keys[leaf]):
                values[count] = pool.keys[i]
                count += 1
    return values[:count]
