"""Inner joins in an order in which each has a condition.

    (S₁ × S₂) ⋈ S₃ = π((S₁ ⋈ S₃) ⋈ S₂)

A FROM clause names its tables in any order, so two may be joined before the one that links them.
The rule orders the inputs of such a tree of joins so that each is connected to the inputs before
it, as close to the written order as possible: first inputs in which a key leads to one row, then
those with any equality, then those with another condition. Unconnected inputs are joined last.

Conditions: inner joins of three or more inputs; no condition can fail; shared joins stay whole. The
rule applies if it leaves fewer products, or fewer joins above a product. It is worse if a product
of small inputs beats a selective join of large ones (A, example 1): if rates are known, the later
search for the cheapest order finds that.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from millstream.logical.expressions import Column
from millstream.logical.plan import Join, JoinKind, Plan
from millstream.logical.uniqueness import unique_columns
from millstream.optimizer.facts.sharing import Consumers, with_inputs
from millstream.optimizer.join_graph import mask_of
from millstream.optimizer.join_orders.inner_joins import InnerJoins, inner_joins
from millstream.optimizer.join_orders.trees import Tree, left_deep
from millstream.optimizer.join_orders.trees import joins as joins_of


def connect_joins(plan: Plan, consumers: Consumers) -> Plan:
    done: dict[int, Plan] = {}

    def node(part: Plan) -> Plan:
        if id(part) not in done:
            done[id(part)] = changed(part)
        return done[id(part)]

    def changed(part: Plan) -> Plan:
        joins = inner_joins(part, consumers.are_several) if _has_product(part) else None
        if joins is not None and len(joins.inputs) > 2:
            connected = _Connected(joins)
            tree = connected.tree()
            written = (joins.products, connected.products(joins.written)[1])
            if connected.products(tree) < written:
                return joins.with_inputs(map(node, joins.inputs)).plan(tree)
        return with_inputs(part, *map(node, part.inputs))

    return node(plan)


def _has_product(part: Plan) -> bool:
    """Whether it is an inner join with a join without a condition somewhere below."""
    if not isinstance(part, Join) or part.kind is not JoinKind.INNER:
        return False
    nodes = (node for node in part.walk() if isinstance(node, Join))
    return any(node.kind is JoinKind.INNER and node.condition is None for node in nodes)


class _Connected:
    """The inputs of a tree of joins, and the conditions that connect them."""

    def __init__(self, joins: InnerJoins) -> None:
        self._joins = joins
        self._equalities = [mask_of([*{p for p, _ in c.members}]) for c in joins.classes]
        self._conditions = [joins.reads(condition) for condition in joins.others]
        self._unique = [unique_columns(input) for input in joins.inputs]

    def products(self, tree: Tree) -> tuple[int, int]:
        """The number of joins of a tree without a condition, and the number of others above one of
        them."""
        without, above = 0, 0
        product = 0  # the inputs that are in one
        for left, right in joins_of(tree):
            if not self._linked(left, right):
                without, product = without + 1, product | left | right
            elif product & (left | right):
                above, product = above + 1, product | left | right
        return without, above

    def tree(self) -> Tree:
        return reduce(lambda one, other: (one, other), map(left_deep, self._groups()))

    def _groups(self) -> Iterator[list[int]]:
        """Orders in which every input has a condition with those before it."""
        rest = list(range(len(self._joins.inputs)))
        while rest:
            group = [rest.pop(0)]
            while (following := self._next(mask_of(group), rest)) is not None:
                rest.remove(following)
                group.append(following)
            yield group

    def _next(self, bound: int, rest: list[int]) -> int | None:
        linked = (port for port in rest if self._linked(bound, 1 << port))
        return min(linked, key=lambda port: (self._rank(bound, port), port), default=None)

    def _linked(self, left: int, right: int) -> bool:
        equal = any(m & left and m & right for m in self._equalities)
        told = (m for m in self._conditions if not m & ~(left | right))
        return equal or any(m & left and m & right for m in told)

    def _rank(self, bound: int, port: int) -> int:
        """The rank of an input that is linked to the bound inputs: 0 if the link leads to one row,
        1 if it is an equality, else 2."""
        own = 1 << port
        equal = [
            equality
            for equality, m in zip(self._joins.classes, self._equalities, strict=True)
            if m & own and m & bound
        ]
        members = (each for equality in equal for each in equality.of(port))
        columns = {each.key for each in members if isinstance(each, Column)}
        if any(unique <= columns for unique in self._unique[port]):
            return 0
        return 1 if equal else 2
