"""TopN: the first rows of every snapshot, or of each of its groups, in an order.

*Meaning*: for every t, out(t) = the first `limit` rows of in(t), a row counted as often as it is
there; with keys, of each group.
*State*: the rows that are there, sorted, and what is known of their future.
*Form*: changes when the frontier has passed them. *Pattern*: STRICT.
*Cost*: for each event a binary search, and for each instant of a group the first rows of it.
*Source*: SQL's ORDER BY … LIMIT.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, total_ordering
from typing import Any

import numpy as np

from millstream.logical.elements import Row
from millstream.logical.expressions import Expression
from millstream.logical.plan import SortKey
from millstream.logical.time import INFINITY
from millstream.physical.batch import NEVER, Batch, Columns, Ints, State
from millstream.physical.evaluation import Evaluation
from millstream.physical.multisets import Multisets
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan, plain_rows
from millstream.values import order_key


@dataclass(frozen=True)
class TopN(PhysicalPlan):
    input: PhysicalPlan
    limit: int
    order: tuple[SortKey, ...]
    keys: tuple[Expression, ...] = ()

    @cached_property
    def pattern(self) -> Pattern:
        return Pattern.STRICT

    @property
    def state(self) -> str:
        return "sorted by group"

    def open(self, context: Context) -> Operator:
        return TopNOperator(self, context)


@total_ordering
class Descending:
    """A key that is ordered the other way round."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.key == other.key)

    def __lt__(self, other: Descending) -> bool:
        return bool(other.key < self.key)


class Ranked:
    """The rows of a group: (place in the order, code), sorted; and those of them on top."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, int]] = []
        self.top: dict[int, int] = {}

    def first(self, limit: int, counts: Ints) -> dict[int, int]:
        top: dict[int, int] = {}
        for _, code in self.rows:
            if limit <= 0:
                break
            top[code] = min(int(counts[code]), limit)
            limit -= top[code]
        return top


class TopNOperator(Operator):
    def __init__(self, node: TopN, context: Context) -> None:
        self._node = node
        order = [key.expression for key in node.order]
        self._values = Evaluation([*order, *node.keys], node.input.schema, context)
        self._value_types = [expression.type for expression in (*order, *node.keys)]
        self._multiset = Multisets(node.types, [node.input.pattern is Pattern.WEAKEST])
        self._places: list[tuple[Row, Any]] = []  # group and place in its order, by code
        self._groups: dict[Row, Ranked] = {}
        self._levels = np.zeros(64, np.int64)  # how often each row is there, by code
        self._frontier = NEVER

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._forget()
        known = self._multiset.keys.count
        self._multiset.add(0, batch)
        self._place(known)
        if batch.frontier <= self._frontier:
            return []
        self._frontier = batch.frontier
        changes = list(self._changes(batch.frontier))
        codes, times, weights = (
            np.array([change[i] for change in changes], np.int64) for i in range(3)
        )
        end = np.full(len(codes), INFINITY)
        return [Batch(self._multiset.rows(codes), times, end, weights, batch.frontier)]

    def _place(self, known: int) -> None:
        """Find out to which group new rows belong, and where they stand in it."""
        fresh = np.arange(known, self._multiset.keys.count)
        rows = self._multiset.rows(fresh)
        values, _ = self._values.over(rows, len(fresh))
        plain = plain_rows(Columns(list(values.lazy)), self._value_types, np.arange(len(fresh)))
        keys = len(self._node.order)
        self._places += [(row[keys:], self._rank(row[:keys])) for row in plain]
        if len(self._levels) < self._multiset.keys.count:
            more = max(self._multiset.keys.count, 2 * len(self._levels)) - len(self._levels)
            self._levels = np.append(self._levels, np.zeros(more, np.int64))

    def _rank(self, values: Row) -> tuple[Any, ...]:
        return tuple(
            ((value is None) != sort.nulls_first, Descending(key) if sort.descending else key)
            for value, sort in zip(values, self._node.order, strict=True)
            for key in [order_key(value)]
        )

    def _changes(self, frontier: int) -> Iterator[tuple[int, int, int]]:
        """(code, time, change) of the rows on top, instant by instant."""
        steps, counts = self._multiset.due(frontier)
        codes, times = steps.step_code, steps.step_time
        order = np.argsort(times, kind="stable")
        touched: dict[Row, Ranked] = {}
        for position, j in enumerate(order.tolist()):
            group, place = self._places[int(codes[j])]
            ranked = touched[group] = self._groups.setdefault(group, Ranked())
            self._move(ranked, (place, int(codes[j])), int(counts[0, j]))
            time = int(times[j])
            if position + 1 == len(order) or times[order[position + 1]] != time:
                for group, ranked in touched.items():
                    yield from ((code, time, change) for code, change in self._moved(ranked))
                    if not ranked.rows:
                        del self._groups[group]
                touched = {}

    def _move(self, ranked: Ranked, entry: tuple[Any, int], count: int) -> None:
        code = entry[1]
        if self._levels[code] == 0 and count > 0:
            insort(ranked.rows, entry)
        elif self._levels[code] > 0 and count == 0:
            del ranked.rows[bisect_left(ranked.rows, entry)]
        self._levels[code] = count

    def _moved(self, ranked: Ranked) -> Iterator[tuple[int, int]]:
        top = ranked.first(self._node.limit, self._levels)
        for code in {**ranked.top, **top}:
            change = top.get(code, 0) - ranked.top.get(code, 0)
            if change:
                yield code, change
        ranked.top = top

    def _forget(self) -> None:
        renumbered = self._multiset.forget()
        if renumbered is None:
            return
        kept = np.flatnonzero(renumbered[:-1] >= 0)
        self._levels = np.append(self._levels[kept], np.zeros(64, np.int64))
        self._places = [self._places[code] for code in kept.tolist()]
        for ranked in self._groups.values():
            ranked.rows = [(place, int(renumbered[code])) for place, code in ranked.rows]
            ranked.rows.sort()
            ranked.top = {int(renumbered[code]): n for code, n in ranked.top.items()}

    @property
    def rows(self) -> int:
        return self._multiset.size

    @property
    def nbytes(self) -> int:
        return self._multiset.nbytes + self._levels.nbytes + 200 * len(self._places)

    @property
    def touched(self) -> int:
        return self._multiset.touched

    def save(self) -> State:
        return {
            "multiset": self._multiset.save(),
            "levels": self._levels.copy(),
            "frontier": self._frontier,
        }

    def restore(self, state: State) -> None:
        """The sorted rows are made anew."""
        self._multiset.restore(state["multiset"])
        self._place(0)
        self._levels, self._frontier = state["levels"], state["frontier"]
        for code in np.flatnonzero(self._levels).tolist():
            group, place = self._places[code]
            self._groups.setdefault(group, Ranked()).rows.append((place, code))
        for ranked in self._groups.values():
            ranked.rows.sort()
            ranked.top = ranked.first(self._node.limit, self._levels)
