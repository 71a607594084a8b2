"""Monotone queues: the maximum of rows that leave in the order in which they came.

A group's queue has, oldest first, the values that are greater than all later ones, each with its
count: a new value drops the smaller ones before it, since they leave first. The maximum is the
oldest. A queue is in a slab and moves to another one when it reaches its end.

>>> queues = Queues()
>>> queues.grow(1)
>>> group, value, delta = np.zeros(3, np.int64), np.array([9, 7, 9]), np.array([1, 1, -1])
>>> queues.maxima(group, value, value, False, delta, np.arange(4))[0].tolist()
[9, 9, 7]
"""

from __future__ import annotations

import numpy as np
from numba import njit

from millstream.physical.accumulators.compiled import in_place
from millstream.physical.accumulators.slab_groups import SlabGroups
from millstream.physical.accumulators.slabs import (
    NONE,
    SMALLEST,
    SlabPool,
    allocate,
    append_all,
    release,
    room,
)
from millstream.physical.accumulators.words import ABSENT
from millstream.physical.batch import Ints, Mask

_SLAB, _OLDEST, _NEWEST = range(3)  # columns of a group; entries are numbered in the slab


class Queues(SlabGroups):
    """Memory: 16 bytes per value in a queue, at most 16 times that if queues shrink."""

    def __init__(self) -> None:
        super().__init__(3)

    def maxima(
        self, group: Ints, value: Ints, flag: Ints, checked: bool, delta: Ints, bounds: Ints
    ) -> tuple[Ints, Mask]:
        """The maximum after each segment, and whether there is one. If `checked`, rows whose flag
        is ABSENT are skipped."""
        result = np.zeros(len(bounds) - 1, np.int64)
        valid = np.zeros(len(bounds) - 1, np.bool_)
        events = group, value, flag, checked, delta, bounds
        event = segment = 0
        self.tidy()
        while segment < len(result):
            state = self.roots, self.pool
            event, segment = _maxima(*events, *state, event, segment, result, valid)
            if segment < len(result):
                self.enlarge()
        return result, valid

    def _copy_all(self, pool: SlabPool) -> None:
        _copy_all(self.roots, self.pool, pool)


@in_place
def _maxima(
    group: Ints,
    value: Ints,
    flag: Ints,
    checked: bool,
    delta: Ints,
    bounds: Ints,
    ends: Ints,
    pool: SlabPool,
    event: int,
    segment: int,
    result: Ints,
    valid: Mask,
) -> tuple[int, int]:
    """Continues at an event of a segment; returns those at which the pool is full, or the end.
    Within a segment additions precede removals."""
    for j in range(segment, len(bounds) - 1):
        g = group[bounds[j]]
        goings = 0
        for i in range(max(event, bounds[j]), bounds[j + 1]):
            if delta[i] <= 0:
                goings += 1
            elif not (checked and flag[i] == ABSENT):
                if _lacks_room(pool, ends[g, _SLAB]):
                    return i, j
                _come(ends, pool, g, value[i], delta[i])
        if event > bounds[j]:  # the kernel stopped in this segment: some events are done
            goings = 1
        for i in range(bounds[j], bounds[j + 1] if goings else bounds[j]):
            if delta[i] < 0 and not (checked and flag[i] == ABSENT):
                _go(ends, pool, g, value[i], delta[i])
        slab = ends[g, _SLAB]
        if slab != NONE:
            result[j] = pool.keys[slab + ends[g, _OLDEST]]
            valid[j] = True
    return len(group), len(bounds) - 1


@njit(cache=True, inline="always")
def _lacks_room(pool: SlabPool, slab: int) -> bool:
    """Whether the pool might be too small to move a queue."""
    power = SMALLEST if slab == NONE else pool.items[slab]
    return bool(room(pool) < 4 << power)


@njit(cache=True, inline="always")
def _come(ends: Ints, pool: SlabPool, g: int, value: int, delta: int) -> None:
    slab, oldest, newest = ends[g, _SLAB], ends[g, _OLDEST], ends[g, _NEWEST]
    if slab == NONE:
        slab, oldest, newest = allocate(pool, SMALLEST), 1, 0
        ends[g, _SLAB], ends[g, _OLDEST] = slab, oldest
    while newest >= oldest and pool.keys[slab + newest] < value:
        newest -= 1
    if newest >= oldest and pool.keys[slab + newest] == value:
        pool.items[slab + newest] += delta
        ends[g, _NEWEST] = newest
        return
    if newest + 1 == 1 << pool.items[slab]:
        slab = _moved(pool, slab, oldest, newest)
        newest -= oldest - 1
        ends[g, _SLAB], ends[g, _OLDEST] = slab, 1
    newest += 1
    pool.keys[slab + newest] = value
    pool.items[slab + newest] = delta
    ends[g, _NEWEST] = newest


@njit(cache=True)
def _moved(pool: SlabPool, slab: int, oldest: int, newest: int) -> int:
    """The queue at the start of a new slab that it half fills."""
    power = SMALLEST
    while 1 << power <= 2 * (newest - oldest + 1):
        power += 1
    other = allocate(pool, power)
    append_all(pool, other, pool, slab + oldest, slab + newest + 1)
    release(pool, slab)
    return other


@njit(cache=True, inline="always")
def _go(ends: Ints, pool: SlabPool, g: int, value: int, delta: int) -> None:
    """Remove the oldest row: its value is the maximum, or was dropped before."""
    slab, oldest = ends[g, _SLAB], ends[g, _OLDEST]
    if slab != NONE and pool.keys[slab + oldest] == value:
        pool.items[slab + oldest] += delta
        if pool.items[slab + oldest] == 0:
            ends[g, _OLDEST] = oldest + 1
            if oldest == ends[g, _NEWEST]:
                release(pool, slab)
                ends[g, _SLAB] = NONE


@njit(cache=True)
def _copy_all(ends: Ints, source: SlabPool, pool: SlabPool) -> None:
    for g in range(len(ends)):
        slab = ends[g, _SLAB]
        if slab != NONE:
            other = allocate(pool, source.items[slab])
            # Copy all pairs, so that entries keep their numbers.
            append_all(pool, other, source, slab + 1, slab + ends[g, _NEWEST] + 1)
            ends[g, _SLAB] = other
