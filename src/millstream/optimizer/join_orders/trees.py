"""Trees of binary joins over numbered inputs: an input, or a pair of trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TypeAlias, cast

from millstream.optimizer.join_graph import members

Tree: TypeAlias = "int | tuple[Tree, Tree]"


def left_deep(order: Sequence[int]) -> Tree:
    """((1 ⋈ 2) ⋈ 3) ⋈ …

    >>> left_deep([2, 0, 1])
    ((2, 0), 1)
    """
    first, *rest = order
    return reduce(lambda tree, port: (tree, port), rest, cast(Tree, first))


def leaves(tree: Tree) -> Iterator[int]:
    """The inputs from left to right."""
    if isinstance(tree, int):
        yield tree
    else:
        yield from leaves(tree[0])
        yield from leaves(tree[1])


def joins(tree: Tree) -> Iterator[tuple[int, int]]:
    """The sets of inputs on both sides of each join, lower joins first."""
    if not isinstance(tree, int):
        for side in tree:
            yield from joins(side)
        yield inputs_of(tree[0]), inputs_of(tree[1])


def inputs_of(tree: Tree) -> int:
    if isinstance(tree, int):
        return 1 << tree
    return inputs_of(tree[0]) | inputs_of(tree[1])


def splits(inputs: int, bushy: bool) -> Iterator[tuple[int, int]]:
    """The ways to split a set of inputs into the sides of a last join, each once: cost does not
    distinguish left from right. In left-deep trees the right side is one input."""
    if not bushy:
        for last in members(inputs):
            rest = inputs ^ 1 << last
            # Of two single inputs, the smaller number is on the left.
            if rest & rest - 1 or rest < 1 << last:
                yield rest, 1 << last
        return
    last = 1 << inputs.bit_length() - 1
    right = inputs
    while right:
        if right & last and right != inputs:
            yield inputs ^ right, right
        right = right - 1 & inputs
