"""TopN: the first rows of every snapshot, or of each of its groups, in an order.

*Meaning*: for every t, out(t) = the first `limit` rows of in(t), counting duplicates; with keys, of
each group.
*State*: the present rows, sorted, and their known future; for elements in order of start and end,
only the rows that may still become one of the first, as far as a batch shows.
*Form*: changes, when the frontier has passed them. *Pattern*: STRICT.
*Cost*: a binary search per event of such a row, and per instant at which a group changes, its first
rows.
*Source*: SQL's ORDER BY … LIMIT.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, total_ordering
from itertools import islice
from typing import Any

import numpy as np
from sortedcontainers import SortedList

from millstream.logical.expressions import Expression
from millstream.logical.plan import SortKey
from millstream.model.arrays import with_room
from millstream.model.elements import Row
from millstream.model.time import INFINITY
from millstream.model.values import order_key
from millstream.physical.batch import NEVER, Batch, Columns, Ints, State
from millstream.physical.expressions.evaluation import Evaluation
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan, plain_rows
from millstream.physical.state.contenders import Lasting, contenders
from millstream.physical.state.multisets import Multisets

_PART = 1024  # rows examined together: few, so that present rows outlast them


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


Entry = tuple[Any, ...]  # the position in the order, and the code of the row


@total_ordering
class Descending:
    """A key in reverse order."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.key == other.key)

    def __lt__(self, other: Descending) -> bool:
        return bool(other.key < self.key)


def _place(value: object, descending: bool) -> tuple[Any, Any]:
    """The sort key of a value, as a pair that compares without Python code if it is a number:
    whether it is NaN, which is greater than all numbers, and its key."""
    if value is None:
        return 0, 0
    if isinstance(value, float):
        if value != value:
            return not descending, 0
        return descending, -value if descending else value
    if isinstance(value, int):
        return 0, -value if descending else value
    if isinstance(value, Decimal):
        return 0, value.copy_negate() if descending else value
    key = order_key(value)
    return 0, Descending(key) if descending else key


class Ranked:
    """The sorted rows of a group, each as its position in the order and its code; and those on
    top."""

    def __init__(self) -> None:
        self.rows = SortedList()
        self.top: dict[int, int] = {}
        self.last: Entry | None = None  # on top, if the top is full

    def first(self, limit: int, counts: Ints) -> dict[int, int]:
        top: dict[int, int] = {}
        self.last = None
        for entry in self.rows:
            code = entry[-1]
            top[code] = min(int(counts[code]), limit)
            limit -= top[code]
            if limit <= 0:
                self.last = entry
                break
        return top


class TopNOperator(Operator):
    def __init__(self, node: TopN, context: Context) -> None:
        self._node = node
        order = [key.expression for key in node.order]
        self._values = Evaluation([*order, *node.keys], node.input.schema, context)
        self._value_types = [expression.type for expression in (*order, *node.keys)]
        self._multiset = Multisets(node.types, [node.input.pattern is Pattern.WEAKEST])
        self._places: list[tuple[Row, Entry]] = []  # group and sort key, by code
        self._groups: dict[Row, Ranked] = {}
        self._levels = np.zeros(64, np.int64)  # multiplicity of each row, by code
        # Used if ends show which rows need not be kept; groups are kept as they come.
        sifts = node.input.pattern in (Pattern.WEAKEST, Pattern.MONOTONIC) and not node.keys
        self._lasting = Lasting() if sifts and node.limit > 0 else None
        self._frontier = NEVER

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._forget()
        before = self._frontier
        changes = [change for part in self._parts(batch) for change in self._taken(part)]
        if batch.frontier <= before:
            return []
        codes, times, weights = (
            np.array([change[i] for change in changes], np.int64) for i in range(3)
        )
        end = np.full(len(codes), INFINITY)
        return [Batch(self._multiset.rows(codes), times, end, weights, batch.frontier)]

    def _parts(self, batch: Batch) -> Iterator[Batch]:
        """The batch in parts, each with its frontier."""
        if self._lasting is None or len(batch) <= _PART:
            yield batch
            return
        for first in range(0, len(batch), _PART):
            part = batch.take(np.arange(first, min(first + _PART, len(batch))))
            later = int(batch.start[first + _PART :].min(initial=INFINITY))
            yield part.up_to(min(batch.frontier, later))

    def _taken(self, batch: Batch) -> Iterator[tuple[int, int, int]]:
        """Process a batch; yields (code, time, change) of the rows on top."""
        if self._lasting is not None and len(batch) > self._node.limit:
            batch = self._sifted(batch, self._lasting)
        known = self._multiset.keys.count
        codes = self._multiset.add(0, batch)
        if self._lasting is not None:
            self._lasting.add(codes, batch.start, batch.end, self._frontier)
        self._place(known)
        if batch.frontier > self._frontier:
            self._frontier = batch.frontier
            yield from self._changes(batch.frontier)

    def _sifted(self, batch: Batch, lasting: Lasting) -> Batch:
        """Drops rows that never reach the top."""
        ranked = self._groups.get(())
        worst = None if ranked is None else self._lasting_row(ranked, lasting, batch.start.max())
        if worst is None:
            return batch
        values, _ = self._values.over(batch.columns, len(batch))
        other, _ = self._values.over(self._multiset.rows(np.array([worst])), 1)
        rows = contenders(values, other, self._node.order, self._node.limit)
        return batch.take(rows)

    def _lasting_row(self, ranked: Ranked, lasting: Lasting, until: int) -> int | None:
        """The last of the `limit` best rows that stay until `until`, if there are that many."""
        stays = (code for *_, code in ranked.rows if lasting.until[code] >= until)
        return next(islice(stays, self._node.limit - 1, None), None)

    def _place(self, known: int) -> None:
        """Determine the group and the sort key of new rows."""
        fresh = np.arange(known, self._multiset.keys.count)
        rows = self._multiset.rows(fresh)
        values, _ = self._values.over(rows, len(fresh))
        plain = plain_rows(Columns(list(values.lazy)), self._value_types, np.arange(len(fresh)))
        keys = len(self._node.order)
        self._places += [
            (row[keys:], (*self._rank(row[:keys]), code)) for code, row in enumerate(plain, known)
        ]
        self._levels = with_room(self._levels, self._multiset.keys.count)

    def _rank(self, values: Row) -> tuple[Any, ...]:
        rank: list[Any] = []
        for value, sort in zip(values, self._node.order, strict=True):
            rank += ((value is None) != sort.nulls_first, *_place(value, sort.descending))
        return tuple(rank)

    def _changes(self, frontier: int) -> Iterator[tuple[int, int, int]]:
        """The changes before the frontier, instant by instant."""
        steps, counts = self._multiset.due(frontier)
        codes, times = steps.step_code, steps.step_time
        order = np.argsort(times, kind="stable")
        touched: dict[Row, Ranked] = {}
        for position, j in enumerate(order.tolist()):
            group, entry = self._places[codes[j]]
            ranked = self._groups.get(group) or self._groups.setdefault(group, Ranked())
            self._move(ranked, entry, int(counts.after[0, j]))
            if ranked.last is None or entry <= ranked.last:
                touched[group] = ranked
            time = int(times[j])
            if position + 1 == len(order) or times[order[position + 1]] != time:
                for group, ranked in touched.items():
                    yield from ((code, time, change) for code, change in self._moved(ranked))
                    if not ranked.rows:
                        del self._groups[group]
                touched = {}

    def _move(self, ranked: Ranked, entry: Entry, count: int) -> None:
        code = entry[-1]
        if self._levels[code] == 0 and count > 0:
            ranked.rows.add(entry)
        elif self._levels[code] > 0 and count == 0:
            ranked.rows.remove(entry)
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
        if self._lasting is not None:
            self._lasting.renumber(kept)
        kept_places = (self._places[code] for code in kept.tolist())
        self._places = [
            (group, (*entry[:-1], code)) for code, (group, entry) in enumerate(kept_places)
        ]
        for ranked in self._groups.values():
            ranked.rows = SortedList(
                self._places[renumbered[entry[-1]]][1] for entry in ranked.rows
            )
            ranked.top = ranked.first(self._node.limit, self._levels)

    @property
    def rows(self) -> int:
        return self._multiset.size

    @property
    def nbytes(self) -> int:
        lasting = 0 if self._lasting is None else self._lasting.nbytes
        return self._multiset.nbytes + self._levels.nbytes + lasting + 200 * len(self._places)

    @property
    def touched(self) -> int:
        return self._multiset.touched

    def save(self) -> State:
        return {
            "multiset": self._multiset.save(),
            "levels": self._levels.copy(),
            "lasting": None if self._lasting is None else self._lasting.save(),
            "frontier": self._frontier,
        }

    def restore(self, state: State) -> None:
        """Rebuilds the sorted rows."""
        self._multiset.restore(state["multiset"])
        self._place(0)
        self._levels, self._frontier = state["levels"], state["frontier"]
        if self._lasting is not None:
            self._lasting.restore(state["lasting"])
        for code in np.flatnonzero(self._levels).tolist():
            group, entry = self._places[code]
            self._groups.setdefault(group, Ranked()).rows.add(entry)
        for ranked in self._groups.values():
            ranked.top = ranked.first(self._node.limit, self._levels)
