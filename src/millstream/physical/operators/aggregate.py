"""Aggregate: one row per group, with the values of the aggregates over its rows.

*Meaning*: for every t, out(t) = one row for each group of in(t); without keys one row at every t,
even over no rows. With `last`, the aggregates cover the last rows of each group up to t, as with a
count window below.
*State*: per group its key, its accumulators and its current row; per row that will leave, the words
that its accumulators need to remove it.
*Form*: SIGNED emits, once the frontier has passed an instant, the old row of each changed group
with weight -1 and the new one with +1. INTERVALS emits the old row when it has ended; an idle group
then holds the frontier back, unless the operator is the last one (`final`).
*Pattern*: STRICT, or as intervals WEAK, and without keys WEAKEST (K table 12.1).
*Cost*: an event per start and end, whatever the window's size. *Source*: K §11.5.7, §11.5.8; N
algorithm 3 (our reading: the row of an emptied group is retracted).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from millstream.logical.expressions import Expression
from millstream.logical.plan import Named, Schema
from millstream.model.arrays import concat, gather, larger
from millstream.model.time import INFINITY
from millstream.physical.accumulators import Answer
from millstream.physical.accumulators.calls import Calls, empty_value
from millstream.physical.batch import NEVER, Batch, Columns, Ints, Mask, State, ones
from millstream.physical.events.open_starts import OpenStarts
from millstream.physical.events.sweep import Exchanges, KeySteps, Sweep
from millstream.physical.expressions.evaluation import Evaluation
from millstream.physical.kernels.positions import positions
from millstream.physical.kernels.rows_of_groups import ended_rows, rows_before, signed_rows
from millstream.physical.kernels.steps import running_counts
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan, plain_rows
from millstream.physical.operators.pointwise import Form
from millstream.physical.state.key_rows import KeyRows
from millstream.physical.state.keys import KeySpace, differs
from millstream.physical.state.last_rows import LastRows
from millstream.physical.state.store import RowStore


@dataclass(frozen=True)
class Last:
    """The last `rows` rows; those of one instant are in the given order."""

    rows: int
    order: tuple[Expression, ...]


@dataclass(frozen=True)
class Aggregate(PhysicalPlan):
    input: PhysicalPlan
    keys: tuple[Named, ...]
    aggregates: tuple[Named, ...]
    form: Form = Form.SIGNED
    final: bool = False
    last: Last | None = None

    @cached_property
    def schema(self) -> Schema:
        return tuple(output.field for output in self.keys + self.aggregates)

    @cached_property
    def pattern(self) -> Pattern:
        if self.form is Form.SIGNED:
            return Pattern.STRICT
        return Pattern.WEAK if self.keys else Pattern.WEAKEST  # rows follow each other

    @property
    def state(self) -> str:
        if self.last is not None:
            return "accumulators, queues by key" if self.keys else "accumulators, queue"
        queue = self.input.pattern is Pattern.WEAKEST
        return "accumulators, queue" if queue else "accumulators, calendar"

    @property
    def is_fifo(self) -> bool:
        """Whether rows leave in the order in which they came."""
        return self.last is not None or self.input.pattern is Pattern.WEAKEST

    @property
    def is_lasting(self) -> bool:
        """Whether no row ever leaves."""
        return self.last is None and self.input.pattern is Pattern.MONOTONIC

    def open(self, context: Context) -> Operator:
        return AggregateOperator(self, context)


class AggregateOperator(Operator):
    def __init__(self, node: Aggregate, context: Context) -> None:
        self._node = node
        self._context = context
        calls = [named.expression for named in node.aggregates]
        self._calls = Calls(calls, context, fifo=node.is_fifo, lasting=node.is_lasting)
        keys = [key.expression for key in node.keys]
        order = () if node.last is None else node.last.order
        self._ordering = slice(len(keys) + len(self._calls.expressions), None)
        evaluated = [*keys, *self._calls.expressions, *order]
        self._values = Evaluation(evaluated, node.input.schema, context)
        self._key_types = [key.type for key in keys]
        self._keys = KeySpace(self._key_types)
        self._key_rows = KeyRows(self._keys)
        self._sweep: Sweep | LastRows
        if node.last is None:
            self._sweep = Sweep(node.is_fifo, self._calls.words)
        else:
            self._sweep = LastRows(node.last.rows, self._calls.words, bool(keys))
        self._counts = np.zeros(0, np.int64)  # rows of each group
        self._present = np.zeros(0, np.bool_)  # whether a group has a row in the output
        self._since = np.zeros(0, np.int64)  # the start of that row
        holds = node.form is Form.INTERVALS and not node.final
        self._starts = OpenStarts() if holds else None  # of the rows in the output
        self._answer = RowStore([named.expression.type for named in node.aggregates])
        self._nothing = Batch.empty(node.types, NEVER)
        self._frontier = NEVER
        self._begun = False

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._forget()
        batch, codes, words = self._coded(batch)
        if batch.frontier <= max(self._frontier, self._silence):
            self._sweep.add(codes, batch, words)
            return []
        self._frontier = batch.frontier
        steps = self._sweep.swept(codes, batch, words, self._keys.count)
        given = [] if self._begun or self._node.keys else [self._begin(steps)]
        given.append(self._step(steps) if len(steps) else self._nothing.up_to(self._reached))
        if batch.frontier == INFINITY and self._node.form is Form.INTERVALS:
            given.append(self._end())
        self._calls.tidy(self._sweep)
        return given

    @property
    def _reached(self) -> int:
        """The frontier of the output."""
        return self._frontier if self._starts is None else min(self._starts.least, self._frontier)

    @property
    def _silence(self) -> int:
        """Until when there is no output: without keys, until the first input of the query is known,
        or all inputs have ended."""
        if self._begun or self._node.keys:
            return NEVER
        return min(self._context.beginning, INFINITY - 1)

    def _begin(self, steps: KeySteps | Exchanges) -> Batch:
        """Without keys there is a row over no input, from before time begins until the first step;
        if that is at the beginning, the row matters only for operators that look back beyond it."""
        self._begun = True
        self._keys.encode((), 1)
        self._make_room()
        self._answer.put(slice(0, 1), [empty_value(n.expression) for n in self._node.aggregates])
        self._present[0], self._since[0] = True, NEVER
        self._note_starts()
        if self._node.form is Form.INTERVALS:
            return self._nothing
        first = np.zeros(1, np.int64)
        row = Columns.of(self._answer.rows(first))  # gather now: the first step changes it
        end = INFINITY
        if len(steps) and steps.step_time[0] == self._context.beginning:
            end, self._present[0] = self._context.beginning, False
        return Batch(row, first + NEVER, first + end, first + 1, NEVER)

    def _coded(self, batch: Batch) -> tuple[Batch, Ints, Sequence[Ints]]:
        """A batch without the failed rows, the groups of its rows, and their words. Its columns are
        the sort columns, if order matters."""
        if not len(batch):
            return batch, batch.start, ()
        values, batch = self._values.kept(batch)
        if self._node.last is not None:
            order = values[self._ordering]
            batch = Batch(order, batch.start, batch.end, batch.weight, batch.frontier)
        known, width = self._keys.count, len(self._key_types)
        codes = self._keys.encode(values[:width], len(batch))
        if self._keys.count > known:
            self._make_room()
            fresh = (codes >= known).nonzero()[0]
            self._key_rows.put(codes[fresh], values[:width].take(fresh))
        return batch, codes, self._calls.encode(values[width : self._ordering.start], len(batch))

    def _make_room(self) -> None:
        old, count = len(self._present), self._keys.count
        if old < count:
            self._resize(np.arange(old), larger(old, max(64, count)))

    def _resize(self, old: Ints, capacity: int) -> None:
        """Group i was old[i]."""
        self._calls.remap(old, capacity, self._sweep)
        self._key_rows.move(old, capacity)
        self._answer.move(old, capacity)
        more = np.zeros(capacity - len(old), np.int64)
        self._counts = np.append(self._counts[old], more)
        self._present = np.append(self._present[old], more != 0)
        self._since = np.append(self._since[old], more)

    def _forget(self) -> None:
        if not self._keys.is_stale:
            return
        needed = self._present[: self._keys.count] | (self._counts[: self._keys.count] != 0)
        needed[self._sweep.live()] = True
        kept = np.flatnonzero(needed)
        renumbered = self._keys.keep(kept)
        self._sweep.renumber(renumbered)
        self._resize(kept, len(kept) * 3 // 2 + 1024)  # room until the next time
        self._key_rows.vacuum(np.arange(len(kept)))
        self._answer.vacuum(np.flatnonzero(self._present))

    # --- the steps of the groups -----------------------------------------------------------------

    def _step(self, steps: KeySteps | Exchanges) -> Batch:
        """The rows that change: each step's row compared with the previous one."""
        answers = self._calls.step(steps)
        if isinstance(steps, KeySteps) and self._node.keys:
            return self._of_groups(steps, answers).up_to(self._reached)
        return self._of_the_only_group(steps, answers).up_to(self._reached)

    def _of_groups(self, steps: KeySteps, answers: Sequence[Answer]) -> Batch:
        codes = steps.step_code
        counts = running_counts(steps.code, steps.delta, steps.bounds, self._counts)
        has_row = self._succeeds(counts > 0, codes, answers)
        before, had_row, last = rows_before(codes, has_row, self._present)
        groups = codes[last]
        changed, both = had_row != has_row, had_row & has_row
        columns = []  # the rows after each step, then the groups' previous rows
        for answer, stored in zip(answers, self._answer.rows(groups), strict=True):
            column = concat([answer.values, stored])
            changed |= both & differs(column, slice(len(codes)), before)
            columns.append(column)
        final = last if len(last) < len(codes) else None
        self._answer.put(groups, [gather(answer.values, final) for answer in answers])
        told = codes, steps.step_time, changed, before, had_row
        if self._node.form is Form.INTERVALS:
            group, row, start, end = ended_rows(*told, self._since)
            if self._starts is not None:
                self._starts.change(steps.step_time[changed & has_row], start)
            weight = ones(len(group))
        else:
            group, row, start, weight = signed_rows(*told, has_row)
            end = np.full(len(group), INFINITY)
        values = Columns.gathered(columns, row)
        return Batch(self._key_rows.rows(group) + values, start, end, weight, self._frontier)

    def _of_the_only_group(self, steps: KeySteps | Exchanges, answers: Sequence[Answer]) -> Batch:
        """Without keys, rows follow each other: row i is the one before step i."""
        length, times = len(steps), steps.step_time
        first = np.zeros(1, np.int64)
        columns = [
            concat([store.take(first), answer.values])
            if answer.with_first is None
            else answer.with_first
            for answer, store in zip(answers, self._answer.columns, strict=True)
        ]
        self._answer.put(slice(0, 1), [answer.values.slice(length - 1) for answer in answers])
        each = [differs(column, slice(1, None), slice(length)) for column in columns]
        changed = reduce(np.logical_or, each) if each else np.zeros(length, np.bool_)
        had_row = has_row = np.ones(length, np.bool_)
        if not self._present[0] or any(answer.failed is not None for answer in answers):
            has_row = self._succeeds(has_row, np.zeros(length, np.int64), answers)
            had_row = np.append(self._present[0], has_row[:-1])
            changed = (had_row != has_row) | (changed & had_row & has_row)
            self._present[0] = has_row[-1]
        at = None if np.count_nonzero(changed) == length else positions(changed)
        if at is not None:
            had_row, has_row, times = had_row[at], has_row[at], times[at]
        if self._node.form is Form.INTERVALS:
            if at is None:  # contiguous already
                start = steps.times_before(self._since[0])
                values = Columns.of(column.slice(0, length) for column in columns)
            else:
                start = np.concatenate([self._since[:1], times])[:-1]
                values = Columns.gathered(columns, at)
            end, weight, shown = times, ones(len(times)), had_row
            if len(times):
                self._since[0] = times[-1]
            if self._starts is not None:
                self._starts.change(times[has_row], start[had_row])
        else:
            at = np.arange(length) if at is None else at
            row, start = np.stack([at, at + 1], axis=1).ravel(), np.repeat(times, 2)
            end, weight = np.full(len(row), INFINITY), np.tile(np.array([-1, 1]), len(at))
            shown = np.stack([had_row, has_row], axis=1).ravel()
            values = Columns.gathered(columns, row)
        return Batch(values, start, end, weight, self._frontier).where(shown)

    def _succeeds(self, has_row: Mask, codes: Ints, answers: Sequence[Answer]) -> Mask:
        """Which rows exist, because their aggregates could be computed."""
        for answer in answers:
            if answer.failed is not None:
                for place, message in answer.messages.items():
                    if has_row[place]:
                        key = self._key_rows.rows(codes[place : place + 1])
                        rows = plain_rows(key, self._key_types, np.zeros(1, np.int64))
                        self._context.fail(rows[0], message)
                has_row = has_row & ~answer.failed
        return has_row

    def _end(self) -> Batch:
        """At the end of time: the rows that never end."""
        codes = np.flatnonzero(self._present)
        rows = self._key_rows.rows(codes) + self._answer.rows(codes)
        self._present[codes] = False
        weight = np.ones(len(codes), np.int64)
        return Batch(rows, self._since[codes], weight * INFINITY, weight, INFINITY)

    def _note_starts(self) -> None:
        if self._starts is not None:
            starts = self._since[self._present]
            self._starts.add(starts, np.ones(len(starts), np.int64))

    @property
    def rows(self) -> int:
        return self._keys.count + len(self._sweep)

    @property
    def nbytes(self) -> int:
        own = self._counts.nbytes + self._present.nbytes + self._since.nbytes
        own += 0 if self._starts is None else self._starts.nbytes
        parts = (self._keys, self._key_rows, self._sweep, self._answer, self._calls)
        return own + sum(part.nbytes for part in parts)

    @property
    def touched(self) -> int:
        return self._sweep.touched

    def save(self) -> State:
        present = np.flatnonzero(self._present)
        return {
            "keys": self._keys.save(),
            "key_rows": self._key_rows.save(self._keys.count),
            "sweep": self._sweep.save(),
            "calls": self._calls.save(),
            "counts": self._counts.copy(),
            "present": self._present.copy(),
            "since": self._since.copy(),
            "answer": self._answer.save(present),
            "frontier": self._frontier,
            "begun": self._begun,
        }

    def restore(self, state: State) -> None:
        self._keys.restore(state["keys"])
        self._resize(np.empty(0, np.int64), len(state["present"]))
        self._key_rows.restore(state["key_rows"], self._keys.count)
        self._sweep.restore(state["sweep"])
        self._calls.restore(state["calls"])
        self._counts, self._present = state["counts"], state["present"]
        self._since, self._frontier = state["since"], state["frontier"]
        self._answer.restore(state["answer"], np.flatnonzero(self._present))
        self._begun = state["begun"]
        self._note_starts()
