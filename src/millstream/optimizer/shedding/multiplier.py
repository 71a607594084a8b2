"""The shares with the most output for time windows, by a Lagrange multiplier.

There the output is proportional to the product of all shares: dropping from an input leaves fewer
partners for the others. With y = log x, the problem is to maximize ∑yᵢ, where the cost
g(y) = ∑ cₜ·exp(∑ y of t) is convex. So there is one optimum, at which (Karush, Kuhn, Tucker)

    Dᵢ = d for each input that is shed, Dᵢ ≤ d for each that is kept,   g = capacity

with Dᵢ = ∂g/∂yᵢ, the cost of all terms that contain input i, and 1/d the multiplier: all inputs
that are shed end up with the same cost. For a given d the point is found by coordinate descent: xᵢ
scales Dᵢ, so each share is adjusted in turn, which descends on a convex function. The cost grows
with d, and since Dᵢ ≤ g ≤ ∑D, d lies between capacity / n and capacity and is found by bisection.
Bisection converges slowly at the end, so Newton's method on the equations finishes the search.

With count windows among the inputs, the output is a product times a sum, and log output - cost / d
is maximized in the same way. It may have several local maxima; the result is the best of several
searches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from millstream.optimizer.join_graph import members
from millstream.optimizer.shedding.knapsack import knapsack
from millstream.optimizer.shedding.polynomial import Polynomial

Vector = NDArray[np.float64]

ROUGHLY, CLOSELY, EXACTLY = 1e-2, 1e-3, 1e-6  # of the capacity
ROUNDS = 20
FEW_ROUNDS, MANY_ROUNDS = 5, 2_000
EXACT = 1e-10
LITTLE = 1e-9  # a share that is practically zero


def most_output(
    output: Polynomial,
    cost: Polynomial,
    capacity: float,
    most: Sequence[float],
    exactly: bool = True,
) -> list[float]:
    """Shares of at most `most` that cost the capacity, or slightly less."""
    if not exactly:
        return _climbed(output, cost, capacity, most, most, ROUGHLY, FEW_ROUNDS)
    if output.is_product:
        near = _climbed(output, cost, capacity, most, most, CLOSELY, ROUNDS)
        exact = _polished(cost, capacity, most, near)
        return exact or _climbed(output, cost, capacity, most, near, EXACTLY, MANY_ROUNDS)
    found = []
    for start in (most, *_without_one(output, most)):
        shares = _climbed(output, cost, capacity, most, start, EXACTLY, ROUNDS)
        found.append(_filled(output, cost, capacity, most, shares))
    return max(found, key=output.at)


def _over_rows(output: Polynomial) -> int:
    """The inputs that the output contains in a sum: those with count windows."""
    common = output.inputs
    for inputs in output.terms:
        common &= inputs
    return output.inputs & ~common


def _without_one(output: Polynomial, most: Sequence[float]) -> Iterator[list[float]]:
    """Other starting points, each without one input with a count window."""
    for port in members(_over_rows(output)):
        yield [LITTLE if each == port else share for each, share in enumerate(most)]


def _filled(
    output: Polynomial,
    cost: Polynomial,
    capacity: float,
    most: Sequence[float],
    shares: list[float],
) -> list[float]:
    """The best shares of count windows for the capacity that the others leave: a knapsack, since no
    two of their shares are multiplied."""
    ports = members(_over_rows(output))
    rest = [0.0 if port in ports else share for port, share in enumerate(shares)]
    gains = Polynomial({1 << port: output.slope(port, rest) for port in ports})
    prices = Polynomial({1 << port: cost.slope(port, rest) for port in ports})
    own = [most[port] if port in ports else 0.0 for port in range(len(most))]
    left = knapsack(gains, prices, max(0.0, capacity - cost.at(rest)), own)
    return [a + b for a, b in zip(rest, left, strict=True)]


def _polished(
    cost: Polynomial, capacity: float, most: Sequence[float], shares: Sequence[float]
) -> list[float] | None:
    """Newton's method on Dᵢ = d and g = capacity, from nearly optimal shares; None if it does not
    converge."""
    ports = [p for p in members(cost.inputs) if most[p] > 0]
    terms = [t for t in cost.terms if all(most[p] > 0 for p in members(t))]
    has = np.array([[float(t >> p & 1) for p in ports] for t in terms])
    factors = np.array([cost.terms[t] for t in terms])
    bounds = np.log([most[p] for p in ports])
    point = np.log([shares[p] for p in ports])
    shed = point < bounds
    for _ in range(50):
        values = factors * np.exp(has @ point)
        parts = values @ has
        if not shed.any():
            shed = parts == parts.max()
        level = parts[shed].mean()
        released = ~shed & (parts > level * (1 + EXACT))
        wrong = np.append(level - parts[shed], capacity - values.sum())
        if np.abs(wrong).max() <= EXACT * level and not released.any():
            polished = list(most)
            for port, value in zip(ports, point.tolist(), strict=True):
                polished[port] = min(exp(value), most[port])
            return polished
        shed |= released
        point[shed] += _step(has[:, shed], values, parts[shed], capacity)
        shed &= point < bounds
        point = np.minimum(point, bounds)
    return None


def _step(has: Vector, values: Vector, parts: Vector, capacity: float) -> Vector:
    """A Newton step towards equal parts and the whole capacity."""
    count = has.shape[1]
    matrix = np.zeros((count + 1, count + 1))
    matrix[:count, :count] = (has.T * values) @ has
    matrix[:count, count], matrix[count, :count] = -1.0, parts
    wrong = np.append(parts.mean() - parts, capacity - values.sum())
    step: Vector = np.linalg.lstsq(matrix, wrong)[0][:count]
    return step * min(1.0, 1.0 / float(np.abs(step).max()))


def _climbed(
    output: Polynomial,
    cost: Polynomial,
    capacity: float,
    most: Sequence[float],
    start: Sequence[float],
    close: float,
    rounds: int,
) -> list[float]:
    return _closed_in(_Climb(output, cost, most, start, rounds), capacity, close)


def _closed_in(climb: _Climb, capacity: float, close: float) -> list[float]:
    """Shares whose cost is at most the capacity and close to it, by bisection."""
    low, high = log(capacity / len(climb.ports)), log(capacity)
    below, above = (climb.settle(exp(end), close) - capacity for end in (low, high))
    while above < -close * capacity:
        low, below, high = high, above, high + 1.0
        above = climb.settle(exp(high), close) - capacity
    while below > close * capacity:
        high, above, low = low, below, low - 1.0
        below = climb.settle(exp(low), close) - capacity
    excess = below
    while abs(excess) > close * capacity and high - low > 1e-13:
        middle = (low * above - high * below) / (above - below)
        middle = min(max(middle, low + 0.01 * (high - low)), high - 0.01 * (high - low))
        excess = climb.settle(exp(middle), close) - capacity
        if excess > 0:
            high, above, below = middle, excess, below / 2  # halved so that both ends move
        else:
            low, below, above = middle, excess, above / 2
    return [0.0 if share <= 2 * LITTLE else share for share in climb.shares]


class _Climb:
    """Shares, and the values of the terms of output and cost with them."""

    def __init__(
        self,
        output: Polynomial,
        cost: Polynomial,
        most: Sequence[float],
        start: Sequence[float],
        rounds: int,
    ) -> None:
        self.shares, self._most = list(start), most
        self._cost, self._output = (
            {t: f for t, f in each.terms.items() if all(most[p] > 0 for p in members(t))}
            for each in (cost, output)
        )
        self.ports = [p for p in members(cost.inputs) if most[p] > 0]
        self._costs = {p: [i for i, t in enumerate(self._cost) if t >> p & 1] for p in self.ports}
        self._gains = {p: [i for i, t in enumerate(self._output) if t >> p & 1] for p in self.ports}
        self._sums = len(self._output) > 1
        self._rounds = rounds

    def settle(self, level: float, close: float) -> float:
        """Adjust each share in turn until they converge; return the cost."""
        shares, most = self.shares, self._most
        costs, gains = self._values(self._cost), self._values(self._output)
        for _ in range(self._rounds):
            furthest = 0.0
            for port in self.ports:
                share, having = shares[port], self._costs[port]
                scale = level / sum([costs[i] for i in having])
                if self._sums:
                    scale -= self._others(gains, port)
                scale = min(max(scale, LITTLE / share), most[port] / share)
                if abs(scale - 1) > furthest:
                    furthest = abs(scale - 1)
                if scale != 1.0:
                    shares[port] = share * scale
                    for i in having:
                        costs[i] *= scale
                    if self._sums:
                        for i in self._gains[port]:
                            gains[i] *= scale
            if furthest <= close:
                break
        return sum(self._values(self._cost))

    def _others(self, gains: list[float], port: int) -> float:
        """The output without an input, as a multiple of the output with it."""
        mine = sum([gains[i] for i in self._gains[port]])
        return max(0.0, sum(gains) - mine) / mine

    def _values(self, terms: dict[int, float]) -> list[float]:
        values = []
        for inputs, value in terms.items():
            for port in members(inputs):
                value *= self.shares[port]
            values.append(value)
        return values
