"""A semi-join on a comparison with the only row of its right input, as in `HAVING n >= (SELECT …)`.

*Meaning*: that of `SemiJoin`, for θ = (x < y), or another order, where right(t) has at most one row
at every t.
*State*: the left rows at a gate, grouped by x; the distinct values of x in order; left rows and
changes of y that are ahead of the other input.
*Form* and *pattern*: as for any semi-join.
*Cost*: an event per start and end of a left row, a binary search per change of y, and the rows
whose x it crosses: those whose result changes. Other rows are not examined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from millstream.logical.expressions import Call, Column, Expression, walk
from millstream.logical.plan import Schema
from millstream.model.arrays import gather, validity
from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch, Columns, Ints, State, merged
from millstream.physical.events.gate import Gate, Passed
from millstream.physical.events.netting import netted
from millstream.physical.events.settling import Pieces
from millstream.physical.events.sweep import Sweep
from millstream.physical.expressions.evaluation import Evaluation
from millstream.physical.kernels.positions import positions
from millstream.physical.operator import Context, Frontiers, Operator, Pattern, PhysicalPlan
from millstream.physical.operators.pointwise import Form
from millstream.physical.ordering import has_one_word, order_words
from millstream.physical.state.keys import KeySpace
from millstream.physical.state.thresholds import Comparison, Thresholds
from millstream.physical.state.waiting import Waiting

_MANY = 1 << 16  # waiting rows above which netting pays off
_TURNED: dict[str, Comparison] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compared(
    condition: Expression | None, left: Schema, right: Schema
) -> tuple[Expression, Comparison, Expression] | None:
    """The parts of a condition that compares a left value with a right one by order; None for other
    conditions."""
    if not isinstance(condition, Call) or condition.function not in _TURNED:
        return None
    one, other = condition.arguments
    if one.type != other.type or not has_one_word(one.type):
        return None
    if _reads(one, left) and _reads(other, right):
        return one, _TURNED[_TURNED[condition.function]], other
    if _reads(one, right) and _reads(other, left):
        return other, _TURNED[condition.function], one
    return None


def _reads(expression: Expression, schema: Schema) -> bool:
    columns = {part.key for part in walk(expression) if isinstance(part, Column)}
    return bool(columns) and columns <= {field.key for field in schema}


def _known(values: pa.Array) -> Ints:
    """The positions of values that are not NULL."""
    valid = validity(values)
    return np.arange(len(values)) if valid is None else positions(valid)


class ComparingJoin(Protocol):
    """The semi-join for which the operator is opened."""

    @property
    def left(self) -> PhysicalPlan: ...

    @property
    def right(self) -> PhysicalPlan: ...

    @property
    def condition(self) -> Expression | None: ...

    @property
    def anti(self) -> bool: ...

    @property
    def form(self) -> Form: ...

    @property
    def final(self) -> bool: ...


class ThresholdOperator(Operator):
    def __init__(self, node: ComparingJoin, context: Context) -> None:
        parts = compared(node.condition, node.left.schema, node.right.schema)
        assert parts is not None, node.condition
        value, comparison, threshold = parts
        self._node = node
        self._signed = [side.pattern is Pattern.STRICT for side in (node.left, node.right)]
        self._values = [
            Evaluation([expression], side.schema, context)
            for expression, side in zip((value, threshold), (node.left, node.right), strict=True)
        ]
        self._keys = KeySpace([value.type])  # values, without NULL
        self._words = np.empty(64, np.int64)  # by code
        self._fresh = 0  # the first code not sorted in yet
        self._sorted = Thresholds(comparison)
        self._moves = Sweep(ordered=False, words=1)  # of the threshold
        self._count = 0  # valid right rows: the threshold is known if it is 1
        self._threshold = 0  # the sum of the right rows
        self._frontiers = Frontiers(2)
        self._waiting = Waiting()  # left rows that are not decided yet
        self._most = _MANY  # how many may wait before they are netted
        self._nothing = Batch.empty(node.left.types, NEVER)
        self._pieces = Pieces(hold=not node.final)
        self._gate = Gate(
            node.left.types,
            shared=self._signed[0],
            grouped=True,
            covered_passes=not node.anti,
            ordered=[node.left.pattern is Pattern.WEAKEST, False],
        )

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._forget()
        batch = netted(batch) if self._signed[port] else batch
        before = self._frontiers.least
        frontier = self._frontiers.advance(port, batch.frontier)
        if port == 1:
            self._note_moves(batch)
            batch = self._nothing
        if frontier == before:
            self._wait(batch)
            return []
        ready = self._waiting.released(batch.up_to(frontier))
        self._gate.add(ready, self._codes(self._value(0, ready)) + 1)
        self._cover(frontier)
        passed = self._gate.due(frontier)
        if self._node.form is Form.SIGNED:
            return [self._gate.hybrid(passed, frontier)]
        return [self._settled(passed, frontier)]

    def _wait(self, batch: Batch) -> None:
        """Rows wait unchanged until the threshold is known; if many wait, they are netted across
        batches."""
        self._waiting.add(batch)
        if self._signed[0] and len(self._waiting) >= self._most:
            self._waiting.add(netted(merged(self._waiting.emptied())))
            self._most = max(_MANY, 2 * len(self._waiting))

    def _value(self, port: int, batch: Batch) -> pa.Array:
        """The compared value of each row."""
        (values,), failed = self._values[port].over(batch.columns, len(batch))
        assert failed is None, "compared values cannot fail"
        return values

    def _codes(self, values: pa.Array) -> Ints:
        """The code of each value, -1 for NULL; adds unknown values."""
        if values.null_count:
            index = _known(values)
            codes = np.full(len(values), -1)
            codes[index] = self._codes(gather(values, index))
            return codes
        known = self._keys.count
        codes = self._keys.encode([values], len(values))
        if self._keys.count > known:
            if len(self._words) < self._keys.count:
                more = np.empty(max(self._keys.count, 2 * len(self._words)), np.int64)
                more[:known] = self._words[:known]
                self._words = more
            (words,) = order_words(values)
            fresh = np.flatnonzero(codes >= known)
            self._words[codes[fresh]] = words[fresh]
        return codes

    def _note_moves(self, batch: Batch) -> None:
        """A row with a NULL value counts as absent: nothing compares with it."""
        values = self._value(1, batch)
        if values.null_count:
            index = _known(values)
            values, batch = gather(values, index), batch.take(index)
        self._moves.add(np.zeros(len(batch), np.int64), batch, [*order_words(values)])

    def _cover(self, frontier: int) -> None:
        """Tell the gate for which values the comparison holds, at every instant up to the
        frontier."""
        fresh = np.arange(self._fresh, self._keys.count)
        words = self._words[fresh]
        holds = self._sorted.holds(words, self._threshold, self._count == 1)
        self._gate.begin_covered(fresh[holds] + 1)
        self._sorted.add(words, fresh)
        self._fresh = self._keys.count
        steps = self._moves.due(frontier, 1)
        if not len(steps):
            return
        # At most one row is valid at an instant, so sums of rows are rows; intermediate sums may
        # wrap around.
        changes = np.add.reduceat(steps.delta, steps.bounds[:-1])
        sums = np.add.reduceat(steps.delta * steps.words[0], steps.bounds[:-1])
        counts = np.cumsum(np.append(self._count, changes))
        thresholds = np.cumsum(np.append(self._threshold, sums))
        self._count, self._threshold = int(counts[-1]), int(thresholds[-1])
        crossed = self._sorted.crossed(thresholds, counts == 1)
        start = steps.step_time[crossed.move]
        end = np.full(len(start), INFINITY)
        self._gate.cover(crossed.code + 1, Batch(Columns([]), start, end, crossed.change, frontier))

    def _settled(self, passed: Passed, frontier: int) -> Batch:
        pieces = [self._pieces.settle(passed.row, passed.time, passed.change)]
        if frontier == INFINITY:
            pieces.append(self._pieces.end())
        rows, starts, ends, weights = map(np.concatenate, zip(*pieces, strict=True))
        if not self._node.final:
            frontier = min(frontier, self._pieces.oldest)
        return Batch(self._gate.rows(rows), starts, ends, weights, frontier)

    def _forget(self) -> None:
        """Drop unused values and rows, after the last output has been read."""
        if self._keys.is_stale:
            live = np.zeros(self._keys.count + 1, np.bool_)
            live[0] = True
            self._gate.mark_live(live, covered=False)
            groups = np.flatnonzero(live)
            codes = groups[1:] - 1
            self._fresh = int(np.searchsorted(codes, self._fresh))
            renumbered = self._keys.keep(codes)
            self._words = self._words[codes]
            self._sorted.renumber(renumbered)
            self._gate.renumber_groups(groups, np.append(np.append(0, renumbered[:-1] + 1), 0))
        rows = self._gate.forget()
        if rows is not None:
            self._pieces.renumber(rows)

    @property
    def rows(self) -> int:
        return self._gate.size + len(self._sorted) + len(self._moves) + len(self._waiting)

    @property
    def nbytes(self) -> int:
        parts = (self._gate, self._keys, self._sorted, self._moves, self._waiting, self._pieces)
        return self._words.nbytes + sum(part.nbytes for part in parts)

    @property
    def touched(self) -> int:
        return self._gate.touched + self._moves.touched

    def save(self) -> State:
        return {
            "keys": self._keys.save(),
            "words": self._words[: self._keys.count].copy(),
            "fresh": self._fresh,
            "sorted": self._sorted.save(),
            "moves": self._moves.save(),
            "threshold": [self._count, self._threshold],
            "frontiers": self._frontiers.save(),
            "waiting": self._waiting.save(),
            "pieces": self._pieces.save(),
            "gate": self._gate.save(),
        }

    def restore(self, state: State) -> None:
        self._keys.restore(state["keys"])
        self._words, self._fresh = state["words"], state["fresh"]
        self._sorted.restore(state["sorted"])
        self._moves.restore(state["moves"])
        self._count, self._threshold = state["threshold"]
        self._frontiers.restore(state["frontiers"])
        self._waiting.restore(state["waiting"])
        self._pieces.restore(state["pieces"])
        self._gate.restore(state["gate"])
