"""Operators on the multiplicity of rows: distinct, difference, intersection and similar (K §22.4.4;
G5 §5.4.1 for δ* and the negation)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from millstream.optimizer.cost.changes import netted
from millstream.optimizer.cost.characteristics import (
    INFINITE,
    Characteristics,
    occupied,
)
from millstream.optimizer.cost.counting import Floats, Level, ever_there, level_changes, unequal
from millstream.optimizer.cost.model import ROOM, Given, Model, held_keys
from millstream.optimizer.cost.work import Primitive, coded
from millstream.physical.operators.distinct import Distinct
from millstream.physical.operators.pointwise import Form, Pointwise, PointwiseFunction

KEY_BYTES = 32.0  # of a distinct row, besides its columns
LARGEST_BYTES = 14.0  # … if only its largest end is kept
EVENT_BYTES = 12.0

_LEVELS: Mapping[PointwiseFunction, Level] = {
    PointwiseFunction.IDENTITY: lambda left, right: left,
    PointwiseFunction.DISTINCT: lambda left, right: np.minimum(left, 1),
    PointwiseFunction.DIFFERENCE: lambda left, right: np.maximum(left - right, 0),
    PointwiseFunction.STRICT_DIFFERENCE: lambda left, right: np.where(right > 0, 0, left),
    PointwiseFunction.INTERSECTION: np.minimum,
    PointwiseFunction.MAX_UNION: np.maximum,
}


# --- formulas -------------------------------------------------------------------------------------


def distinct_rate_length(
    d: float, life: float, g: float, n: float, fixed: bool
) -> tuple[float, float]:
    """Eq. 22.5 for random arrivals: the output covers the time in which a row is present at all,
    n·(1 - e^(-ρ)) rows at an instant with ρ = l/(n·d).

    If all rows have the same length of validity, each extends the output, so d' = d, except for
    equal rows of one granule. Otherwise a row extends the output only if it outlives all equal rows
    that are present. The validity of pairs of two windows is uniform up to the shorter window; then
    ∫₀¹ e^(-ρu²) du = ½·√(π/ρ)·erf(√ρ) of them do.
    """
    load = life / (n * d)
    rate = occupied(n, g / d) / g
    if not fixed:
        rate *= 0.5 * math.sqrt(math.pi / load) * math.erf(math.sqrt(load)) if load > 0 else 1.0
    return rate, occupied(n, life / d) / rate


# --- operators ------------------------------------------------------------------------------------


def distinct(node: Distinct, inputs: Sequence[Characteristics], model: Model) -> Given:
    """K eq. 22.5 and 22.24 to 22.29; as G5's δ* it keeps one number per row of the output."""
    (input,) = inputs
    values = input.distinct_rows()
    rate, length = distinct_rate_length(
        input.distance, input.length, input.granule, values, input.fixed
    )
    live = input.variety
    load = input.present / values
    output = replace(
        input.with_rate(rate, length),
        lead=max(input.lead, input.length - length),
        different=live,
        clumps=(),
        fixed=False,
        regular=False,
        paired=None,
        following=ever_there(load),
    )
    work = {
        **coded(input.elements, len(node.schema)),
        Primitive.PASS: input.elements + output.elements,
    }
    keys = held_keys(live, values)
    return Given(output, work, keys, ROOM * keys * (LARGEST_BYTES + input.width))


def pointwise(node: Pointwise, inputs: Sequence[Characteristics], model: Model) -> Given:
    """How often a level changes that depends on the counts of a row in the inputs.

    For each row value the counts are Poisson with means l₁/(n₁·d₁) and l₂/(n₂·d₂); the smaller
    domain is contained in the larger one (G3 §4.2). Each start and end of an input changes the
    level with the probability from `level_changes`, and equally many pieces begin and end.
    """
    left, right = inputs[0], inputs[1] if len(inputs) > 1 else None
    level = _capped(_LEVELS[node.function], node.once)
    values = [input.distinct_rows() for input in inputs]
    changing, present = _changes(level, left, right, values)
    granule = max(input.granule for input in inputs)
    domain = max(values)
    moves = granule * changing / (2 * domain)
    rate = domain / granule * unequal(moves) / 2 if moves > 1e-9 else changing / 2
    if len(inputs) == 1 and node.function is PointwiseFunction.IDENTITY:
        # Equal rows that arrive at one instant are one element, but they may expire at several.
        rate = min(rate, 2 * left.steps(left.columns))
    signed = node.form is Form.SIGNED
    own = zip(node.schema, left.columns.values(), strict=True)
    columns = {field.key: facts for field, facts in own}
    output = Characteristics(
        1.0,
        1.0,
        granule,
        columns,
        1.0 if signed else 0.0,
        written=INFINITE if signed else None,
        batches=sum(input.batches for input in inputs),
    ).with_rate(*model.lasting(rate, present))
    if node.expires:
        return netted(node, left, output)
    events = sum(2 * i.elements if i.written != INFINITE else i.elements for i in inputs)
    elements = sum(input.elements for input in inputs)
    work = {
        **coded(elements, len(node.schema)),
        Primitive.EVENT: events,
        Primitive.STORE: output.elements * len(node.schema),
        Primitive.PASS: output.elements,
    }
    live = min(sum(i.variety for i in inputs), occupied(domain, sum(i.present for i in inputs)))
    came = sum(input.rate for input in inputs) * model.statistics.ahead
    keys, ahead = held_keys(live, domain, came), sum(input.ahead for input in inputs)
    size = keys * (KEY_BYTES + left.width) + ahead * EVENT_BYTES
    return Given(output, work, keys + ahead, ROOM * size)


def _changes(
    level: Level,
    left: Characteristics,
    right: Characteristics | None,
    values: Sequence[float],
) -> tuple[float, float]:
    """Changes of the level of all rows per chronon, and the rows at an instant."""
    if right is None:
        mean, by_left, _ = level_changes(level, left.present / values[0], 0.0)
        return 2 * left.rate * by_left, mean * values[0]
    changing = present = 0.0
    common = min(values)
    loads = [input.present / count for input, count in zip((left, right), values, strict=True)]
    mean, by_left, by_right = level_changes(level, loads[0], loads[1])
    shares = [common / count for count in values]
    changing += 2 * left.rate * shares[0] * by_left + 2 * right.rate * shares[1] * by_right
    present += common * mean
    if shares[0] < 1:
        mean, by_left, _ = level_changes(level, loads[0], 0.0)
        changing += 2 * left.rate * (1 - shares[0]) * by_left
        present += (values[0] - common) * mean
    if shares[1] < 1:
        mean, _, by_right = level_changes(level, 0.0, loads[1])
        changing += 2 * right.rate * (1 - shares[1]) * by_right
        present += (values[1] - common) * mean
    return changing, present


def _capped(level: Level, once: Sequence[bool]) -> Level:
    """A row of an input that counts once."""

    def capped(left: Floats, right: Floats) -> Floats:
        one = np.minimum(left, 1) if once[0] else left
        other = np.minimum(right, 1) if len(once) > 1 and once[1] else right
        return level(one, other)

    return capped
