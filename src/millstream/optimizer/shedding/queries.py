"""Load shedding of a query that needs more than its processors.

Each stream keeps a share of its rows, so that the estimated cost of the rest is affordable. The
shares have the largest product: with time windows that gives the most output (`multiplier`), and no
stream is starved for another. They are found with a polynomial that interpolates the costs at
shares of 1 and 1/2, and are checked against the cost model itself.

A row with the number n in its stream is kept if the fraction of n·φ + offset is below the share.
Such numbers are spread evenly, over every run of rows and also over every k-th row; and a replay
drops the same rows, on any engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias
from zlib import crc32

from millstream.logical.expressions import Call, Expression, Literal
from millstream.logical.plan import Filter, Map, Named, Plan, Source
from millstream.logical.text import expression_text
from millstream.model import types
from millstream.model.errors import QueryError
from millstream.optimizer.cost import Estimates, estimate
from millstream.optimizer.shedding.multiplier import most_output
from millstream.optimizer.shedding.polynomial import Polynomial
from millstream.optimizer.statistics import Statistics
from millstream.physical.operator import PhysicalPlan

WHOLE = 1 << 31  # numbers are taken modulo this, so that no product overflows
GOLDEN = 1_327_217_885  # the golden ratio of the modulus
MOST = 6  # streams with individual shares; beyond that, all keep the same share
CLOSE = 1e-3

_Cost: TypeAlias = Callable[[Sequence[float]], float]  # processors needed at given shares


@dataclass(frozen=True)
class Demand:
    """The number of processors that a plan needs, and the share that each stream may keep if there
    are fewer; with these shares it needs `least`. If it `fits`, nothing is dropped and there are no
    shares; otherwise there are none if no stream may be shed."""

    processors: float
    least: float
    shares: Mapping[str, float]
    fits: bool = False


def demand(
    plan: PhysicalPlan,
    statistics: Statistics,
    streams: Sequence[str],
    capacity: float,
    estimating: Callable[[PhysicalPlan, Statistics], Estimates] = estimate,
) -> Demand:
    """The demand of a plan with a number of processors, if only these streams may be shed."""

    def processors(shares: Sequence[float]) -> float:
        known = statistics
        for name, share in zip(streams, shares, strict=True):
            own = statistics.stream(name)
            known = known.with_stream(name, replace(own, rate=statistics.rate(name) * share))
        return estimating(plan, known).share

    needed = processors([1.0] * len(streams))
    if needed <= capacity or not streams:
        return Demand(needed, needed, {}, needed <= capacity)
    found = _shares(processors, len(streams), capacity)
    while (least := processors(found)) > capacity * (1 + CLOSE) and max(found) > CLOSE:
        found = [share * 0.99 for share in found]
    return Demand(needed, least, dict(zip(streams, found, strict=True)))


def _shares(processors: _Cost, count: int, capacity: float) -> list[float]:
    if count > MOST:
        return [0.99] * count  # the caller lowers them together
    terms = _interpolated(processors, count)
    left = capacity - terms.pop(0, 0.0)
    if left <= 0:
        return [0.99] * count
    kept = Polynomial({(1 << count) - 1: 1.0})
    return most_output(kept, Polynomial(terms), left, [1.0] * count)


def _interpolated(processors: _Cost, count: int) -> dict[int, float]:
    """The terms of the polynomial that equals the costs where each share is 1 or 1/2; if costs grow
    less than proportionally, it overestimates them."""
    values = {corner: processors(corner) for corner in product((0.5, 1.0), repeat=count)}
    terms = {0: values}
    for port in range(count):
        split: dict[int, dict[tuple[float, ...], float]] = {}
        for inputs, own in terms.items():
            ends = [(key, own[(0.5, *key[1:])], own[key]) for key in own if key[0] == 1.0]
            split[inputs] = {key[1:]: 2 * half - whole for key, half, whole in ends}
            split[inputs | 1 << port] = {key[1:]: 2 * (whole - half) for key, half, whole in ends}
        terms = split
    return {inputs: own[()] for inputs, own in terms.items() if own[()] > 0}


# --- drops in a plan ------------------------------------------------------------------------------


def with_drops(plan: Plan, shares: Mapping[str, float]) -> Plan:
    """The plan with streams that keep only a share of their rows."""
    if isinstance(plan, Source):
        return _kept(plan, shares[plan.stream]) if shares.get(plan.stream, 1.0) < 1.0 else plan
    inputs = [with_drops(child, shares) for child in plan.inputs]
    if all(new is old for new, old in zip(inputs, plan.inputs, strict=True)):
        return plan
    return plan.with_inputs(*inputs)


def selectivities(plan: Plan) -> Iterator[tuple[str, float]]:
    """The selectivities of the drops of a plan for the cost model, by their text."""
    for node in plan.walk():
        if isinstance(node, Filter) and (share := _share(node.predicate)) is not None:
            yield expression_text(node.predicate), share


def _kept(source: Source, share: float) -> Plan:
    if not source.numbered:
        raise QueryError(
            f'rows of stream "{source.stream}" have no numbers, so that none can be dropped twice '
            "in the same way",
            help="give the query more with Session(processors=…), or declare a smaller rate",
        )
    numbered = replace(source, arrival=True)
    number = numbered.schema[-1].column
    kept = Filter(numbered, _below(number, source.stream, share))
    if source.arrival:
        return kept
    return Map(kept, tuple(Named(f.column, f.name, f.qualifier) for f in source.schema))


def _below(number: Expression, stream: str, share: float) -> Expression:
    """(n % 2³¹ · φ + offset) % 2³¹ < share"""
    offset = crc32(stream.encode()) % WHOLE
    turned = _call("+", _call("*", _call("%", number, WHOLE), GOLDEN), offset)
    least = _call("%", turned, WHOLE)
    return Call("<", (least, Literal(round(share * WHOLE), types.BIGINT)), types.BOOLEAN)


def _call(function: str, left: Expression, right: int) -> Expression:
    return Call(function, (left, Literal(right, types.BIGINT)), types.BIGINT)


def _share(predicate: Expression) -> float | None:
    """The share of a drop that `_below` made; None for any other condition."""
    match predicate:
        case Call("<", (Call("%", (Call("+", (Call("*", (_, Literal(value=times))), _)), _)),
                        Literal(value=int(most)))) if times == GOLDEN:  # fmt: skip
            return most / WHOLE
    return None
