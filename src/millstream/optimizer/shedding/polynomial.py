"""Polynomials of the shares that inputs keep.

Input i keeps the share xᵢ, 0 ≤ xᵢ ≤ 1. Every rate, size and cost of a plan is a sum of products of
shares, each at most once, with positive coefficients: dropping from an input scales its rate and,
for a time window, its size, and a join multiplies values of different inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from millstream.optimizer.join_graph import members


@dataclass(frozen=True)
class Polynomial:
    """The coefficient of each product, by the set of inputs whose shares it contains."""

    terms: Mapping[int, float]

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for shares, factor in other.terms.items():
            terms[shares] = terms.get(shares, 0.0) + factor
        return Polynomial(terms)

    def __mul__(self, other: Polynomial | float) -> Polynomial:
        if not isinstance(other, Polynomial):
            return Polynomial({shares: factor * other for shares, factor in self.terms.items()})
        terms: dict[int, float] = {}
        for mine, factor in self.terms.items():
            for theirs, times in other.terms.items():
                assert not mine & theirs, "a share appears once in a product"
                terms[mine | theirs] = terms.get(mine | theirs, 0.0) + factor * times
        return Polynomial(terms)

    def __float__(self) -> float:
        """The value where nothing is dropped."""
        return sum(self.terms.values())

    def at(self, shares: Sequence[float]) -> float:
        total = 0.0
        for inputs, factor in self.terms.items():
            for port in members(inputs):
                factor *= shares[port]
            total += factor
        return total

    def slope(self, port: int, shares: Sequence[float]) -> float:
        """The partial derivative by one share."""
        bit = 1 << port
        mine = {inputs ^ bit: factor for inputs, factor in self.terms.items() if inputs & bit}
        return Polynomial(mine).at(shares)

    @cached_property
    def inputs(self) -> int:
        """The inputs whose share matters."""
        found = 0
        for inputs in self.terms:
            found |= inputs
        return found

    @cached_property
    def is_linear(self) -> bool:
        return all(not inputs & inputs - 1 for inputs in self.terms)

    @property
    def is_product(self) -> bool:
        return len(self.terms) == 1
