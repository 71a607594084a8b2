"""Sorted groups: for every group, the different values that it holds, in order, with a count each.

The values of a group lie in *leaves*, sorted arrays of at most 127, so that a value is found by
bisection and put in by moving a few others. A group of more than one leaf has an *index*, which
is such an array too: the least value of each leaf, and where the leaf lies. So changing a count
costs the logarithm of the size of its group, the extremes cost nothing, and no memory is touched
but the group's own.

Leaves and indexes are *slabs* of a pool: a power of two of (key, item) pairs, of which the first
is (number of entries, the power). Slabs grow and shrink with what they hold, and freed ones are
linked by size to be used again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from millstream.physical.accumulators.words import ABSENT
from millstream.physical.batch import Ints, Mask, State

_NONE = -1  # the root of an empty group; a root r < -1 is the index at -2 - r, others are leaves
_SMALLEST = 2  # powers of the smallest slab and the largest leaf
_LARGEST = 7
_FRESH, _USED = (
    0,
    1,
)  # marks: the first pair never used, the pairs in slabs, then free slabs by power
_LISTS = 2
_LEAST = 256  # pairs


class SortedGroups:
    """Memory: 16 bytes a pair, at most 4 times the slabs in use, which are a quarter full."""

    def __init__(self) -> None:
        self._roots: Ints = np.empty(0, np.int64)
        self._keys: Ints = np.zeros(_LEAST, np.int64)
        self._items: Ints = np.zeros(_LEAST, np.int64)
        self._marks = _fresh_marks()

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
        """The greatest or the least value after each segment, and whether there is one. Where
        `checked`, rows whose flag is ABSENT are passed over."""
        result = np.zeros(len(bounds) - 1, np.int64)
        valid = np.zeros(len(bounds) - 1, np.bool_)
        event = segment = 0
        self._tidy()
        while segment < len(result):
            state = self._roots, self._keys, self._items, self._marks
            events = group, value, flag, checked, delta, bounds
            event, segment = _extremes(greatest, *events, *state, event, segment, result, valid)
            if segment < len(result):
                self._enlarge()
        return result, valid

    def crossings(self, group: Ints, value: Ints, flag: Ints, checked: bool, delta: Ints) -> Ints:
        """1 for each event by which a value comes into its group, -1 by which it goes out, 0 for
        others."""
        result = np.zeros(len(group), np.int64)
        event = 0
        self._tidy()
        while event < len(group):
            state = self._roots, self._keys, self._items, self._marks
            event = _crossings(group, value, flag, checked, delta, *state, event, result)
            if event < len(group):
                self._enlarge()
        return result

    def _enlarge(self) -> None:
        more = np.zeros(len(self._keys) + 2 * _LEAST, np.int64)
        self._keys = np.concatenate([self._keys, more])
        self._items = np.concatenate([self._items, more])

    def _tidy(self) -> None:
        """Move slabs together where most of the pool is not used."""
        if 4 * int(self._marks[_USED]) + _LEAST < len(self._keys):
            self._pack(2 * int(self._marks[_USED]) + _LEAST)

    def _pack(self, size: int) -> None:
        marks = _fresh_marks()
        pools = np.zeros(size, np.int64), np.zeros(size, np.int64)
        _copy_all(self._roots, self._keys, self._items, *pools, marks)
        (self._keys, self._items), self._marks = pools, marks

    def grow(self, capacity: int) -> None:
        if capacity > len(self._roots):
            self.remap(np.arange(len(self._roots)), capacity)

    def remap(self, old: Ints, capacity: int) -> None:
        roots = np.full(capacity, _NONE)
        roots[: len(old)] = self._roots[old]
        self._roots = roots

    def forget(self, groups: Ints) -> None:
        self._roots[groups] = _NONE

    @property
    def nbytes(self) -> int:
        return self._roots.nbytes + self._keys.nbytes + self._items.nbytes

    def save(self) -> State:
        self._pack(int(self._marks[_USED]))
        state = {"roots": self._roots, "keys": self._keys, "items": self._items}
        return {name: array.copy() for name, array in state.items()}

    def restore(self, state: State) -> None:
        self._roots = state["roots"].copy()
        self._keys, self._items = state["keys"].copy(), state["items"].copy()
        self._marks = _fresh_marks()
        self._marks[_FRESH] = self._marks[_USED] = len(self._keys)


def _fresh_marks() -> Ints:
    return np.concatenate([np.zeros(_LISTS, np.int64), np.full(64, _NONE)])


@njit(cache=True)
def _extremes(
    greatest: bool,
    group: Ints,
    value: Ints,
    flag: Ints,
    checked: bool,
    delta: Ints,
    bounds: Ints,
    roots: Ints,
    keys: Ints,
    items: Ints,
    marks: Ints,
    event: int,
    segment: int,
    result: Ints,
    valid: Mask,
) -> tuple[int, int]:
    """From an event of a segment on; gives those at which the pool is full, or the end."""
    for j in range(segment, len(bounds) - 1):
        g = group[bounds[j]]
        for i in range(max(event, bounds[j]), bounds[j + 1]):
            if checked and flag[i] == ABSENT:
                continue
            if lacks_room(roots, keys, items, marks, g):
                return i, j
            change(roots, keys, items, marks, g, value[i], delta[i])
        if roots[g] != _NONE:
            leaf = last_leaf(roots, keys, items, g) if greatest else first_leaf(roots, items, g)
            result[j] = keys[leaf + (keys[leaf] if greatest else 1)]
            valid[j] = True
    return len(group), len(bounds) - 1


@njit(cache=True)
def _crossings(
    group: Ints,
    value: Ints,
    flag: Ints,
    checked: bool,
    delta: Ints,
    roots: Ints,
    keys: Ints,
    items: Ints,
    marks: Ints,
    event: int,
    result: Ints,
) -> int:
    for i in range(event, len(group)):
        if checked and flag[i] == ABSENT:
            continue
        if lacks_room(roots, keys, items, marks, group[i]):
            return i
        before = change(roots, keys, items, marks, group[i], value[i], delta[i])
        result[i] = (before + delta[i] > 0) - (before > 0)
    return len(group)


# --- groups -----------------------------------------------------------------------------------


@njit(cache=True)
def first_leaf(roots: Ints, items: Ints, g: int) -> int:
    root = roots[g]
    return int(root if root >= 0 else items[-2 - root + 1])


@njit(cache=True)
def last_leaf(roots: Ints, keys: Ints, items: Ints, g: int) -> int:
    root = roots[g]
    return int(root if root >= 0 else items[-2 - root + keys[-2 - root]])


@njit(cache=True)
def lacks_room(roots: Ints, keys: Ints, items: Ints, marks: Ints, g: int) -> bool:
    """Whether the pool might be too small for what `change` allocates at most: a leaf, and an
    index of twice the size."""
    room = len(keys) - marks[_FRESH]
    need = 1 << (_LARGEST + 1)
    if room < need:
        return True
    return bool(roots[g] < _NONE and room < need + (2 << items[-2 - roots[g]]))


@njit(cache=True)
def change(
    roots: Ints, keys: Ints, items: Ints, marks: Ints, g: int, value: int, delta: int
) -> int:
    """Change the count of a value, and give what it was before; a value has a count if it is not
    0."""
    if delta == 0:
        return 0
    root = roots[g]
    if root == _NONE:
        roots[g] = allocate(keys, items, marks, _SMALLEST)
        insert(keys, items, roots[g], 1, value, delta)
        return 0
    index, place, leaf = -1, 0, root
    if root < 0:
        index = -2 - root
        place = max(upper_bound(keys, index, value) - 1, 1)
        leaf = items[index + place]
    at = upper_bound(keys, leaf, value) - 1
    if at == 0 or keys[leaf + at] != value:
        _add_entry(roots, keys, items, marks, g, index, place, leaf, at + 1, value, delta)
        return 0
    before = items[leaf + at]
    items[leaf + at] += delta
    if before + delta == 0:
        _remove_entry(roots, keys, items, marks, g, index, place, leaf, at)
    return int(before)


@njit(cache=True)
def _add_entry(
    roots: Ints,
    keys: Ints,
    items: Ints,
    marks: Ints,
    g: int,
    index: int,
    place: int,
    leaf: int,
    at: int,
    value: int,
    count: int,
) -> None:
    size, power = keys[leaf], items[leaf]
    if size < (1 << power) - 1:
        insert(keys, items, leaf, at, value, count)
    elif power < _LARGEST:
        larger = moved(keys, items, marks, leaf, power + 1)
        _set_leaf(roots, items, g, index, place, larger)
        insert(keys, items, larger, at, value, count)
    else:
        # Values that rise fill their leaves; others leave them half full.
        kept = size if at > size else size // 2
        right = _split(keys, items, marks, leaf, kept)
        if at > kept:
            insert(keys, items, right, at - kept, value, count)
        else:
            insert(keys, items, leaf, at, value, count)
        _enter_leaf(roots, keys, items, marks, g, index, place, leaf, right)


@njit(cache=True)
def _split(keys: Ints, items: Ints, marks: Ints, leaf: int, kept: int) -> int:
    """Move all but the first entries of a leaf to a new one."""
    rest = keys[leaf] - kept
    right = allocate(keys, items, marks, _LARGEST)
    for k in range(1, rest + 1):
        keys[right + k] = keys[leaf + kept + k]
        items[right + k] = items[leaf + kept + k]
    keys[leaf], keys[right] = kept, rest
    return right


@njit(cache=True)
def _enter_leaf(
    roots: Ints,
    keys: Ints,
    items: Ints,
    marks: Ints,
    g: int,
    index: int,
    place: int,
    leaf: int,
    right: int,
) -> None:
    """Enter a new leaf behind one into the index."""
    if index < 0:
        index = allocate(keys, items, marks, _SMALLEST)
        insert(keys, items, index, 1, keys[leaf + 1], leaf)
        place = 1
    elif keys[index] == (1 << items[index]) - 1:
        index = moved(keys, items, marks, index, items[index] + 1)
    insert(keys, items, index, place + 1, keys[right + 1], right)
    roots[g] = -2 - index


@njit(cache=True)
def _remove_entry(
    roots: Ints,
    keys: Ints,
    items: Ints,
    marks: Ints,
    g: int,
    index: int,
    place: int,
    leaf: int,
    at: int,
) -> None:
    remove(keys, items, leaf, at)
    if keys[leaf] == 0:
        release(keys, items, marks, leaf)
        if index < 0:
            roots[g] = _NONE
            return
        remove(keys, items, index, place)
        if keys[index] == 1:
            roots[g] = items[index + 1]
            release(keys, items, marks, index)
        elif is_sparse(keys, items, index):
            roots[g] = -2 - moved(keys, items, marks, index, items[index] - 1)
    elif is_sparse(keys, items, leaf):
        smaller = moved(keys, items, marks, leaf, items[leaf] - 1)
        _set_leaf(roots, items, g, index, place, smaller)


@njit(cache=True)
def _set_leaf(roots: Ints, items: Ints, g: int, index: int, place: int, leaf: int) -> None:
    if index < 0:
        roots[g] = leaf
    else:
        items[index + place] = leaf


# --- slabs ------------------------------------------------------------------------------------


@njit(cache=True)
def upper_bound(keys: Ints, slab: int, value: int) -> int:
    """The number, from 1, of the first entry with a greater key; one more than there are if none
    has."""
    low, high = 1, keys[slab] + 1
    while low < high:
        middle = (low + high) >> 1
        if keys[slab + middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def is_sparse(keys: Ints, items: Ints, slab: int) -> bool:
    return bool(items[slab] > _SMALLEST and keys[slab] < 1 << (items[slab] - 2))


@njit(cache=True)
def insert(keys: Ints, items: Ints, slab: int, at: int, key: int, item: int) -> None:
    """Put an entry at a place; there must be room."""
    size = keys[slab]
    for k in range(slab + size, slab + at - 1, -1):
        keys[k + 1] = keys[k]
        items[k + 1] = items[k]
    keys[slab + at] = key
    items[slab + at] = item
    keys[slab] = size + 1


@njit(cache=True)
def remove(keys: Ints, items: Ints, slab: int, at: int) -> None:
    size = keys[slab]
    for k in range(slab + at, slab + size):
        keys[k] = keys[k + 1]
        items[k] = items[k + 1]
    keys[slab] = size - 1


@njit(cache=True)
def allocate(keys: Ints, items: Ints, marks: Ints, power: int) -> int:
    """An empty slab."""
    slab = marks[_LISTS + power]
    if slab != _NONE:
        marks[_LISTS + power] = keys[slab]
    else:
        slab = marks[_FRESH]
        marks[_FRESH] += 1 << power
    marks[_USED] += 1 << power
    keys[slab], items[slab] = 0, power
    return int(slab)


@njit(cache=True)
def release(keys: Ints, items: Ints, marks: Ints, slab: int) -> None:
    power = items[slab]
    marks[_USED] -= 1 << power
    keys[slab] = marks[_LISTS + power]
    marks[_LISTS + power] = slab


@njit(cache=True)
def moved(keys: Ints, items: Ints, marks: Ints, slab: int, power: int) -> int:
    """The entries of a slab in one of another size."""
    other = allocate(keys, items, marks, power)
    for k in range(1, keys[slab] + 1):
        keys[other + k] = keys[slab + k]
        items[other + k] = items[slab + k]
    keys[other] = keys[slab]
    release(keys, items, marks, slab)
    return other


@njit(cache=True)
def _copy_all(
    roots: Ints, keys: Ints, items: Ints, new_keys: Ints, new_items: Ints, marks: Ints
) -> None:
    """Copy all slabs to an empty pool."""
    for g in range(len(roots)):
        root = roots[g]
        if root >= 0:
            roots[g] = _copied(keys, items, root, new_keys, new_items, marks)
        elif root < _NONE:
            index = _copied(keys, items, -2 - root, new_keys, new_items, marks)
            for k in range(1, new_keys[index] + 1):
                leaf = new_items[index + k]
                new_items[index + k] = _copied(keys, items, leaf, new_keys, new_items, marks)
            roots[g] = -2 - index


@njit(cache=True)
def _copied(
    keys: Ints, items: Ints, slab: int, new_keys: Ints, new_items: Ints, marks: Ints
) -> int:
    other = allocate(new_keys, new_items, marks, items[slab])
    for k in range(keys[slab] + 1):
        new_keys[other + k] = keys[slab + k]
        new_items[other + k] = items[slab + k]
    return other
