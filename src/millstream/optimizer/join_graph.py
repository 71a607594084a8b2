"""The inputs of a multi-way join and the conditions between them.

Sets of inputs are bit masks: input i is in the set m if `m >> i & 1`. The result size of a set of
inputs does not depend on the join order (A, observation 1), so rates and sizes are properties of
sets, and only costs are properties of orders.

Columns that must all be equal are one `Equality`, even over many inputs. If inputs have v₁, v₂, …
distinct values, the smaller sets of values are contained in the larger ones (G3 §4.2). So two
inputs match with probability 1 / max(v₁, v₂), and all of them with min(v) / ∏v.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isfinite, prod
from typing import Generic, Protocol, Self, TypeVar


@dataclass(frozen=True)
class JoinInput:
    """`rate` is the number of rows that arrive per unit of time, `size` the number of rows that are
    valid at an instant. When rows are dropped, the size of a window `by_rows` stays; any other
    follows the rate."""

    name: str
    rate: float
    size: float
    by_rows: bool = False
    fluctuates: bool = False  # its rate is unreliable


@dataclass(frozen=True)
class Equality:
    """Columns that must be equal: the number of distinct values of each input that has one."""

    distinct: tuple[tuple[int, float], ...]

    @cached_property
    def inputs(self) -> int:
        return mask_of(port for port, _ in self.distinct)

    def selectivity(self, inputs: int) -> float:
        """The share of all combinations of these inputs that are equal: 0 if values never
        repeat."""
        values = [count for port, count in self.distinct if inputs >> port & 1]
        if len(values) < 2:
            return 1.0
        return min(values) / prod(values) if isfinite(max(values)) else 0.0

    def between(self, left: int, right: int) -> float:
        """The share of all pairs of the rows of two sets that are equal, given that the rows of
        each set are: σ(L ∪ R) / (σ(L)·σ(R)) = 1 / max(min v_L, min v_R)."""
        if not (self.inputs & left and self.inputs & right):
            return 1.0
        fewest = (min(n for port, n in self.distinct if m >> port & 1) for m in (left, right))
        return 1.0 / max(fewest)


@dataclass(frozen=True)
class Predicate:
    """Any other condition: the inputs it reads, and its selectivity. `cost` is that of one test, as
    a multiple of comparing two numbers."""

    inputs: int
    selectivity: float
    cost: float = 1.0


@dataclass(frozen=True)
class JoinGraph:
    inputs: tuple[JoinInput, ...]
    equalities: tuple[Equality, ...] = ()
    predicates: tuple[Predicate, ...] = ()

    @property
    def all(self) -> int:
        return (1 << len(self.inputs)) - 1

    def selectivity(self, inputs: int) -> float:
        """The share of all combinations of these inputs that satisfy the conditions on them."""
        share = prod(equality.selectivity(inputs) for equality in self.equalities)
        return share * prod(p.selectivity for p in self.predicates if not p.inputs & ~inputs)

    def between(self, left: int, right: int) -> float:
        """The share of all pairs of rows of two sets that match. It is computed only from the
        conditions between the sets: the selectivities of large sets underflow."""
        equal = (e.between(left, right) for e in self.equalities)
        return prod(equal) * prod(p.selectivity for p in self.tested(left, right))

    def keyed(self, left: int, right: int) -> bool:
        """Whether there is an equality between two sets."""
        return any(e.inputs & left and e.inputs & right for e in self.equalities)

    def linked(self, left: int, right: int) -> bool:
        """Whether there is any condition between two sets that can be tested on their pairs."""
        both = left | right
        told = (p.inputs for p in self.predicates if not p.inputs & ~both)
        return self.keyed(left, right) or any(m & left and m & right for m in told)

    def tested(self, left: int, right: int) -> tuple[Predicate, ...]:
        """The predicates that can be tested on pairs of two sets, but not on one of them alone."""
        both = left | right
        return tuple(
            p
            for p in self.predicates
            if not p.inputs & ~both and p.inputs & ~left and p.inputs & ~right
        )


def mask_of(ports: Iterator[int] | Sequence[int]) -> int:
    return sum(1 << port for port in ports)


@lru_cache(maxsize=1 << 16)
def members(inputs: int) -> tuple[int, ...]:
    """The inputs of a set, in order of their number."""
    return tuple(port for port in range(inputs.bit_length()) if inputs >> port & 1)


class Quantity(Protocol):
    """A number, or a polynomial of the shares that are kept."""

    def __add__(self, other: Self, /) -> Self: ...
    def __mul__(self, other: Self | float, /) -> Self: ...


Amount = TypeVar("Amount", bound=Quantity)


@dataclass(frozen=True, slots=True)
class Flow(Generic[Amount]):
    """Rows that arrive per unit of time, and rows that are valid at an instant."""

    rate: Amount
    size: Amount


@dataclass(frozen=True, slots=True)
class Meeting(Generic[Amount]):
    """A join of two sets of inputs, for cost functions."""

    left: Flow[Amount]
    right: Flow[Amount]
    result: Flow[Amount]
    selectivity: float
    keyed: bool  # whether there is an equality between them


class Flows(Generic[Amount]):
    """The flow of every set of inputs, computed from those of single inputs (A, equations 3 to
    6)."""

    def __init__(self, graph: JoinGraph, inputs: Sequence[Flow[Amount]]) -> None:
        self.graph = graph
        self._products = {1 << port: flow for port, flow in enumerate(inputs)}
        self._flows: dict[int, Flow[Amount]] = {}
        self._selectivity: dict[int, float] = {}

    def of(self, inputs: int) -> Flow[Amount]:
        if inputs not in self._flows:
            all_pairs, share = self._product(inputs), self.selectivity(inputs)
            self._flows[inputs] = Flow(all_pairs.rate * share, all_pairs.size * share)
        return self._flows[inputs]

    def selectivity(self, inputs: int) -> float:
        if inputs not in self._selectivity:
            self._selectivity[inputs] = self.graph.selectivity(inputs)
        return self._selectivity[inputs]

    def meeting(self, left: int, right: int) -> Meeting[Amount]:
        whole = self.selectivity(left | right)
        apart = self.selectivity(left) * self.selectivity(right)
        return Meeting(
            self.of(left),
            self.of(right),
            self.of(left | right),
            whole / apart if whole else 0.0,
            self.graph.keyed(left, right),
        )

    def _product(self, inputs: int) -> Flow[Amount]:
        """The flow without conditions."""
        if inputs not in self._products:
            last = 1 << inputs.bit_length() - 1
            rest, one = self._product(inputs ^ last), self._products[last]
            rate = rest.rate * one.size + rest.size * one.rate
            self._products[inputs] = Flow(rate, rest.size * one.size)
        return self._products[inputs]


def flows_of(graph: JoinGraph) -> Flows[float]:
    """The flows with nothing dropped."""
    return Flows(graph, [Flow(each.rate, each.size) for each in graph.inputs])
