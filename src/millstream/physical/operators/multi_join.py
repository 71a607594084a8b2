"""MultiJoin: joins many inputs without intermediate results.

*Meaning*: for every t, out(t) = { (e₁∘…∘eₙ, n₁·…·nₙ) | (eᵢ, nᵢ) in Sᵢ(t), all equalities and
conditions }: that of a tree of binary joins.
*State*: per input an area for each set of equalities by which others reach it, with the elements
that new ones of the others may still join with; if it is lazy, the elements not joined yet.
*Pattern*: WEAK, STRICT if an input is, MONOTONIC if all are.
*Cost*: per new element the partial results on its way through the other inputs, in an order that
may differ per input.
*Source*: G3 §3. New elements first is the eager or lazy multi-way join; a new element anywhere else
is the general lazy one; one order for all inputs is the naive one. An input linked by an equality
to those bound before is probed by hash, any other is scanned: the hybrid join. Count windows (§3.6)
arrive as signed elements and need no special handling.

The join is linear in each input: new elements of one join with the areas of all others, then enter
their own area. So it is correct for elements of either sign, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from millstream.logical.expressions import Expression, conjuncts
from millstream.logical.plan import Schema
from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch, Ints, State, merged
from millstream.physical.events.netting import netted
from millstream.physical.joins.areas.area import Area
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.joins.sides import Partial, Side, Tests
from millstream.physical.joins.steps import (
    EqualityClass,
    JoinStep,
    Link,
    equality_classes,
    new_first,
    steps_of,
)
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
class MultiJoin(PhysicalPlan):
    """`conditions` cannot fail, and are tested as soon as they can be; `condition` is tested on
    complete rows, up to the first part that does not hold. `orders` has for each input the order of
    inputs that its new elements go through. With an `interval`, they wait until the frontier has
    advanced by that much (G3's τ)."""

    sources: tuple[PhysicalPlan, ...]
    links: tuple[Link, ...] = ()
    conditions: tuple[Expression, ...] = ()
    condition: Expression | None = None
    orders: tuple[tuple[int, ...], ...] = ()
    areas: tuple[AreaChoice, ...] = ()
    interval: int = 0

    def __post_init__(self) -> None:
        ports = range(len(self.sources))
        if not self.orders:
            object.__setattr__(self, "orders", new_first(ports))
        if not self.areas:
            object.__setattr__(self, "areas", tuple(AreaChoice() for _ in ports))
        assert [sorted(order) for order in self.orders] == [list(ports)] * len(ports)

    @property
    def inputs(self) -> tuple[PhysicalPlan, ...]:
        return self.sources

    @cached_property
    def schema(self) -> Schema:
        return tuple(field for source in self.sources for field in source.schema)

    @cached_property
    def pattern(self) -> Pattern:
        all_inputs = weakest_of(*(source.pattern for source in self.sources))
        return Pattern.WEAK if all_inputs is Pattern.WEAKEST else all_inputs

    @property
    def state(self) -> str:
        choices = zip(self.areas, self.sources, strict=True)
        return ", ".join(choice.name(source.pattern) for choice, source in choices)

    @cached_property
    def classes(self) -> tuple[EqualityClass, ...]:
        return equality_classes(self.links)

    def steps(self, port: int) -> tuple[JoinStep, ...]:
        """The steps for the new elements of an input."""
        schemas = [source.schema for source in self.sources]
        return tuple(steps_of(self.orders[port], self.classes, self.conditions, schemas))

    def open(self, context: Context) -> Operator:
        return MultiJoinOperator(self, context)


class MultiJoinOperator(Operator):
    def __init__(self, node: MultiJoin, context: Context) -> None:
        ports = range(len(node.sources))
        self._node, self._context = node, context
        self._frontiers = Frontiers(len(ports))
        self._evaluated = NEVER
        self._new: list[list[Batch]] = [[] for _ in ports]
        self._steps = [node.steps(port) for port in ports]
        schemas = [source.schema for source in node.sources]
        self._tests = [
            [Tests(step.conditions, [schemas[i] for i in step.bound], context) for step in steps]
            for steps in self._steps
        ]
        self._last_test = Tests(conjuncts(node.condition), schemas, context)
        self._scanned = 0
        self._touched_before = 0
        self._open()

    def _open(self) -> None:
        classes = self._node.classes
        self._spaces = [KeySpace([c.type], () if c.null_matches else (0,)) for c in classes]
        reached: list[dict[tuple[int, ...], None]] = [{} for _ in self._steps]
        for port, steps in enumerate(self._steps):
            for step in steps[1:]:
                if step.port != port:
                    reached[step.port][step.shared] = None
        indexes = [list(each) or [()] for each in reached]
        node, context = self._node, self._context
        self._sides = [
            Side(port, node.sources[port], node.areas[port], classes, index, context)
            for port, index in enumerate(indexes)
        ]
        shared = {step.shared for steps in self._steps for step in steps if len(step.shared) > 1}
        self._compounds = {each: KeySpace([pa.int64()] * len(each)) for each in sorted(shared)}

    # --- new elements ----------------------------------------------------------------------------

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._forget()
        least = self._frontiers.advance(port, batch.frontier)
        if len(batch):
            self._new[port].append(batch.gathered())
        waits = least < INFINITY and least - self._evaluated < self._node.interval
        if waits:
            list(batch.columns)  # gather now: the source of a lazy column may change
            return []
        given = list(self._evaluate(least))
        self._expire()
        self._evaluated = least
        return given or [Batch.empty(self._node.types, least)]

    def _evaluate(self, frontier: int) -> Iterator[Batch]:
        """Join the new elements of each input in turn with all present elements, then store
        them."""
        waiting = [port for port, batches in enumerate(self._new) if batches]
        for port in waiting:
            new = self._sides[port].coded(self._netted(port), self._spaces)
            self._new[port] = []
            joined = self._joined(port, new)
            if joined is not None and len(joined):
                given = Batch(joined.row(), joined.start, joined.end, joined.weight, frontier)
                if port != waiting[-1]:
                    list(given.columns)  # gather before the areas change
                yield given
            self._keep(port, new)

    def _netted(self, port: int) -> Batch:
        """The new elements of an input, netted."""
        new = merged(self._new[port])
        return netted(new) if self._node.sources[port].pattern is Pattern.STRICT else new

    def _joined(self, port: int, new: Partial) -> Partial | None:
        """The complete rows that result from new elements of an input."""
        first, *steps = self._steps[port]
        first_test, *tests = self._tests[port]
        partial = new if first.port == port else self._all(self._sides[first.port])
        partial = first_test.passed(partial)
        for step, test in zip(steps, tests, strict=True):
            if not len(partial):
                return None
            side = self._sides[step.port]
            if step.port == port:
                area = side.open_area()
                self._insert(side, area, step.shared, new)
            else:
                area = side.areas[step.shared]
            partial = self._extended(partial, step, area, test)
            if step.port == port:
                self._touched_before += area.touched
        return self._last_test.passed(partial)

    def _all(self, side: Side) -> Partial:
        self._scanned += len(side.kept)
        return side.bound(side.kept, side.kept.slots(), side.own)

    def _extended(self, partial: Partial, step: JoinStep, area: Area, test: Tests) -> Partial:
        """The partial results with one more input."""
        codes = self._codes(step.shared, partial, add=False)
        if step.shared or not len(area):
            found, slots = area.probe(codes, partial.start, partial.end)
            return test.passed(self._pairs(partial, step, area, found, slots))
        kept: list[tuple[Ints, Ints]] = []
        for found, slots in area.probe_in_pieces(codes, partial.start, partial.end):
            passed = test.passing(self._pairs(partial, step, area, found, slots))
            kept.append((found[passed], slots[passed]))
        found, slots = map(np.concatenate, zip(*kept, strict=True))
        return self._pairs(partial, step, area, found, slots)

    def _pairs(
        self, partial: Partial, step: JoinStep, area: Area, found: Ints, slots: Ints
    ) -> Partial:
        mine = partial.take(found)
        theirs = self._sides[step.port].bound(area, slots, step.added)
        return Partial(
            mine.columns | theirs.columns,
            mine.codes | theirs.codes,
            np.maximum(mine.start, theirs.start),
            np.minimum(mine.end, theirs.end),
            mine.weight * theirs.weight,
        )

    def _codes(self, shared: tuple[int, ...], rows: Partial, add: bool) -> Ints:
        """One code for the codes of several classes."""
        if not shared:
            return np.zeros(len(rows), np.int64)
        if len(shared) == 1:
            return rows.codes[shared[0]]
        columns = [pa.array(rows.codes[number]) for number in shared]
        return self._compounds[shared].encode(columns, len(rows), add)

    # --- what is kept ----------------------------------------------------------------------------

    def _keep(self, port: int, new: Partial) -> None:
        side = self._sides[port]
        needed = np.flatnonzero(new.end > side.expired)
        if len(needed) < len(new):
            new = new.take(needed)
        for shared, area in side.areas.items():
            self._insert(side, area, shared, new)

    def _insert(self, side: Side, area: Area, shared: tuple[int, ...], new: Partial) -> None:
        area.insert(self._codes(shared, new, add=True), side.stored(new))

    def _expire(self) -> None:
        """Drop elements that no new element of another input can join with."""
        for port, side in enumerate(self._sides):
            others = (f for other, f in enumerate(self._frontiers.each) if other != port)
            side.expired = min(others, default=INFINITY)
            for area in side.areas.values():
                area.expire(side.expired)

    def _forget(self) -> None:
        """Drop the keys that no element has, once they are the majority."""
        spaces = [*self._spaces, *self._compounds.values()]
        if max((space.count for space in spaces), default=0) > 2 * self.rows + 1024:
            touched = self.touched
            saved = self._elements()
            self._open()
            self._take_back(saved)
            self._touched_before = touched - self._scanned

    @property
    def rows(self) -> int:
        return sum(len(side.kept) for side in self._sides) + sum(
            len(batch) for batches in self._new for batch in batches
        )

    @property
    def nbytes(self) -> int:
        areas = sum(area.nbytes for side in self._sides for area in side.areas.values())
        spaces = [*self._spaces, *self._compounds.values()]
        waiting = [array.nbytes for bs in self._new for b in bs for array in b.columns]
        return int(areas + sum(space.nbytes for space in spaces) + sum(waiting))

    @property
    def touched(self) -> int:
        """How many elements were examined."""
        areas = sum(area.touched for side in self._sides for area in side.areas.values())
        return areas + self._scanned + self._touched_before

    # --- saving ----------------------------------------------------------------------------------

    def _elements(self) -> list[State]:
        """The elements of each input, without their codes."""
        saved = []
        for side in self._sides:
            rows = side.kept.rows(side.kept.slots())[: side.width]
            batch = Batch(rows, *side.kept.times(side.kept.slots()), NEVER)
            saved.append({"batch": batch.save(), "expired": side.expired})
        return saved

    def _take_back(self, saved: Sequence[State]) -> None:
        for side, elements in zip(self._sides, saved, strict=True):
            self._keep(side.port, side.coded(Batch.restored(elements["batch"]), self._spaces))
            side.expired = elements["expired"]

    def save(self) -> State:
        return {
            "elements": self._elements(),
            "new": [[batch.save() for batch in each] for each in self._new],
            "frontiers": self._frontiers.save(),
            "evaluated": self._evaluated,
        }

    def restore(self, state: State) -> None:
        self._take_back(state["elements"])
        self._new = [[Batch.restored(saved) for saved in each] for each in state["new"]]
        self._frontiers.restore(state["frontiers"])
        self._evaluated = state["evaluated"]
