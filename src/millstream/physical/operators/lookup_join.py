"""LookupJoin: joins rows that live one instant with the contents of a relation at that instant.

*Meaning*: that of the join (inner, left, semi, anti) of its inputs, where the left one's elements
live one instant: for a left row at s, its partners are in right(s), and its results are valid in
[s, s + 1).
*State*: the right rows, each in the versions that are valid at or after the left frontier; left
rows that are ahead of the right frontier. Versions are found by the equalities of the condition;
the rest of the condition, or all of it if there is no equality, is tested on the pairs.
*Form*: a left row waits until the right frontier has passed it. Its result is then final, whatever
the right input has retracted, and is emitted in order of start. *Pattern*: that of the left.
*Cost*: per left row the rows of its key; an event per change of a right row.
*Source*: G5 §4 (non-retroactive relations); K §17.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from millstream.logical.expressions import Expression, conjuncts
from millstream.logical.plan import JoinKind, Schema
from millstream.physical.batch import (
    Batch,
    Columns,
    Gatherable,
    Ints,
    LazyColumn,
    Mask,
    State,
    long_sizes,
)
from millstream.physical.expressions.evaluation import Condition, Evaluation
from millstream.physical.joins.portions import Portions
from millstream.physical.operator import Context, Frontiers, Operator, Pattern, PhysicalPlan
from millstream.physical.operators.join import JoinKey, Pairs
from millstream.physical.state.keys import KeySpace
from millstream.physical.state.versions import Versions
from millstream.physical.state.waiting import Waiting

_NO_KEYS = np.empty(0, np.int64)


@dataclass(frozen=True)
class LookupJoin(PhysicalPlan):
    left: PhysicalPlan
    right: PhysicalPlan
    columns: Schema
    keys: tuple[JoinKey, ...] = ()
    condition: Expression | None = None
    kind: JoinKind = JoinKind.INNER

    input_names = ("left", "right")

    @cached_property
    def schema(self) -> Schema:
        return self.columns

    @cached_property
    def pattern(self) -> Pattern:
        return self.left.pattern

    @property
    def state(self) -> str:
        return "versions"

    def open(self, context: Context) -> Operator:
        return LookupJoinOperator(self, context)


class LookupJoinOperator(Operator):
    def __init__(self, node: LookupJoin, context: Context) -> None:
        left, right = node.inputs
        self._kind = node.kind
        self._left_key = Evaluation([key.left for key in node.keys], left.schema, context)
        self._right_key = Evaluation([key.right for key in node.keys], right.schema, context)
        unknown = [i for i, key in enumerate(node.keys) if not key.null_matches]
        self._keys = KeySpace([key.left.type for key in node.keys], unknown)
        schema = left.schema + right.schema
        self._condition = [Condition(part, schema, context) for part in conjuncts(node.condition)]
        self._versions = Versions(right.types, self._keys, right.pattern is Pattern.WEAKEST)
        self._waiting = Waiting()
        self._frontiers = Frontiers(2)
        self._no_rows = Batch.empty(left.types, 0)
        self._nothing = Batch.empty(node.types, 0)

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._versions.forget()
        before = self._frontiers.least
        least = self._frontiers.advance(port, batch.frontier)
        if port == 1:
            self._add(batch)
            batch = self._no_rows
        _, complete = self._frontiers.each
        passed = self._waiting.passed(batch.up_to(complete))
        joined = [found for part in passed for found in self._looked_up(part) if len(found)]
        self._versions.look_up(_NO_KEYS, _NO_KEYS, least)
        self._versions.expire(self._frontiers.each[0])
        *first, last = joined or [self._nothing]
        return [*(each.up_to(before) for each in first), last.up_to(least)]

    def _add(self, batch: Batch) -> None:
        """Add rows of the relation; rows with a NULL key have no partners."""
        values, failed = self._right_key.over(batch.columns, len(batch))
        assert failed is None, "keys cannot fail"
        codes = self._keys.encode(values, len(batch))
        known = codes >= 0
        if known.any():
            self._versions.add(codes[known], batch.where(known))

    # --- left rows that are due, in order of start -----------------------------------------------

    def _looked_up(self, batch: Batch) -> Iterator[Batch]:
        """In pieces, if every row of the relation may be a partner."""
        if self._keys.types:
            yield self._joined(batch)[0]
            return
        first, portions = 0, Portions(self._versions.count + self._versions.pending)
        while first < len(batch):
            stop = min(first + portions.size, len(batch))
            joined, pairs = self._joined(batch.take(np.arange(first, stop)))
            yield joined
            first = stop
            portions.formed(pairs)

    def _joined(self, batch: Batch) -> tuple[Batch, int]:
        """The rows with their partners, and how many pairs were formed."""
        values, failed = self._left_key.over(batch.columns, len(batch))
        assert failed is None, "keys cannot fail"
        codes = self._keys.encode(values, len(batch), add=False)
        found, rows, counts = self._versions.look_up(codes, batch.start, int(batch.start[-1]) + 1)
        pairs = Pairs(
            found,
            rows,
            batch.columns.take(found) + self._versions.rows(rows),
            batch.start[found],
            batch.end[found],
            batch.weight[found] * counts,
        )
        bad: list[Pairs] = []
        for part in self._condition:
            pairs = pairs.tested(part, pairs.columns, bad)
        return self._kept(batch, pairs, bad), len(found)

    def _kept(self, batch: Batch, pairs: Pairs, failed: Sequence[Pairs]) -> Batch:
        """The output for left rows and their pairs. A partner for which the condition fails counts
        neither as a partner nor as the lack of one."""
        match self._kind:
            case JoinKind.INNER:
                return pairs.batch(batch.frontier)
            case JoinKind.SEMI:
                return batch.where(~_without(batch, [pairs]))
        alone = _without(batch, [pairs, *failed])
        if self._kind is JoinKind.ANTI:
            return batch.where(alone)
        return self._padded(batch, pairs, np.flatnonzero(alone))

    def _padded(self, batch: Batch, pairs: Pairs, alone: Ints) -> Batch:
        """The pairs, interleaved with the left rows without a partner, padded with NULLs."""
        if not len(alone):
            return pairs.batch(batch.frontier)
        mine = np.concatenate([pairs.mine, alone])
        order = np.argsort(mine, kind="stable")
        rows = np.concatenate([pairs.theirs, np.full(len(alone), -1)])[order]
        weight = np.concatenate([pairs.weight, batch.weight[alone]])[order]
        given = batch.take(mine[order])
        found = self._versions.rows(rows)
        padded = Columns([LazyColumn(_Padded(column.source), rows) for column in found.lazy])
        return Batch(given.columns + padded, given.start, given.end, weight, batch.frontier)

    # --- the state -------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return self._versions.count + self._versions.pending + len(self._waiting)

    @property
    def nbytes(self) -> int:
        return self._versions.nbytes + self._keys.nbytes + self._waiting.nbytes

    @property
    def touched(self) -> int:
        return self._versions.touched

    def save(self) -> State:
        return {
            "keys": self._keys.save(),
            "versions": self._versions.save(),
            "waiting": self._waiting.save(),
            "frontiers": self._frontiers.save(),
        }

    def restore(self, state: State) -> None:
        self._keys.restore(state["keys"])
        self._versions.restore(state["versions"])
        self._waiting.restore(state["waiting"])
        self._frontiers.restore(state["frontiers"])


class _Padded:
    """A column, with NULL where there is no row (-1)."""

    def __init__(self, column: Gatherable) -> None:
        self._column = column

    def take(self, index: Ints) -> pa.Array:
        there = index >= 0
        places = np.cumsum(there) - 1
        found = self._column.take(index[there])
        if len(places) == len(found):
            return found
        return found.take(pa.array(places, mask=~there))

    def long_sizes(self, index: Ints) -> Ints | None:
        return long_sizes(self._column, np.maximum(index, 0))


def _without(batch: Batch, pairs: Sequence[Pairs]) -> Mask:
    """Which rows of the batch are in none of these pairs."""
    without = np.ones(len(batch), np.bool_)
    for each in pairs:
        without[each.mine] = False
    return without
