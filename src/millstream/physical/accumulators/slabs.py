"""Slabs: small resizable arrays in one pool.

A slab is a power of two of (key, item) pairs; the first one is (number of entries, power). Freed
slabs are linked by size for reuse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from millstream.physical.batch import Ints

NONE = -1  # no slab
SMALLEST = 2  # the power of the smallest slab
FRESH, USED = 0, 1  # marks: the first pair never used, the pairs in slabs; then the free slabs
_LISTS = 2
_LEAST = 256  # pairs
_FEW = 64
_ONE = np.uint64(1)


class SlabPool(NamedTuple):
    """Memory: 16 bytes per pair."""

    keys: Ints
    items: Ints
    marks: Ints


#: Numba reads caches of kernels compiled before the class had its name, if only to discard them.
Pool = SlabPool


def empty_pool(size: int = _LEAST) -> SlabPool:
    marks = np.concatenate([np.zeros(_LISTS, np.int64), np.full(64, NONE)])
    return SlabPool(np.zeros(size, np.int64), np.zeros(size, np.int64), marks)


def full_pool(keys: Ints, items: Ints) -> SlabPool:
    """A pool of pairs that are all in use."""
    pool = SlabPool(keys.copy(), items.copy(), empty_pool(0).marks)
    pool.marks[FRESH] = pool.marks[USED] = len(keys)
    return pool


def enlarged(pool: SlabPool) -> SlabPool:
    more = np.zeros(len(pool.keys) + 2 * _LEAST, np.int64)
    return SlabPool(
        np.concatenate([pool.keys, more]), np.concatenate([pool.items, more]), pool.marks
    )


def is_wasteful(pool: SlabPool) -> bool:
    """Whether slabs use less than a quarter of it."""
    return 4 * int(pool.marks[USED]) + 4 * _LEAST < len(pool.keys)


@njit(cache=True, inline="always")
def upper_bound(pool: SlabPool, slab: int, value: int) -> int:
    """The number, from 1, of the first entry with a greater key; one past the last if there is
    none."""
    low, left = slab + 1, pool.keys[slab]
    while left > _FEW:
        half = left >> 1
        if pool.keys[low + half - 1] <= value:
            low += half
        left -= half
    # For a few entries, comparing with all is faster than branching: it vectorizes.
    for key in pool.keys[low : low + left]:
        low += key <= value
    return int(low - slab)


@njit(cache=True, inline="always")
def is_sparse(pool: SlabPool, slab: int) -> bool:
    power = pool.items[slab]
    return bool(power > SMALLEST and pool.keys[slab] < 1 << (power - 2))


@njit(cache=True, inline="always")
def is_full(pool: SlabPool, slab: int) -> bool:
    return bool(pool.keys[slab] == (1 << pool.items[slab]) - 1)


@njit(cache=True, inline="always")
def insert(pool: SlabPool, slab: int, at: int, key: int, item: int) -> None:
    """Insert an entry at a position; there must be room."""
    size = pool.keys[slab]
    # Unsigned indexes avoid a check for negative ones in the compiled loop.
    k, first = np.uint64(slab + size), np.uint64(slab + at)
    while k >= first:
        pool.keys[k + _ONE] = pool.keys[k]
        pool.items[k + _ONE] = pool.items[k]
        k -= _ONE
    pool.keys[first] = key
    pool.items[first] = item
    pool.keys[slab] = size + 1


@njit(cache=True, inline="always")
def remove(pool: SlabPool, slab: int, at: int) -> None:
    size = pool.keys[slab]
    k, last = np.uint64(slab + at), np.uint64(slab + size)
    while k < last:
        pool.keys[k] = pool.keys[k + _ONE]
        pool.items[k] = pool.items[k + _ONE]
        k += _ONE
    pool.keys[slab] = size - 1


@njit(cache=True, inline="always")
def room(pool: SlabPool) -> int:
    """The number of pairs never used."""
    return int(len(pool.keys) - pool.marks[FRESH])


@njit(cache=True, inline="always")
def allocate(pool: SlabPool, power: int) -> int:
    """An empty slab."""
    slab = pool.marks[_LISTS + power]
    if slab != NONE:
        pool.marks[_LISTS + power] = pool.keys[slab]
    else:
        slab = pool.marks[FRESH]
        pool.marks[FRESH] += 1 << power
    pool.marks[USED] += 1 << power
    pool.keys[slab], pool.items[slab] = 0, power
    return int(slab)


@njit(cache=True, inline="always")
def release(pool: SlabPool, slab: int) -> None:
    power = pool.items[slab]
    pool.marks[USED] -= 1 << power
    pool.keys[slab] = pool.marks[_LISTS + power]
    pool.marks[_LISTS + power] = slab


@njit(cache=True)
def append_all(pool: SlabPool, slab: int, source: SlabPool, first: int, last: int) -> None:
    """Append the pairs from `first` to before `last` of another pool, or the same one."""
    at = slab + pool.keys[slab] + 1 - first
    for k in range(first, last):
        pool.keys[at + k] = source.keys[k]
        pool.items[at + k] = source.items[k]
    pool.keys[slab] += last - first


@njit(cache=True)
def moved(pool: SlabPool, slab: int, power: int) -> int:
    """The entries of a slab in one of another size."""
    other = allocate(pool, power)
    append_all(pool, other, pool, slab + 1, slab + 1 + pool.keys[slab])
    release(pool, slab)
    return other
