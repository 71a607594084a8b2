"""OuterJoin: the pairs of a join, and the rows without a partner, padded with NULL.

*Meaning*: for every t, out(t) = join(t), and for each row of an outer input that has no partner in
the other input at t, that row beside NULLs. A partner for which the condition fails counts neither
as a partner nor as the lack of one.
*State*: that of a join, and a gate per outer input (see `SemiJoin`).
*Form*: rows are emitted when the frontier has passed them. *Pattern*: STRICT.
*Cost*: that of the join, and an event per start and end. *Source*: SQL; K §8.1 composes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from millstream.logical.expressions import Expression
from millstream.logical.plan import Schema
from millstream.physical.batch import Batch, Columns, State
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan
from millstream.physical.operators.join import JoinKey, Pairs
from millstream.physical.operators.semi_join import Gated, numbered


@dataclass(frozen=True)
class OuterJoin(PhysicalPlan):
    """`outer` says per input whether rows without a partner are emitted."""

    left: PhysicalPlan
    right: PhysicalPlan
    outer: tuple[bool, bool]
    columns: Schema
    keys: tuple[JoinKey, ...] = ()
    condition: Expression | None = None

    input_names = ("left", "right")

    @cached_property
    def schema(self) -> Schema:
        return self.columns

    @cached_property
    def pattern(self) -> Pattern:
        return Pattern.STRICT

    @property
    def state(self) -> str:
        return "areas, gate"

    def open(self, context: Context) -> Operator:
        return OuterJoinOperator(self, context)


class OuterJoinOperator(Operator):
    def __init__(self, node: OuterJoin, context: Context) -> None:
        self._types = [side.types for side in node.inputs]
        self._gated = Gated(node.inputs, node.keys, node.condition, context)
        for port in (0, 1):
            if node.outer[port]:
                self._gated.add_gate(port, covered_passes=False)

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        gated = self._gated
        gated.forget()
        before, joined = gated.frontier, []
        for each, ready in gated.ready(port, batch):
            pairs = self._pairs(each, ready) if gated.by_key else gated.take(each, ready)
            # Gather now: the other input changes the areas of these rows.
            joined += [self._joined(found, before).gathered() for found in pairs if len(found.mine)]
        frontier = gated.expire()
        if frontier == before:
            return joined
        return [*joined, *self._padded(frontier)]

    def _pairs(self, port: int, batch: Batch) -> list[Pairs]:
        """If keys decide, gates do not see pairs."""
        codes = self._gated.take_by_key(port, batch)
        own = numbered(batch, np.zeros(len(batch), np.int64))  # unused: gates go by key
        pairs = self._gated.sides.pairs(port, codes, own)
        self._gated.sides.keep(port, codes, own)
        return pairs

    def _joined(self, pairs: Pairs, frontier: int) -> Batch:
        """Without the numbers of the rows."""
        left = len(self._types[0])
        columns = pairs.columns[:left] + pairs.columns[left + 1 : -1]
        return Batch(columns, pairs.start, pairs.end, pairs.weight, frontier)

    def _padded(self, frontier: int) -> Iterator[Batch]:
        for port, gate in enumerate(self._gated.gates):
            if gate is None:
                continue
            batch = gate.hybrid(gate.due(frontier), frontier)
            nulls = Columns.of(pa.nulls(len(batch), type) for type in self._types[1 - port])
            own = batch.columns
            batch.columns = own + nulls if port == 0 else nulls + own
            yield batch

    @property
    def rows(self) -> int:
        return self._gated.rows

    @property
    def nbytes(self) -> int:
        return self._gated.nbytes

    @property
    def touched(self) -> int:
        return self._gated.touched

    def save(self) -> State:
        return self._gated.save()

    def restore(self, state: State) -> None:
        self._gated.restore(state)
