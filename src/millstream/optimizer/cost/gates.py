"""Joins that test whether a row has a partner: semi, anti and outer join. K composes them from
other operators; here they are operators of their own, so the formulas are ours.

The number of partners of a row of the gated input is Poisson with mean ρ: it has a partner with
probability 1 - e^(-ρ). Partners arrive at rate μ, so the row gets its first partner, and loses its
last one, μ·e^(-ρ) times per chronon each while it is valid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from millstream.logical.expressions import Column, Expression
from millstream.optimizer.cost.characteristics import (
    INFINITE,
    Characteristics,
    Clump,
    facts_of,
    product,
)
from millstream.optimizer.cost.counting import ever_there
from millstream.optimizer.cost.joins import join
from millstream.optimizer.cost.model import ROOM, Given, Model, joined_columns
from millstream.optimizer.cost.selectivity import facts_of_value, selectivity
from millstream.optimizer.cost.work import Primitive, Work, coded, together
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.join import Join, JoinKey
from millstream.physical.operators.outer_join import OuterJoin
from millstream.physical.operators.pointwise import Form
from millstream.physical.operators.semi_join import SemiJoin

ROW_BYTES = 64.0  # of a row at a gate, besides its columns
EVENT_BYTES = 28.0


@dataclass(frozen=True)
class Passing:
    """Rows that begin to pass a gate, per chronon; those that are stopped before their end; and the
    number that pass at an instant."""

    begun: float
    stopped: float
    present: float


# --- formulas -------------------------------------------------------------------------------------


def passing(
    rate: float, present: float, matched: float, arrivals: float, partners: float, anti: bool
) -> Passing:
    """The rows that pass a gate. `matched` of the rows can have partners at all; for each of those,
    partners arrive at rate μ = `arrivals`, and there are ρ = `partners` of them on average."""
    none = math.exp(-partners)
    swings = present * matched * arrivals * none
    share = 1 - matched + matched * none if anti else matched * ever_there(partners)
    return Passing(rate * share + swings, swings, present * share)


# --- operators ------------------------------------------------------------------------------------


def semi_join(node: SemiJoin, inputs: Sequence[Characteristics], model: Model) -> Given:
    """Rows of the left input while they have a partner, or while they have none."""
    left, right = inputs
    passed = _passing(node.inputs, node.keys, node.condition, inputs, 0, node.anti, model)
    output = _passed(left, passed, node.form is Form.SIGNED, left.batches + right.batches)
    if node.condition is None:
        output = replace(output, clumps=_swinging(node.keys, left, passed))
    rows, size = _gate_state(left, right)
    work = _gate_work(left, right, len(node.keys), len(node.left.schema), output)
    if node.threshold:
        # One search per change of the threshold, and one event per row that it crosses.
        work = together(work, {Primitive.EVENT: right.elements + output.elements})
        rows += left.variety
    elif node.condition is not None:
        beside = _areas(node.inputs, node.keys, node.condition, inputs, model)
        work = together(work, beside.work, {Primitive.EVENT: 2 * beside.output.elements})
        rows += beside.rows + beside.output.ahead - right.ahead  # pairs cover rows, not right rows
        size += beside.bytes
    return Given(output, work, rows, size)


def outer_join(node: OuterJoin, inputs: Sequence[Characteristics], model: Model) -> Given:
    """The pairs of a join, and a gate per outer input for its rows without a partner."""
    pairs = _areas(node.inputs, node.keys, node.condition, inputs, model)
    parts = [pairs.output]
    works, rows, size = [pairs.work], pairs.rows, pairs.bytes
    for port in (0, 1):
        if not node.outer[port]:
            continue
        own, other = inputs[port], inputs[1 - port]
        passed = _passing(node.inputs, node.keys, node.condition, inputs, port, True, model)
        padded = _passed(own, passed, True, 0.0)
        parts.append(padded)
        more_rows, more_size = _gate_state(own, other)
        rows, size = rows + more_rows, size + more_size
        works.append(_gate_work(own, other, 0, len(node.inputs[port].schema), padded))
    rate = sum(part.rate for part in parts)
    written = [part for part in parts if part.written != INFINITE]
    output = replace(
        pairs.output.with_rate(rate, sum(part.present for part in parts) / rate),
        columns=facts_of(node.schema, pairs.output.columns),
        different=None,
        clumps=(),
        retracted=sum(part.retracted * part.rate for part in parts) / rate,
        written=sum(part.ahead for part in written) / max(sum(p.elements for p in parts), 1e-300)
        if written
        else INFINITE,
    )
    return Given(output, together(*works), rows, size)


# --- parts ----------------------------------------------------------------------------------------


def _passing(
    nodes: Sequence[PhysicalPlan],
    keys: Sequence[JoinKey],
    condition: Expression | None,
    inputs: Sequence[Characteristics],
    port: int,
    anti: bool,
    model: Model,
) -> Passing:
    own, other = inputs[port], inputs[1 - port]
    sides = [[facts_of_value(key.left, inputs[0]).distinct for key in keys]]
    sides.append([facts_of_value(key.right, inputs[1]).distinct for key in keys])
    mine, theirs = product(sides[port]), product(sides[1 - port])
    matched = min(1.0, theirs / mine)
    rest = 1.0
    if condition is not None:
        both = replace(own, columns=joined_columns(nodes, inputs))
        rest = selectivity(condition, both, model)
    share = rest / theirs
    return passing(own.rate, own.present, matched, other.rate * share, other.present * share, anti)


def _passed(own: Characteristics, passed: Passing, hybrid: bool, batches: float) -> Characteristics:
    """The output of a gate. A row keeps its end and is retracted only if it must expire earlier
    (G5's hybrid); if its input may be retracted, ends are elements anyway."""
    begun = max(passed.begun, 1e-300)
    signed = own.written == INFINITE
    early = passed.stopped / begun + own.retracted
    written = INFINITE if signed else _remaining(own, passed)
    return replace(
        own.with_rate(begun, passed.present / begun),
        retracted=(1.0 if signed else min(1.0, early)) if hybrid else 0.0,
        written=written if hybrid else None,
        fixed=False,
        regular=False,
        paired=None,
        following=0.0,
        batches=batches,
    )


def _swinging(keys: Sequence[JoinKey], left: Characteristics, passed: Passing) -> tuple[Clump, ...]:
    """Rows of one key begin to pass together when it gets its first partner."""
    each = left.present / product(facts_of_value(key.left, left).distinct for key in keys)
    columns = frozenset(key.left.key for key in keys if isinstance(key.left, Column))
    size = each / ever_there(each) if each > 1e-9 else 1.0
    return (Clump(passed.stopped / max(passed.begun, 1e-300), size, columns),)


def _remaining(own: Characteristics, passed: Passing) -> float:
    """The distance to an element's end: its whole validity if it passes at once, half of it if it
    is let through or stopped later."""
    length = own.length if own.written is None else own.written
    at_once = max(passed.begun - passed.stopped, 0.0)
    elements = passed.begun + passed.stopped
    return length * (at_once + passed.stopped) / elements if elements else length


def _gate_state(own: Characteristics, other: Characteristics) -> tuple[float, float]:
    """The rows at the gate, and the future ends of both inputs."""
    ahead = own.ahead + other.ahead
    size = own.present * (ROW_BYTES + own.width) + ahead * EVENT_BYTES
    return own.present + ahead, ROOM * size


def _gate_work(
    own: Characteristics, other: Characteristics, keys: int, width: int, output: Characteristics
) -> Work:
    events = sum(2 * i.elements if i.written != INFINITE else i.elements for i in (own, other))
    return {
        **coded((own.elements + other.elements), keys),
        Primitive.STORE: (own.elements + output.elements) * width,
        Primitive.EVENT: events,
        Primitive.SWING: output.elements + own.elements,
    }


def _areas(
    nodes: Sequence[PhysicalPlan],
    keys: Sequence[JoinKey],
    condition: Expression | None,
    inputs: Sequence[Characteristics],
    model: Model,
) -> Given:
    """The pairs, and the areas that find them."""
    left, right = nodes
    return join(Join(left, right, tuple(keys), condition), inputs, model)
