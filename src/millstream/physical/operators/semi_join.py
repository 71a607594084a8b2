"""SemiJoin: the rows of the left input that have a partner in the right one, or have none (anti).

*Meaning*: for every t, out(t) = { (e, n) in left(t) | some e' in right(t) satisfies θ with e }, or
none does. A partner for which θ fails counts neither as a partner nor as the lack of one.
*State*: if equality decides, the left rows and a counter per key, no right rows; if θ compares with
the only right row (`threshold`), that of `threshold_semi_join.py`; otherwise also areas of both
inputs, and a counter per left row. Elements that are ahead of the other input wait unchanged: each
takes the space of its columns and its interval.
*Form*: changes, when the frontier has passed them; for elements with known ends, a row keeps its
end and is retracted only if it must leave earlier (G5's hybrid). INTERVALS emits each piece when it
ends.
*Pattern*: STRICT, or WEAK as intervals.
*Cost*: an event per start and end; when a gate moves, the rows of its key.
*Source*: K eq. 8.11 and 8.16, with the semi-join of SQL; G5 §2.1 for the negation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from millstream.logical.expressions import Expression
from millstream.logical.plan import Field, Schema
from millstream.model.arrays import int64, of_int64
from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch, Columns, Ints, LazyColumn, State, merged
from millstream.physical.events.gate import Gate, Passed
from millstream.physical.events.settling import Pieces
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.operator import Context, Frontiers, Operator, Pattern, PhysicalPlan
from millstream.physical.operators.join import JoinKey, Pairs, Sides
from millstream.physical.operators.pointwise import Form
from millstream.physical.operators.threshold_semi_join import ThresholdOperator
from millstream.physical.state.waiting import Waiting

ROW = Field("$row", pa.int64(), nullable=False)

_MANY = 1 << 16  # waiting elements above which netting pays off


@dataclass(frozen=True)
class SemiJoin(PhysicalPlan):
    left: PhysicalPlan
    right: PhysicalPlan
    keys: tuple[JoinKey, ...] = ()
    condition: Expression | None = None
    anti: bool = False
    form: Form = Form.SIGNED
    final: bool = False
    threshold: bool = False  # the condition compares with the only row of the right input

    input_names = ("left", "right")

    @cached_property
    def schema(self) -> Schema:
        return self.left.schema

    @cached_property
    def pattern(self) -> Pattern:
        return Pattern.STRICT if self.form is Form.SIGNED else Pattern.WEAK

    @property
    def state(self) -> str:
        if self.threshold:
            return "gate, sorted values"
        return "gate" if self.condition is None else "gate, areas"

    def open(self, context: Context) -> Operator:
        return (ThresholdOperator if self.threshold else SemiJoinOperator)(self, context)


class Gated:
    """Two inputs whose rows cover their partners in the other input, for semi, anti and outer
    joins.

    If equality decides (`by_key`), a group is the code of a key plus one, and group 0 has the rows
    with a NULL key, which nothing covers. Otherwise each row of the gated input is its own group
    and carries its number through the areas, so that pairs identify the rows they cover.

    No result of an element can be emitted before the frontiers of both inputs have passed its
    start. Until then it waits outside of areas and gates, which would need several times its size
    if one input is far behind the other.
    """

    def __init__(
        self,
        inputs: Sequence[PhysicalPlan],
        keys: Sequence[JoinKey],
        condition: Expression | None,
        context: Context,
    ) -> None:
        self.inputs = inputs
        self.by_key = condition is None
        sides = [Numbered(side) for side in inputs]
        areas = (AreaChoice(), AreaChoice())
        self.sides = Sides(sides, keys, condition, areas, context, hidden=1)
        self.gates: list[Gate | None] = [None, None]
        self._frontiers = Frontiers(2)
        self._waiting = [Waiting(), Waiting()]
        self._most = [_MANY, _MANY]  # how many may wait before they are netted
        self._nothing = [Batch.empty(side.types, NEVER) for side in inputs]

    def add_gate(self, port: int, covered_passes: bool) -> Gate:
        """A gate for the rows of an input."""
        side, other = self.inputs[port], self.inputs[1 - port]
        own = side.pattern is Pattern.WEAKEST
        covering = other.pattern is Pattern.WEAKEST and self.by_key
        gate = Gate(
            side.types,
            shared=side.pattern is Pattern.STRICT,
            grouped=self.by_key,
            covered_passes=covered_passes,
            ordered=[own, covering],
        )
        self.gates[port] = gate
        return gate

    # --- processing a batch-----------------------------------------------------------------------

    def forget(self) -> dict[int, Ints]:
        """Before a batch, when the last output has been read: drop unused keys and rows. Returns
        the new row numbers of each gate where they changed."""
        if self.by_key:
            self._forget_keys()
        changed = {}
        for port, gate in enumerate(self.gates):
            renumbered = None if gate is None else gate.forget()
            if renumbered is not None:
                changed[port] = renumbered
                if not self.by_key:
                    self._renumber_area(port, renumbered)
        if not self.by_key:
            self.sides.forget()
        return changed

    def _forget_keys(self) -> None:
        if not self.sides.keys.is_stale:
            return
        live = np.zeros(self.sides.keys.count + 1, np.bool_)
        live[0] = True
        for area in self.sides.areas:
            live[area.live_codes() + 1] = True
        for gate in self.gates:
            if gate is not None:
                gate.mark_live(live)
        groups = np.flatnonzero(live)
        codes = self.sides.keys.keep(groups[1:] - 1)
        self.sides.renumber(codes)
        by_group = np.append(np.append(0, codes[:-1] + 1), 0)
        for gate in self.gates:
            if gate is not None:
                gate.renumber_groups(groups, by_group)

    def _renumber_area(self, port: int, renumbered: Ints) -> None:
        state = self.sides.areas[port].save()
        state["rows"][-1] = pa.array(renumbered[int64(state["rows"][-1])])
        self.sides.reopen(port)
        self.sides.areas[port].restore(state)

    @property
    def frontier(self) -> int:
        """All elements of both inputs below it have been processed."""
        return self.sides.frontiers.least

    def ready(self, port: int, batch: Batch) -> list[tuple[int, Batch]]:
        """Add a batch; returns the elements of each input that can be processed now, if any."""
        before, least = self._frontiers.least, self._frontiers.advance(port, batch.frontier)
        batch = self.sides.netted(port, batch)
        if least == before:
            self._waiting[port].add(batch)
            self._net_waiting(port)
            return []
        came = [self._nothing[0], self._nothing[1]]
        came[port] = batch
        going = [w.released(b.up_to(least)) for w, b in zip(self._waiting, came, strict=True)]
        return [(each, going[each]) for each in (0, 1) if len(going[each])]

    def _net_waiting(self, port: int) -> None:
        """Net elements across batches, if many wait."""
        waiting = self._waiting[port]
        if self.inputs[port].pattern is Pattern.STRICT and len(waiting) >= self._most[port]:
            waiting.add(self.sides.netted(port, merged(waiting.emptied())))
            self._most[port] = max(_MANY, 2 * len(waiting))

    def expire(self) -> int:
        """After the ready elements are processed: expire elements; returns the new frontier."""
        for port in (0, 1):
            self.sides.expire(port, self._frontiers.least)
        return self.frontier

    def take(self, port: int, batch: Batch) -> list[Pairs]:
        """Process a batch: add its rows to their gate, and their coverage to the other one. Returns
        the pairs of the batch, if areas are kept."""
        if self.by_key:
            self.take_by_key(port, batch)
            return []
        gate = self.gates[port]
        rows = np.zeros(len(batch), np.int64) if gate is None else gate.add(batch)
        own = numbered(batch, rows)
        codes = self.sides.codes(port, own)
        pairs = self.sides.pairs(port, codes, own)
        for found in pairs:
            self._cover(found)
        self.sides.keep(port, codes, own)
        return pairs

    def take_by_key(self, port: int, batch: Batch) -> Ints:
        codes = self.sides.codes(port, batch)
        groups = codes + 1
        gate, other = self.gates[port], self.gates[1 - port]
        if gate is not None:
            gate.add(batch, groups)
        if other is not None:
            known = codes >= 0
            other.cover(groups if known.all() else groups[known], batch.where(known))
        return codes

    def _cover(self, pairs: Pairs) -> None:
        """A pair covers both its rows; a failed pair does too, if that keeps rows out."""
        widths = [len(side.schema) for side in self.inputs]
        places = [widths[0], widths[0] + 1 + widths[1]]
        for gate, place in zip(self.gates, places, strict=True):
            if gate is None:
                continue
            gate.cover(int64(pairs.columns[place]), pairs.batch(0))
            if not gate.covered_passes:
                for failed in pairs.failed:
                    gate.cover(int64(failed.columns[place]), failed.batch(0))

    def save(self) -> State:
        gates = [None if gate is None else gate.save() for gate in self.gates]
        return {
            "sides": self.sides.save(),
            "gates": gates,
            "frontiers": self._frontiers.save(),
            "waiting": [waiting.save() for waiting in self._waiting],
        }

    def restore(self, state: State) -> None:
        self.sides.restore(state["sides"])
        for gate, saved in zip(self.gates, state["gates"], strict=True):
            if gate is not None:
                gate.restore(saved)
        self._frontiers.restore(state["frontiers"])
        for waiting, saved in zip(self._waiting, state["waiting"], strict=True):
            waiting.restore(saved)

    @property
    def rows(self) -> int:
        gates = sum(gate.size for gate in self.gates if gate is not None)
        return self.sides.rows + gates + sum(map(len, self._waiting))

    @property
    def nbytes(self) -> int:
        gates = sum(gate.nbytes for gate in self.gates if gate is not None)
        return self.sides.nbytes + gates + sum(waiting.nbytes for waiting in self._waiting)

    @property
    def touched(self) -> int:
        return self.sides.touched + sum(gate.touched for gate in self.gates if gate is not None)


@dataclass(frozen=True)
class Numbered(PhysicalPlan):
    """An input whose rows carry their number as the last column; only its facts are used."""

    input: PhysicalPlan

    @cached_property
    def schema(self) -> Schema:
        return (*self.input.schema, ROW)

    @cached_property
    def pattern(self) -> Pattern:
        return self.input.pattern

    def open(self, context: Context) -> Operator:
        raise AssertionError("rows are numbered by the operator that needs it")


def numbered(batch: Batch, numbers: Ints) -> Batch:
    columns = Columns([*batch.columns.lazy, LazyColumn(of_int64(numbers))])
    return Batch(columns, batch.start, batch.end, batch.weight, batch.frontier)


class SemiJoinOperator(Operator):
    def __init__(self, node: SemiJoin, context: Context) -> None:
        self._node = node
        self._gated = Gated(node.inputs, node.keys, node.condition, context)
        self._gate = self._gated.add_gate(0, covered_passes=not node.anti)
        self._pieces = Pieces(hold=not node.final)

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        for renumbered in self._gated.forget().values():
            self._pieces.renumber(renumbered)
        before = self._gated.frontier
        for each, ready in self._gated.ready(port, batch):
            self._gated.take(each, ready)
        frontier = self._gated.expire()
        if frontier == before:
            return []
        passed = self._gate.due(frontier)
        if self._node.form is Form.SIGNED:
            return [self._gate.hybrid(passed, frontier)]
        return [self._settled(passed, frontier)]

    def _settled(self, passed: Passed, frontier: int) -> Batch:
        pieces = [self._pieces.settle(passed.row, passed.time, passed.change)]
        if frontier == INFINITY:
            pieces.append(self._pieces.end())
        rows, starts, ends, weights = map(np.concatenate, zip(*pieces, strict=True))
        if not self._node.final:
            frontier = min(frontier, self._pieces.oldest)
        return Batch(self._gate.rows(rows), starts, ends, weights, frontier)

    @property
    def rows(self) -> int:
        return self._gated.rows

    @property
    def nbytes(self) -> int:
        return self._gated.nbytes + self._pieces.nbytes

    @property
    def touched(self) -> int:
        return self._gated.touched

    def save(self) -> State:
        return {"gated": self._gated.save(), "pieces": self._pieces.save()}

    def restore(self, state: State) -> None:
        self._gated.restore(state["gated"])
        self._pieces.restore(state["pieces"])
