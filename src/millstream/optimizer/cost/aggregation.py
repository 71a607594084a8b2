"""Aggregation, with and without groups (K §22.4.5 and §22.4.6).

K's operator keeps partial aggregates and emits a row for each piece of time between two events.
Ours keeps an accumulator per group and the future ends, and emits a row only if it differs from the
previous one. So the output of eq. 22.6 and 22.7 is an upper bound, which is reached if every row
changes the aggregate (sums, averages). State and costs are those of our operator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from millstream.logical.aggregates import lookup
from millstream.logical.expressions import AggregateCall, Column, Expression, walk
from millstream.optimizer.cost.characteristics import (
    INFINITE,
    Characteristics,
    ColumnFacts,
    occupied,
    product,
)
from millstream.optimizer.cost.counting import ever_there, unequal
from millstream.optimizer.cost.model import ROOM, Given, Model, held_keys
from millstream.optimizer.cost.selectivity import facts_of_value, parts_of
from millstream.optimizer.cost.windows import count_length
from millstream.optimizer.cost.work import Primitive, coded
from millstream.optimizer.statistics import width_of
from millstream.physical.operators.aggregate import Aggregate
from millstream.physical.operators.pointwise import Form

EVENT_BYTES = 30.0  # of a future end
WORD_BYTES = 18.0  # … additional, per aggregate other than COUNT
GROUP_BYTES = 40.0  # of a group, besides its key, its row and its accumulators


# --- formulas -------------------------------------------------------------------------------------


def group_steps(d: float, life: float, g: float, n: float) -> tuple[float, float]:
    """How often a group changes its value while it has rows, and how often a group appears, for all
    n groups, per chronon.

    With λ = 1/(n·d) and ρ = λ·l: the group is present at the beginning of a granule with
    probability 1 - e^(-ρ), and additionally nothing has started or ended with probability
    e^(-2λg)·(1 - e^(-(ρ-λg))). It appears with probability e^(-ρ)·(1 - e^(-λg)). For ρ → ∞ this is
    eq. 22.7, for ρ → 0 its other case; in between, where K's two cases meet, it is neither.
    """
    arrival, load = g / (n * d), life / (n * d)
    there = ever_there(load)
    unmoved = math.exp(-2 * arrival) * ever_there(max(load - arrival, 0.0))
    born = math.exp(-load) * ever_there(arrival)
    return n / g * max(there - unmoved - born, 0.0), n / g * born


def changes_value(call: Expression, input: Characteristics, rows: float, moved: float) -> float:
    """The probability that an event changes the value of an aggregate over a number of rows;
    `moved` is the number of rows that arrive within a granule, and equally many expire.

    COUNT changes unless equally many arrive and expire. MIN and MAX change if the arriving or
    expiring row is the only extreme one: one of `rows`, of different values. Others change unless a
    row is replaced by an equal one."""
    if not isinstance(call, AggregateCall):
        return 1.0
    some = -math.expm1(-2 * moved)  # the share of granules with an event
    match call.function:
        case "count" | "count_if" if not call.distinct:
            return min(1.0, unequal(moved) / some) if some else 1.0
        case "min" | "max":
            values = facts_of_value(call.arguments[0], input).distinct
            return min(1.0, occupied_extreme(rows, values))
    return 1.0


def occupied_extreme(rows: float, values: float) -> float:
    """The probability that an arriving row is above all of the other rows, for n values:
    ∑ᵥ P(v)·P(all others below v) = (1/n)·∑ₖ (k/n)^rows, k below n."""
    if rows <= 0:
        return 1.0
    if values == INFINITE or values > 100 * rows:
        return 1 / (rows + 1)
    count = int(min(max(values, 1.0), 10_000))
    return sum(math.pow(k / count, rows) for k in range(count)) / count


# --- the operator ---------------------------------------------------------------------------------


def aggregate(node: Aggregate, inputs: Sequence[Characteristics], model: Model) -> Given:
    """Eq. 22.6 or `group_steps`, times the probability that the row differs from the previous
    one."""
    (input,) = inputs
    groups = product(facts_of_value(key.expression, input).distinct for key in node.keys)
    input = _last_rows(node, input, groups)
    live = occupied(groups, input.present) if node.keys else 1.0
    rate, length = model.lasting(*_steps(node, input, groups))
    signed = node.form is Form.SIGNED
    output = Characteristics(
        1.0,
        length,
        input.granule,
        _columns(node, input, live),
        1.0 if signed else 0.0,
        written=INFINITE if signed else None,
        batches=input.batches,
    ).with_rate(rate)
    calls = [named.expression for named in node.aggregates]
    parts = sum(parts_of(each.expression) for each in (*node.keys, *node.aggregates))
    events = 2 * input.elements if input.written != INFINITE else input.elements
    work = {
        Primitive.EXPRESSION: input.elements * max(parts - len(calls), 0.0),
        **coded(input.elements, len(node.keys)),
        Primitive.EVENT: events,
        Primitive.ACCUMULATE: events * len(calls),
        Primitive.STORE: output.elements * len(node.schema),
    }
    keys = held_keys(live, groups) if node.keys else 1.0
    kept = input.ahead if node.last is None else input.present
    return Given(output, work, keys + kept, _bytes(node, kept, keys))


def _last_rows(node: Aggregate, input: Characteristics, groups: float) -> Characteristics:
    """With a built-in count window, the input as that window would emit it."""
    if node.last is None:
        return input
    keys = frozenset(k.expression.key for k in node.keys if isinstance(k.expression, Column))
    length = count_length(input.distance, float(node.last.rows), groups)
    return replace(input, length=length, written=None, paired=keys)


def _steps(node: Aggregate, input: Characteristics, groups: float) -> tuple[float, float]:
    """Rows that arrive per chronon, and their number at an instant."""
    keys = [part.key for k in node.keys for part in walk(k.expression) if isinstance(part, Column)]
    paired = input.paired is not None and (not keys or set(keys) <= input.paired)
    d = 1 / input.steps(keys)
    life, g = max(input.present * d, input.granule), input.granule
    n = groups if node.keys else 1.0
    if not node.keys:
        # There is also a row over no rows: each start and each end may change it.
        moving, born = -math.expm1(-2 * g / d) / g, 0.0
    else:
        moving, born = group_steps(d, life, g, n)
    if paired:
        moving = -math.expm1(-g / d) / g  # K remark 22.1: a row expires when another arrives
    rows = input.present / n
    calls = [changes_value(named.expression, input, rows, g / (n * d)) for named in node.aggregates]
    same = product(1 - chance for chance in calls) if calls else 1.0
    if paired and all(_counts(named.expression) for named in node.aggregates):
        same = 1.0
    there = ever_there(rows) if node.keys else 1.0
    return moving * (1 - same) + born, n * there


def _counts(call: Expression) -> bool:
    return isinstance(call, AggregateCall) and call.function == "count" and not call.distinct


def _chooses(call: AggregateCall) -> bool:
    function = lookup(call.function)
    return function is not None and function.chooses


def _columns(
    node: Aggregate, input: Characteristics, live: float
) -> dict[tuple[str, str], ColumnFacts]:
    """Keys keep their facts; aggregates take any value, counts up to the rows per group."""
    columns = {key.field.key: facts_of_value(key.expression, input) for key in node.keys}
    for named in node.aggregates:
        call, width = named.expression, width_of(named.expression.type)
        if isinstance(call, AggregateCall) and _chooses(call):
            columns[named.field.key] = replace(
                facts_of_value(call.arguments[0], input), width=width
            )
        elif _counts(call):
            rows = max(1.0, input.present / max(live, 1.0))
            spread = max(1.0, min(rows, 4 * math.sqrt(rows)))  # nearly all lie within 2σ
            columns[named.field.key] = ColumnFacts(
                spread,
                width,
                rows - spread / 2,
                rows + spread / 2,
                deviation=math.sqrt(rows),
            )
        else:
            columns[named.field.key] = ColumnFacts(INFINITE, width)
    return columns


def _bytes(node: Aggregate, kept: float, keys: float) -> float:
    group = GROUP_BYTES + sum(width_of(field.type) for field in node.schema)
    words = WORD_BYTES * sum(1 for named in node.aggregates if not _counts(named.expression))
    group += words
    return ROOM * (keys * group + kept * (EVENT_BYTES + words))
