"""Join: the pairs of rows of two inputs that satisfy a condition.

*Meaning*: for every t, out(t) = { (e₁∘e₂, n₁·n₂) | (e₁, n₁) in left(t), (e₂, n₂) in right(t), θ }.
*State*: an area per input with the elements that the other input may still join with, until its
frontier has passed their end. Areas are probed by the equalities of the condition; the rest of the
condition, or all of it if there is no equality, is tested on the pairs.
*Pattern*: WEAK, STRICT if an input is, MONOTONIC if both are: a pair ends with the first of its
elements, so not in order of start.
*Cost*: per element the pairs of its key. *Source*: K algorithm 6; G3; G5 §2.1.

The join is linear in each input: an element of either sign joins with the elements of the other
area whose intervals overlap, and the weights multiply. Nothing waits, and no order is needed. A
batch of signed elements is netted first, so that pairs that cancel out are not formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from millstream.logical.expressions import Expression, conjuncts
from millstream.logical.plan import Schema
from millstream.physical.batch import NEVER, Batch, Columns, Ints, Mask, State
from millstream.physical.events.netting import netted
from millstream.physical.expressions.evaluation import Condition, Evaluation
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.operator import (
    Context,
    Frontiers,
    Operator,
    Pattern,
    PhysicalPlan,
    weakest_of,
)
from millstream.physical.state.keys import KeySpace


@dataclass(frozen=True)
class JoinKey:
    """An equality; with `null_matches` NULL equals NULL."""

    left: Expression
    right: Expression
    null_matches: bool = False


@dataclass(frozen=True)
class Join(PhysicalPlan):
    left: PhysicalPlan
    right: PhysicalPlan
    keys: tuple[JoinKey, ...] = ()
    condition: Expression | None = None
    areas: tuple[AreaChoice, AreaChoice] = (AreaChoice(), AreaChoice())

    input_names = ("left", "right")

    @cached_property
    def schema(self) -> Schema:
        return self.left.schema + self.right.schema

    @cached_property
    def pattern(self) -> Pattern:
        both = weakest_of(self.left.pattern, self.right.pattern)
        return Pattern.WEAK if both is Pattern.WEAKEST else both

    @property
    def state(self) -> str:
        names = [
            choice.name(side.pattern) for choice, side in zip(self.areas, self.inputs, strict=True)
        ]
        return ", ".join(names)

    def open(self, context: Context) -> Operator:
        return JoinOperator(self, context)


class Sides:
    """The areas of both inputs of a join, and the pairs of their elements. The condition does not
    see the last `hidden` columns of each."""

    def __init__(
        self,
        inputs: Sequence[PhysicalPlan],
        keys: Sequence[JoinKey],
        condition: Expression | None,
        areas: Sequence[AreaChoice],
        context: Context,
        hidden: int = 0,
    ) -> None:
        schemas = [side.schema for side in inputs]
        expressions = [[key.left for key in keys], [key.right for key in keys]]
        self._key_values = [
            Evaluation(e, schema, context) for e, schema in zip(expressions, schemas, strict=True)
        ]
        unknown = [i for i, key in enumerate(keys) if not key.null_matches]
        self.keys = KeySpace([key.left.type for key in keys], unknown)
        self._keyed = bool(keys)
        left, right = len(schemas[0]), len(schemas[0] + schemas[1])
        self._visible = slice(0, left - hidden), slice(left, right - hidden)
        visible = schemas[0][: left - hidden] + schemas[1][: right - left - hidden]
        self._condition = [Condition(part, visible, context) for part in conjuncts(condition)]
        self._inputs, self._choices = inputs, areas
        self.areas = [choice.open(side) for choice, side in zip(areas, inputs, strict=True)]
        self.frontiers = Frontiers(2)

    def reopen(self, port: int) -> None:
        """An empty area for an input."""
        self.areas[port] = self._choices[port].open(self._inputs[port])

    def netted(self, port: int, batch: Batch) -> Batch:
        """The batch with additions and their retractions merged, as it is joined."""
        return netted(batch) if self._inputs[port].pattern is Pattern.STRICT else batch

    def codes(self, port: int, batch: Batch) -> Ints:
        """The code of each row's key; -1 if no key can be equal."""
        values, failed = self._key_values[port].over(batch.columns, len(batch))
        assert failed is None, "keys cannot fail"
        return self.keys.encode(values, len(batch))

    def pairs(self, port: int, codes: Ints, batch: Batch) -> list[Pairs]:
        """The pairs of the elements of a batch with those of the other area."""
        other = self.areas[1 - port]
        if not len(other) or not len(batch):
            return []
        if self._keyed:
            return [self._tested(port, batch, *other.probe(codes, batch.start, batch.end))]
        pieces = other.probe_in_pieces(codes, batch.start, batch.end)
        return [self._tested(port, batch, found, slots) for found, slots in pieces]

    def _tested(self, port: int, batch: Batch, found: Ints, slots: Ints) -> Pairs:
        other = self.areas[1 - port]
        start, end, weight = other.times(slots)
        mine, theirs = batch.columns.take(found), other.rows(slots)
        pairs = Pairs(
            found,
            slots,
            mine + theirs if port == 0 else theirs + mine,
            np.maximum(batch.start[found], start),
            np.minimum(batch.end[found], end),
            batch.weight[found] * weight,
        )
        failed: list[Pairs] = []
        for part in self._condition:
            left, right = self._visible
            pairs = pairs.tested(part, pairs.columns[left] + pairs.columns[right], failed)
        pairs.failed = failed
        return pairs

    def keep(self, port: int, codes: Ints, batch: Batch) -> None:
        """Put the elements that the other input may still join with into the area."""
        needed = (codes >= 0) & (batch.end > self.frontiers.each[1 - port])
        index = needed.nonzero()[0]
        if len(index) == len(codes):
            self.areas[port].insert(codes, batch)
        else:
            self.areas[port].insert(codes[index], batch.take(index))

    def expire(self, port: int, frontier: int) -> int:
        """Advance the frontier of an input; returns the frontier of the output."""
        least = self.frontiers.advance(port, frontier)
        self.areas[1 - port].expire(self.frontiers.each[port])
        return least

    def forget(self) -> None:
        """Drop the keys that no element has."""
        if self.keys.is_stale:
            used = np.zeros(self.keys.count, np.bool_)
            for area in self.areas:
                used[area.live_codes()] = True
            self.renumber(self.keys.keep(np.flatnonzero(used)))

    def renumber(self, renumbered: Ints) -> None:
        for area in self.areas:
            area.renumber(renumbered)

    @property
    def rows(self) -> int:
        return sum(map(len, self.areas))

    @property
    def nbytes(self) -> int:
        return sum(area.nbytes for area in self.areas) + self.keys.nbytes

    @property
    def touched(self) -> int:
        return sum(area.touched for area in self.areas)

    def save(self) -> State:
        return {
            "keys": self.keys.save(),
            "areas": [area.save() for area in self.areas],
            "frontiers": self.frontiers.save(),
        }

    def restore(self, state: State) -> None:
        self.keys.restore(state["keys"])
        for area, saved in zip(self.areas, state["areas"], strict=True):
            area.restore(saved)
        self.frontiers.restore(state["frontiers"])


@dataclass(slots=True)
class Pairs:
    """Pairs of a batch's elements with those of an area that satisfy the condition; `failed` are
    those for which the condition failed."""

    mine: Ints  # numbers in the batch
    theirs: Ints  # slots of the area
    columns: Columns
    start: Ints
    end: Ints
    weight: Ints
    failed: Sequence[Pairs] = ()

    def tested(self, condition: Condition, columns: Columns, failed: list[Pairs]) -> Pairs:
        """The pairs that satisfy one more part of the condition; failing pairs are added to
        `failed`."""
        holds, bad = condition.over(columns, len(self.mine))
        if bad is not None:
            failed.append(self.where(bad))
        return self.where(holds)

    def where(self, mask: Mask) -> Pairs:
        index = mask.nonzero()[0]
        if len(index) == len(self.mine):
            return self
        return Pairs(
            self.mine[index],
            self.theirs[index],
            self.columns.take(index),
            self.start[index],
            self.end[index],
            self.weight[index],
        )

    def batch(self, frontier: int) -> Batch:
        return Batch(self.columns, self.start, self.end, self.weight, frontier)


class JoinOperator(Operator):
    def __init__(self, node: Join, context: Context) -> None:
        self._nothing = Batch.empty(node.types, NEVER)
        self._sides = Sides(node.inputs, node.keys, node.condition, node.areas, context)

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        sides = self._sides
        sides.forget()
        batch = sides.netted(port, batch)
        codes = sides.codes(port, batch)
        pairs = sides.pairs(port, codes, batch)
        least = min(batch.frontier, sides.frontiers.each[1 - port])
        joined = [found.batch(least) for found in pairs if len(found.mine)]
        sides.keep(port, codes, batch)
        sides.expire(port, batch.frontier)
        return joined or [self._nothing.up_to(least)]

    @property
    def rows(self) -> int:
        return self._sides.rows

    @property
    def nbytes(self) -> int:
        return self._sides.nbytes

    @property
    def touched(self) -> int:
        return self._sides.touched

    def save(self) -> State:
        return self._sides.save()

    def restore(self, state: State) -> None:
        self._sides.restore(state)
