"""Pointwise: how often a row is in the output depends on how often it is in the inputs.

*Meaning*: for every t and row e, out(t)(e) = f(left(t)(e), right(t)(e)), with the f of the function
below. DISTINCT, EXCEPT, INTERSECT and their kin, and with f = identity the two changes of form:
signed elements settled to intervals (*settle*) and intervals turned to signed elements (*expire*,
N's EXPIRE).
*State*: each different row with its counts, as long as it is in an input or known to come.
*Form*: SIGNED gives each change of the level when the frontier has passed it. INTERVALS waits for
the end of each piece; a piece that stays open then holds the frontier back, unless the operator is
the last one (`final`).
*Pattern*: STRICT for signed elements, WEAK for intervals.
*Cost*: an event for each start and each end. *Source*: K §11.5.5, §11.5.6; N §5; G5 §2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from millstream.logical.plan import Schema
from millstream.logical.time import INFINITY
from millstream.physical.arrays import larger
from millstream.physical.batch import Batch, Ints, State
from millstream.physical.kernels.steps import levels_before
from millstream.physical.multisets import Multisets
from millstream.physical.operator import Context, Frontiers, Operator, Pattern, PhysicalPlan
from millstream.physical.settling import Pieces


class Function(Enum):
    """Of the counts of a row in the inputs."""

    IDENTITY = "identity"
    DISTINCT = "distinct"
    DIFFERENCE = "difference"
    STRICT_DIFFERENCE = "strict difference"
    INTERSECTION = "intersection"
    MAX_UNION = "max-union"


_LEVELS: dict[Function, Callable[[Ints], Ints]] = {
    Function.IDENTITY: lambda n: n[0],
    Function.DISTINCT: lambda n: np.minimum(n[0], 1),
    Function.DIFFERENCE: lambda n: np.maximum(n[0] - n[1], 0),
    Function.STRICT_DIFFERENCE: lambda n: np.where(n[1] > 0, 0, n[0]),
    Function.INTERSECTION: lambda n: np.minimum(n[0], n[1]),
    Function.MAX_UNION: lambda n: np.maximum(n[0], n[1]),
}


class Form(Enum):
    """How an operator that is not linear gives its output."""

    SIGNED = "signed"
    INTERVALS = "intervals"


@dataclass(frozen=True)
class Pointwise(PhysicalPlan):
    sources: tuple[PhysicalPlan, ...]
    function: Function
    columns: Schema
    form: Form = Form.SIGNED
    final: bool = False
    once: tuple[bool, ...] = (False, False)  # whether a row counts once however often it is there

    @property
    def inputs(self) -> tuple[PhysicalPlan, ...]:
        return self.sources

    @cached_property
    def schema(self) -> Schema:
        return self.columns

    @cached_property
    def pattern(self) -> Pattern:
        return Pattern.STRICT if self.form is Form.SIGNED else Pattern.WEAK

    @property
    def state(self) -> str:
        return "keyed"

    def open(self, context: Context) -> Operator:
        return PointwiseOperator(self)


class PointwiseOperator(Operator):
    def __init__(self, node: Pointwise) -> None:
        ordered = [source.pattern is Pattern.WEAKEST for source in node.sources]
        self._node = node
        self._level = _LEVELS[node.function]
        self._frontiers = Frontiers(len(ordered))
        self._multisets = Multisets(node.types, ordered)
        self._levels = np.zeros(64, np.int64)  # of the output, by code
        self._pieces = Pieces(hold=not node.final)

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._forget()
        self._multisets.add(port, batch)
        before = self._frontiers.least
        frontier = self._frontiers.advance(port, batch.frontier)
        if frontier == before:
            return []
        steps, counts = self._multisets.due(frontier)
        after = self._level(self._counted(counts))
        codes, times = steps.step_code, steps.step_time
        self._make_room()
        changed = levels_before(codes, after, self._levels)
        if self._node.form is Form.SIGNED:
            return [self._signed(codes, times, after - changed, frontier)]
        return [self._settled(codes, times, changed, after, frontier)]

    def _counted(self, counts: Ints) -> Ints:
        if any(self._node.once):
            limits = [1 if once else INFINITY for once in self._node.once]
            counts = np.minimum(counts, np.array(limits[: len(counts)])[:, None])
        return counts

    def _signed(self, codes: Ints, times: Ints, changes: Ints, frontier: int) -> Batch:
        (index,) = np.nonzero(changes)
        codes = codes[index]
        ends = np.full(len(index), INFINITY)
        columns = self._multisets.rows(codes)
        return Batch(columns, times[index], ends, changes[index], frontier)

    def _settled(self, codes: Ints, times: Ints, before: Ints, after: Ints, frontier: int) -> Batch:
        pieces = [self._pieces.settle(codes, times, before, after)]
        if frontier == INFINITY:
            pieces.append(self._pieces.end())
        rows, starts, ends, weights = map(np.concatenate, zip(*pieces, strict=True))
        if not self._node.final:
            frontier = min(frontier, self._pieces.oldest)
        return Batch(self._multisets.rows(rows), starts, ends, weights, frontier)

    def _make_room(self) -> None:
        count = self._multisets.keys.count
        if len(self._levels) < count:
            more = larger(len(self._levels), count) - len(self._levels)
            self._levels = np.append(self._levels, np.zeros(more, np.int64))

    def _forget(self) -> None:
        """Before the next batch: then what was given has been read."""
        renumbered = self._multisets.forget()
        if renumbered is not None:
            self._levels = np.append(self._levels, np.zeros(len(renumbered), np.int64))
            kept = np.flatnonzero(renumbered[:-1] >= 0)
            self._levels = np.append(self._levels[kept], np.zeros(64, np.int64))
            self._pieces.renumber(renumbered)

    @property
    def rows(self) -> int:
        return self._multisets.size

    @property
    def nbytes(self) -> int:
        return self._multisets.nbytes + self._levels.nbytes + self._pieces.nbytes

    @property
    def touched(self) -> int:
        return self._multisets.touched

    def save(self) -> State:
        return {
            "frontiers": self._frontiers.save(),
            "multisets": self._multisets.save(),
            "levels": self._levels.copy(),
            "pieces": self._pieces.save(),
        }

    def restore(self, state: State) -> None:
        self._frontiers.restore(state["frontiers"])
        self._multisets.restore(state["multisets"])
        self._levels = state["levels"]
        self._pieces.restore(state["pieces"])
