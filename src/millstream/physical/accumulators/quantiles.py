"""MEDIAN, and QUANTILE with a constant share: the value at a rank of a sorted group, or between
two."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from millstream.logical.expressions import AggregateCall, Cast, Expression, Literal
from millstream.logical.functions import cast
from millstream.model.arrays import of_view
from millstream.model.types import DOUBLE
from millstream.physical.accumulators.accumulator import Accumulator, Answer, GroupTable
from millstream.physical.accumulators.compiled import in_place
from millstream.physical.accumulators.slabs import NONE, SlabPool
from millstream.physical.accumulators.sorted_groups import SortedGroups, change, lacks_room
from millstream.physical.accumulators.words import ABSENT, Layout, double_bits, missing
from millstream.physical.batch import Ints, Mask, State


def share_of(call: AggregateCall) -> float | None:
    """The share of the quantile, if it is constant and valid."""
    if call.function == "median":
        return 0.5
    share = _constant(call.arguments[1])
    return share if isinstance(share, float) and 0 <= share <= 1 else None


def _constant(expression: Expression) -> object:
    match expression:
        case Literal(value=value):
            return value
        case Cast(operand=Literal(value=value, type=source), type=target, attempt=False):
            return cast(value, source, target)
    return None


class Quantile(Accumulator):
    """After a segment, the values of its group are counted up to the rank. This part of the cost is
    proportional to the distinct values in the group."""

    width = 1

    def __init__(self, share: float) -> None:
        self._share = share
        self._layout = Layout(DOUBLE, optional=True)
        self._values = SortedGroups()
        self._counts = GroupTable(1)

    def encode(
        self,
        arguments: Sequence[pa.Array],
        order: Sequence[pa.Array],
        included: Mask | None,
        length: int,
    ) -> list[Ints]:
        return self._layout.encode(arguments[0], missing(arguments[:1], included))

    def step(self, group: Ints, words: Sequence[Ints], delta: Ints, bounds: Ints) -> Answer:
        neighbours = np.zeros((len(bounds) - 1, 2), np.int64)
        counts = np.zeros(len(bounds) - 1, np.int64)
        event = segment = 0
        self._values.tidy()
        while segment < len(counts):
            event, segment = _neighbours(
                group,
                words[0],
                delta,
                bounds,
                self._share,
                self._counts.rows,
                self._values.roots,
                self._values.pool,
                event,
                segment,
                neighbours,
                counts,
            )
            if segment < len(counts):
                self._values.enlarge()
        return Answer(_interpolated(neighbours, counts, self._share))

    def grow(self, capacity: int) -> None:
        self._values.grow(capacity)
        self._counts.grow(capacity)

    def remap(self, old: Ints, capacity: int) -> None:
        self._values.remap(old, capacity)
        self._counts.remap(old, capacity)

    def forget(self, groups: Ints) -> None:
        self._values.forget(groups)
        self._counts.rows[groups] = 0

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + self._counts.rows.nbytes

    def save(self) -> State:
        return {"values": self._values.save(), "counts": self._counts.rows.copy()}

    def restore(self, state: State) -> None:
        self._values.restore(state["values"])
        self._counts.rows = state["counts"].copy()


def _interpolated(neighbours: Ints, counts: Ints, share: float) -> pa.Array:
    """Between the values below and above the rank, where they differ."""
    below, above = (_doubles(neighbours[:, side]) for side in range(2))
    rank = (counts - 1) * share
    weight = rank - np.floor(rank)
    with np.errstate(invalid="ignore", over="ignore"):
        between = below * (1 - weight) + above * weight
    same = neighbours[:, 0] == neighbours[:, 1]
    result = np.where(same, below, np.where(np.isnan(between), np.nan, between))
    return of_view(result.view(np.int64), DOUBLE, counts > 0)


def _doubles(words: Ints) -> NDArray[np.float64]:
    return double_bits(words).view(np.float64)


@in_place
def _neighbours(
    group: Ints,
    words: Ints,
    delta: Ints,
    bounds: Ints,
    share: float,
    totals: Ints,
    roots: Ints,
    pool: SlabPool,
    event: int,
    segment: int,
    neighbours: Ints,
    counts: Ints,
) -> tuple[int, int]:
    """The words at the ranks around the share, and the count of values, after each segment.
    Continues at an event of a segment, until the pool is full."""
    for j in range(segment, len(bounds) - 1):
        g = group[bounds[j]]
        for i in range(max(event, bounds[j]), bounds[j + 1]):
            if words[i] == ABSENT:
                continue
            if lacks_room(roots, pool, g):
                return i, j
            change(roots, pool, g, words[i], delta[i])
            totals[g, 0] += delta[i]
        counts[j] = totals[g, 0]
        if counts[j] > 0:
            rank = (counts[j] - 1) * share
            below, above = math.floor(rank), math.ceil(rank)
            neighbours[j, 0], neighbours[j, 1] = _at_ranks(roots[g], pool, below, above)
    return len(group), len(bounds) - 1


@njit(cache=True)
def _at_ranks(root: int, pool: SlabPool, below: int, above: int) -> tuple[int, int]:
    """The values at two ranks, from 0; both exist, and the second is not before the first."""
    index = -2 - root
    leaves = pool.keys[index] if root < NONE else 1
    passed, first, found = 0, 0, False
    for k in range(1, leaves + 1):
        leaf = pool.items[index + k] if root < NONE else root
        for i in range(leaf + 1, leaf + 1 + pool.keys[leaf]):
            passed += pool.items[i]
            if not found and passed > below:
                first, found = pool.keys[i], True
            if passed > above:
                return first, pool.keys[i]
    return first, first
