"""Pointwise: the multiplicity of a row in the output is a function of that in the inputs.

*Meaning*: for every t and row e, out(t)(e) = f(left(t)(e), right(t)(e)), with the f of the function
below. DISTINCT, EXCEPT, INTERSECT and similar, and with f = identity the two changes of form:
signed elements settled to intervals (*settle*) and intervals converted to signed elements
(*expire*, N's EXPIRE).
*State*: each distinct row with its counts, as long as it is in an input or known to come; for
*expire*, the known future of the rows.
*Form*: SIGNED emits each change of the level when the frontier has passed it. INTERVALS waits for
the end of each piece; an open piece then holds the frontier back, unless the operator is the last
one (`final`).
*Pattern*: STRICT for signed elements, WEAK for intervals.
*Cost*: an event per start and end. *Source*: K §11.5.5, §11.5.6; N §5; G5 §2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from millstream.logical.plan import Schema
from millstream.model.time import INFINITY
from millstream.physical.batch import Batch, Ints, State
from millstream.physical.events.net_changes import NetOperator
from millstream.physical.events.settling import Pieces
from millstream.physical.kernels import levels
from millstream.physical.operator import Context, Frontiers, Operator, Pattern, PhysicalPlan
from millstream.physical.state.multisets import Multisets


class PointwiseFunction(Enum):
    """The function of the counts of a row in the inputs."""

    IDENTITY = "identity"
    DISTINCT = "distinct"
    DIFFERENCE = "difference"
    STRICT_DIFFERENCE = "strict difference"
    INTERSECTION = "intersection"
    MAX_UNION = "max-union"


_NUMBERS = {
    PointwiseFunction.IDENTITY: levels.IDENTITY,
    PointwiseFunction.DISTINCT: levels.DISTINCT,
    PointwiseFunction.DIFFERENCE: levels.DIFFERENCE,
    PointwiseFunction.STRICT_DIFFERENCE: levels.STRICT_DIFFERENCE,
    PointwiseFunction.INTERSECTION: levels.INTERSECTION,
    PointwiseFunction.MAX_UNION: levels.MAX_UNION,
}


class Form(Enum):
    """How a nonlinear operator emits its output."""

    SIGNED = "signed"
    INTERVALS = "intervals"


@dataclass(frozen=True)
class Pointwise(PhysicalPlan):
    sources: tuple[PhysicalPlan, ...]
    function: PointwiseFunction
    columns: Schema
    form: Form = Form.SIGNED
    final: bool = False
    once: tuple[bool, ...] = (False, False)  # whether a row counts at most once

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
    def expires(self) -> bool:
        """Whether it only converts intervals to signed elements."""
        return self.function is PointwiseFunction.IDENTITY and self.form is Form.SIGNED

    @property
    def state(self) -> str:
        return "agenda" if self.expires else "keyed"

    def open(self, context: Context) -> Operator:
        return ExpireOperator(self) if self.expires else PointwiseOperator(self)


class ExpireOperator(NetOperator):
    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        if batch.frontier <= self._frontier:
            self._net.add(batch)
            return []
        self._frontier = batch.frontier
        rows, start, net = self._net.due(batch)
        return [Batch(rows, start, np.full(len(start), INFINITY), net, batch.frontier)]


class PointwiseOperator(Operator):
    def __init__(self, node: Pointwise) -> None:
        ordered = [source.pattern is Pattern.WEAKEST for source in node.sources]
        self._node = node
        self._frontiers = Frontiers(len(ordered))
        self._multisets = Multisets(node.types, ordered)
        self._function = _NUMBERS[node.function]
        limits = [1 if once else INFINITY for once in node.once]
        self._most = np.array(limits[: len(ordered)])
        self._pieces = Pieces(hold=not node.final)

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._forget()
        self._multisets.add(port, batch)
        before = self._frontiers.least
        frontier = self._frontiers.advance(port, batch.frontier)
        if frontier == before:
            return []
        changed = self._multisets.changed(frontier, self._function, self._most)
        if self._node.form is Form.SIGNED:
            return [self._signed(*changed, frontier)]
        return [self._settled(*changed, frontier)]

    def _signed(self, codes: Ints, times: Ints, changes: Ints, frontier: int) -> Batch:
        ends = np.full(len(codes), INFINITY)
        return Batch(self._multisets.rows(codes), times, ends, changes, frontier)

    def _settled(self, codes: Ints, times: Ints, changes: Ints, frontier: int) -> Batch:
        pieces = [self._pieces.settle(codes, times, changes)]
        if frontier == INFINITY:
            pieces.append(self._pieces.end())
        rows, starts, ends, weights = map(np.concatenate, zip(*pieces, strict=True))
        if not self._node.final:
            frontier = min(frontier, self._pieces.oldest)
        return Batch(self._multisets.rows(rows), starts, ends, weights, frontier)

    def _forget(self) -> None:
        """Called before the next batch, when the last output has been read."""
        renumbered = self._multisets.forget()
        if renumbered is not None:
            self._pieces.renumber(renumbered)

    @property
    def rows(self) -> int:
        return self._multisets.size

    @property
    def nbytes(self) -> int:
        return self._multisets.nbytes + self._pieces.nbytes

    @property
    def touched(self) -> int:
        return self._multisets.touched

    def save(self) -> State:
        return {
            "frontiers": self._frontiers.save(),
            "multisets": self._multisets.save(),
            "pieces": self._pieces.save(),
        }

    def restore(self, state: State) -> None:
        self._frontiers.restore(state["frontiers"])
        self._multisets.restore(state["multisets"])
        self._pieces.restore(state["pieces"])
