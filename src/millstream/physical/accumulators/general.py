"""Aggregates over values that are not words, or over all rows of a group: a sorted bag of rows per
group.

MIN, MAX, MIN_BY, MAX_BY, FIRST and LAST take the first or the last row of a suitable order, at
logarithmic cost in the size of the group. ARRAY_AGG, and aggregates without their own accumulator,
are evaluated by definition over all rows of the group after each segment.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.logical.aggregates import lookup
from millstream.logical.expressions import AggregateCall
from millstream.logical.functions import EvaluationError, Signature
from millstream.model.elements import Row, row_key
from millstream.model.values import to_arrow
from millstream.physical.accumulators.accumulator import Accumulator, Answer
from millstream.physical.accumulators.rows import RowPool
from millstream.physical.accumulators.words import ABSENT, missing
from millstream.physical.batch import Ints, Mask, State

_FIRST, _LAST = 0, -1
_PLACES = {"min": _FIRST, "min_by": _FIRST, "first": _FIRST}
_PLACES |= {"max": _LAST, "max_by": _LAST, "last": _LAST}


class Bag:
    """The rows of a group by code: those with a nonzero count, in order of their keys."""

    __slots__ = ("counts", "sorted")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.sorted: list[tuple[Any, int]] = []  # key and code

    def change(self, code: int, delta: int, keys: list[Any]) -> None:
        before = self.counts.get(code, 0)
        entry = keys[code], code
        if before + delta == 0:
            if before:
                del self.counts[code]
                del self.sorted[bisect_left(self.sorted, entry)]
            return
        self.counts[code] = before + delta
        if not before:
            insort(self.sorted, entry)

    def keep(self, entry: tuple[Any, int]) -> None:
        """Drop all others."""
        self.sorted, self.counts = [entry], {entry[1]: self.counts[entry[1]]}


class BagAccumulator(Accumulator):
    """The base of accumulators over bags: an event carries the code of its row, which has the ORDER
    BY columns followed by the arguments."""

    width = 1

    def __init__(self, call: AggregateCall) -> None:
        self._call = call
        self._ordering = len(call.order)  # columns before the arguments
        types = [expression.type for expression in (*call.order, *call.arguments)]
        self._pool = RowPool(types, self._key)
        self._bags: dict[int, Bag] = {}

    def _key(self, row: Row) -> Any:
        return row_key(row)

    def _needed(self, arguments: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """The columns that must not be NULL for a row to count."""
        return ()

    def _value(self, group: int, bag: Bag) -> object:
        """The aggregate over a non-empty bag."""
        raise NotImplementedError

    def encode(
        self,
        arguments: Sequence[pa.Array],
        order: Sequence[pa.Array],
        included: Mask | None,
        length: int,
    ) -> list[Ints]:
        gone = missing(self._needed(arguments), included)
        return [self._pool.encode([*order, *arguments], gone, length)]

    def step(self, group: Ints, words: Sequence[Ints], delta: Ints, bounds: Ints) -> Answer:
        codes, deltas = words[0].tolist(), delta.tolist()
        groups, edges = group[bounds[:-1]].tolist(), bounds.tolist()
        values: list[Any] = []
        messages: dict[int, str] = {}
        for segment, (first, last) in enumerate(pairwise(edges)):
            changes = zip(codes[first:last], deltas[first:last], strict=True)
            try:
                values.append(self._after(groups[segment], list(changes)))
            except EvaluationError as error:
                values.append(None)
                messages[segment] = str(error)
        failed = None
        if messages:
            failed = np.zeros(len(values), np.bool_)
            failed[list(messages)] = True
        return Answer(to_arrow(values, self._call.type), failed, messages)

    def _after(self, group: int, changes: list[tuple[int, int]]) -> object:
        """The aggregate of a group after changes to the counts of its rows."""
        bag = self._bags.get(group)
        if bag is None:
            bag = self._bags[group] = Bag()
        for code, delta in changes:
            if code != ABSENT:
                bag.change(code, delta, self._pool.keys)
        if not bag.sorted:
            del self._bags[group]
            return None
        return self._value(group, bag)

    def _row(self, code: int) -> Row:
        row = self._pool.rows[code]
        assert row is not None
        return row[self._ordering :]

    def _rows(self, bag: Bag) -> list[Row]:
        """The arguments of all rows in order, each as often as it counts."""
        counted = ((self._row(code), bag.counts[code]) for _, code in bag.sorted)
        rows = [row for row, count in counted for _ in range(count)]
        return list(dict.fromkeys(rows)) if self._call.distinct else rows

    def grow(self, capacity: int) -> None:
        pass

    def remap(self, old: Ints, capacity: int) -> None:
        bags = ((new, self._bags.get(group)) for new, group in enumerate(old.tolist()))
        self._bags = {new: bag for new, bag in bags if bag is not None}

    def forget(self, groups: Ints) -> None:
        for group in groups.tolist():
            self._bags.pop(group, None)

    @property
    def crowded(self) -> bool:
        return self._pool.crowded

    def retain(self, words: Sequence[Sequence[Ints]]) -> None:
        self._pool.retain(chain((piece[0] for piece in words), self._held()))

    def _held(self) -> Iterator[Ints]:
        for bag in self._bags.values():
            yield np.fromiter(bag.counts, np.int64, len(bag.counts))

    @property
    def nbytes(self) -> int:
        entries = sum(len(bag.sorted) for bag in self._bags.values())
        return self._pool.nbytes + 200 * len(self._bags) + 150 * entries

    def save(self) -> State:
        entries = [(g, *entry) for g, bag in self._bags.items() for entry in bag.counts.items()]
        counts = np.array(entries, np.int64).reshape(-1, 3)
        return {"pool": self._pool.save(), "counts": counts}

    def restore(self, state: State) -> None:
        self._pool.restore(state["pool"])
        self._bags = {}
        for group, code, count in state["counts"].tolist():
            self._bags.setdefault(group, Bag()).counts[code] = count
        for bag in self._bags.values():
            bag.sorted = sorted((self._pool.keys[code], code) for code in bag.counts)


class Chosen(BagAccumulator):
    """The first argument of the first or the last row of an order. If no row ever leaves, the
    others are dropped: they can never be chosen."""

    def __init__(self, call: AggregateCall, *, lasting: bool) -> None:
        super().__init__(call)
        self._lasting = lasting
        self._place = _PLACES[call.function]

    def _key(self, row: Row) -> Any:
        return row_key(row[::-1]) if self._call.function in ("min_by", "max_by") else row_key(row)

    def _needed(self, arguments: Sequence[pa.Array]) -> Sequence[pa.Array]:
        return () if self._call.function in ("first", "last") else arguments[-1:]

    def _value(self, group: int, bag: Bag) -> object:
        entry = bag.sorted[self._place]
        if self._lasting:
            bag.keep(entry)
        return self._row(entry[1])[0]


class General(BagAccumulator):
    """Any aggregate, by its definition."""

    def __init__(self, call: AggregateCall) -> None:
        super().__init__(call)
        function = lookup(call.function)
        assert function is not None, f"the binder knows {call.function}"
        self._function = function
        self._signature = Signature(tuple(a.type for a in call.arguments), call.type)

    def _after(self, group: int, changes: list[tuple[int, int]]) -> object:
        value = super()._after(group, changes)
        return value if group in self._bags else self._function.empty

    def _value(self, group: int, bag: Bag) -> object:
        return self._function.evaluate(self._signature, self._rows(bag))


def is_chosen(call: AggregateCall) -> bool:
    """Whether the value is that of one row of an order. LAST(DISTINCT …) is not: a row that occurs
    twice has the position of its first occurrence."""
    return call.function in _PLACES and not (call.function == "last" and call.distinct)
