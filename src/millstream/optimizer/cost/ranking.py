"""The first n rows, of all or per group. K has no such operator; the formulas are ours."""

from __future__ import annotations

import math
from collections.abc import Sequence

from millstream.logical.expressions import Column
from millstream.optimizer.cost.characteristics import INFINITE, Characteristics, occupied, product
from millstream.optimizer.cost.model import ROOM, Given, Model, held_keys
from millstream.optimizer.cost.selectivity import facts_of_value, parts_of
from millstream.optimizer.cost.work import Primitive, coded
from millstream.physical.operator import Pattern
from millstream.physical.operators.top_n import TopN

RANKED_BYTES = 300.0  # of a row in order: objects of Python


def top_rate(rate: float, rows: float, limit: float) -> float:
    """Rows that enter the top k, per chronon. If the order is independent of time, an arriving row
    is among the first k of N with probability k/N; an expiring row was with the same probability,
    and another row takes its place: r' = 2·r·k/N. If there are at most k rows, all are in the
    top."""
    return rate * min(1.0, 2 * limit / rows) if rows > limit else rate


def contenders(rows: float, limit: float) -> float:
    """The number of N rows that may still enter the top, if rows expire in order of arrival: those
    with fewer than k better ones after them, k·(1 + ln(N/k))."""
    return limit * (1 + math.log(rows / limit)) if rows > limit > 0 else rows


def top_n(node: TopN, inputs: Sequence[Characteristics], model: Model) -> Given:
    """State: all valid rows and their ends, or only contenders if rows expire in order."""
    (input,) = inputs
    groups = product(facts_of_value(key, input).distinct for key in node.keys)
    live = occupied(groups, input.present) if node.keys else 1.0
    each = input.present / max(live, 1e-300)
    limit = float(node.limit)
    rate = input.rate if _latest_first(node) else top_rate(input.rate, each, limit)
    present = live * min(each, limit)
    output = Characteristics(
        1.0,
        1.0,
        input.granule,
        input.columns,
        1.0,
        written=INFINITE,
        batches=input.batches,
    ).with_rate(*model.lasting(rate, present))
    sifts = node.input.pattern in (Pattern.WEAKEST, Pattern.MONOTONIC) and not node.keys
    kept = _sifted(input, limit) if sifts else input.present
    share = kept / input.present if input.present else 1.0
    parts = sum(parts_of(sort.expression) for sort in node.order)
    events = input.elements * share * (1.0 if input.written == INFINITE else 2.0)
    work = {
        Primitive.EXPRESSION: input.elements * parts,
        **coded(input.elements * share, len(node.schema)),
        Primitive.EVENT: events,
        Primitive.RANK: events + output.elements * limit / 2,
        Primitive.STORE: output.elements * len(node.schema),
    }
    values = input.distinct_rows()
    keys = held_keys(min(kept, occupied(values, input.present)), values)
    ahead = kept if input.written != INFINITE else 0.0
    return Given(output, work, keys + ahead, ROOM * keys * (RANKED_BYTES + input.width))


def _sifted(input: Characteristics, limit: float) -> float:
    """Rows are inserted batch by batch, up to 1,024 at a time."""
    together = min(input.rate / input.batches, 1024.0) if input.batches else 1.0
    if together <= limit:
        return input.present
    return input.present * contenders(together, limit) / together


def _latest_first(node: TopN) -> bool:
    """Whether the order begins with a column that grows with time."""
    first = node.order[0] if node.order else None
    return (
        first is not None
        and isinstance(first.expression, Column)
        and (first.descending and str(first.expression.type).startswith("timestamp"))
    )
