"""Monotone queues: the maximum of rows that go in the order in which they came.

A group's queue has, newest last, the values that are greater than all that came after them, each
with its count: a value that comes drops the smaller ones before it, since they go first. The
maximum is the oldest. Queues of all groups are linked lists in one pool of nodes.

>>> queues = Queues()
>>> queues.grow(1)
>>> group, value, delta = np.zeros(3, np.int64), np.array([9, 7, 9]), np.array([1, 1, -1])
>>> queues.maxima(group, value, value, False, delta, np.arange(4))[0].tolist()
[9, 9, 7]
"""

from __future__ import annotations

import numpy as np
from numba import njit

from millstream.physical.accumulators.words import ABSENT
from millstream.physical.batch import Ints, Mask, State

_VALUE, _COUNT, _OLDER, _NEWER = range(4)  # columns of a node
_OLDEST, _NEWEST = range(2)  # columns of a group; 0 is no node, for which node 0 is kept free
_FREE, _FRESH, _LIVE = range(3)  # the first freed node, the first never used, how many are in use
_LEAST = 64


class Queues:
    """Memory: 32 bytes a node, at most 4 times those in use."""

    def __init__(self) -> None:
        self._ends: Ints = np.zeros((0, 2), np.int64)
        self._nodes: Ints = np.zeros((_LEAST, 4), np.int64)
        self._marks: Ints = np.array([0, 1, 0])

    def maxima(
        self, group: Ints, value: Ints, flag: Ints, checked: bool, delta: Ints, bounds: Ints
    ) -> tuple[Ints, Mask]:
        """The maximum after each segment, and whether there is one. Where `checked`, rows whose
        flag is ABSENT are passed over."""
        self._make_room(len(group))
        events = group, value, flag, checked, delta, bounds
        return _maxima(*events, self._ends, self._nodes, self._marks)

    def _make_room(self, events: int) -> None:
        """Every event may need a node."""
        needed = int(self._marks[_LIVE]) + events + 1
        if needed > len(self._nodes) or 4 * needed + _LEAST < len(self._nodes):
            self._nodes = _packed(self._ends, self._nodes, self._marks, 2 * needed)

    def grow(self, capacity: int) -> None:
        if capacity > len(self._ends):
            self.remap(np.arange(len(self._ends)), capacity)

    def remap(self, old: Ints, capacity: int) -> None:
        ends = np.zeros((capacity, 2), np.int64)
        ends[: len(old)] = self._ends[old]
        self._ends = ends

    def forget(self, groups: Ints) -> None:
        self._ends[groups] = 0

    @property
    def nbytes(self) -> int:
        return self._ends.nbytes + self._nodes.nbytes

    def save(self) -> State:
        self._nodes = _packed(self._ends, self._nodes, self._marks, int(self._marks[_LIVE]) + 1)
        state = {"ends": self._ends, "nodes": self._nodes, "marks": self._marks}
        return {name: array.copy() for name, array in state.items()}

    def restore(self, state: State) -> None:
        self._ends = state["ends"].copy()
        self._nodes = state["nodes"].copy()
        self._marks = state["marks"].copy()


@njit(cache=True)
def _maxima(
    group: Ints,
    value: Ints,
    flag: Ints,
    checked: bool,
    delta: Ints,
    bounds: Ints,
    ends: Ints,
    nodes: Ints,
    marks: Ints,
) -> tuple[Ints, Mask]:
    segments = len(bounds) - 1
    maxima = np.zeros(segments, np.int64)
    valid = np.zeros(segments, np.bool_)
    for j in range(segments):
        g = group[bounds[j]]
        goings = 0
        for i in range(bounds[j], bounds[j + 1]):
            if delta[i] <= 0:
                goings += 1
            elif not (checked and flag[i] == ABSENT):
                _come(ends, nodes, marks, g, value[i], delta[i])
        for i in range(bounds[j], bounds[j + 1] if goings else 0):
            if delta[i] < 0 and not (checked and flag[i] == ABSENT):
                _go(ends, nodes, marks, g, value[i], delta[i])
        oldest = ends[g, _OLDEST]
        if oldest:
            maxima[j] = nodes[oldest, _VALUE]
            valid[j] = True
    return maxima, valid


@njit(cache=True)
def _come(ends: Ints, nodes: Ints, marks: Ints, g: int, value: int, delta: int) -> None:
    newest = ends[g, _NEWEST]
    while newest and nodes[newest, _VALUE] < value:
        older = nodes[newest, _OLDER]
        _free(nodes, marks, newest)
        newest = older
    if newest and nodes[newest, _VALUE] == value:
        nodes[newest, _COUNT] += delta
        nodes[newest, _NEWER] = 0
        ends[g, _NEWEST] = newest
        return
    node = _taken(nodes, marks)
    nodes[node, _VALUE] = value
    nodes[node, _COUNT] = delta
    nodes[node, _OLDER] = newest
    nodes[node, _NEWER] = 0
    if newest:
        nodes[newest, _NEWER] = node
    else:
        ends[g, _OLDEST] = node
    ends[g, _NEWEST] = node


@njit(cache=True)
def _go(ends: Ints, nodes: Ints, marks: Ints, g: int, value: int, delta: int) -> None:
    """The row is the oldest one: its value is the maximum, or was dropped before."""
    oldest = ends[g, _OLDEST]
    if oldest and nodes[oldest, _VALUE] == value:
        nodes[oldest, _COUNT] += delta
        if nodes[oldest, _COUNT] == 0:
            newer = nodes[oldest, _NEWER]
            _free(nodes, marks, oldest)
            ends[g, _OLDEST] = newer
            if newer:
                nodes[newer, _OLDER] = 0
            else:
                ends[g, _NEWEST] = 0


@njit(cache=True)
def _taken(nodes: Ints, marks: Ints) -> int:
    marks[_LIVE] += 1
    node = marks[_FREE]
    if node:
        marks[_FREE] = nodes[node, _NEWER]
        return int(node)
    marks[_FRESH] += 1
    return int(marks[_FRESH] - 1)


@njit(cache=True)
def _free(nodes: Ints, marks: Ints, node: int) -> None:
    marks[_LIVE] -= 1
    nodes[node, _NEWER] = marks[_FREE]
    marks[_FREE] = node


@njit(cache=True)
def _packed(ends: Ints, nodes: Ints, marks: Ints, size: int) -> Ints:
    """The nodes in use, queue after queue, in a pool of that size."""
    pool = np.zeros((size, 4), np.int64)
    fresh = 1
    for g in range(len(ends)):
        node, older = ends[g, _OLDEST], 0
        while node:
            pool[fresh] = nodes[node]
            pool[fresh, _OLDER] = older
            if older:
                pool[older, _NEWER] = fresh
            else:
                ends[g, _OLDEST] = fresh
            node, older = nodes[node, _NEWER], fresh
            fresh += 1
        if older:
            pool[older, _NEWER] = 0
            ends[g, _NEWEST] = older
    marks[_FREE], marks[_FRESH], marks[_LIVE] = 0, fresh, fresh - 1
    return pool
