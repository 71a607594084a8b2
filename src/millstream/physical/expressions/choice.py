"""AND, OR, CASE and COALESCE: they evaluate their arguments from left to right and only as far as
each row needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.model.types import BOOLEAN
from millstream.physical.expressions.nodes import Frame, Node
from millstream.physical.expressions.vector import (
    Gathering,
    Mask,
    Vector,
    as_array,
    either,
    mask_of,
    null_where,
)


def _inputs(nodes: Sequence[Node]) -> frozenset[int]:
    return frozenset().union(*(node.inputs for node in nodes))


def _of_rows(node: Node, frame: Frame, needed: Mask) -> Vector:
    """The node's values in the needed rows, NULL in the others; guarded nodes are evaluated only
    for the needed rows."""
    if node.guarded and not needed.all():
        rows = np.flatnonzero(needed)
        gathering = Gathering(node.type, frame.length)
        if len(rows):
            gathering.add(rows, node.run(frame.rows(rows)))
        return gathering.vector()
    vector = node.run(frame)
    return vector if vector.failed is None else Vector(vector.values, vector.failed & needed)


class Connective(Node):
    """AND, which one FALSE decides, or OR, which one TRUE decides.

    A failed row stays failed, whatever follows; a NULL does not decide.
    """

    type = BOOLEAN

    def __init__(self, arguments: Sequence[Node], decisive: bool) -> None:
        self.arguments = tuple(arguments)
        self.decisive = decisive
        self.inputs = _inputs(arguments)
        self.guarded = any(node.guarded for node in arguments)
        self._combine = pc.get_function("or_kleene" if decisive else "and_kleene").call

    def run(self, frame: Frame) -> Vector:
        first, *others = self.arguments
        values, failed = first.run(frame)
        values = as_array(values, frame.length)
        for node in others:
            if node.guarded:
                vector = _of_rows(node, frame, self._undecided(values, failed))
            else:
                vector = node.run(frame)
                if vector.failed is not None:
                    undecided = self._undecided(values, failed)
                    vector = Vector(vector.values, vector.failed & undecided)
            values = self._combine([values, vector.values])
            failed = either(failed, vector.failed)
        return Vector(null_where(values, failed), failed)

    def _undecided(self, values: pa.Array, failed: Mask | None) -> Mask:
        decided = mask_of(values if self.decisive else pc.invert(values))
        return ~decided if failed is None else ~(decided | failed)


class Case(Node):
    """The value of the first condition that is TRUE, else that of the last node.

    If no branch is guarded, all branches are evaluated for all rows and the conditions choose;
    otherwise each branch is evaluated for the rows that reach it.
    """

    def __init__(self, conditions: Sequence[Node], values: Sequence[Node], type: pa.DataType):
        assert len(values) == len(conditions) + 1
        self.conditions = tuple(conditions)
        self.values = tuple(values)
        self.type = type
        nodes = (*conditions, *values)
        self.inputs = _inputs(nodes)
        self.guarded = any(node.guarded for node in nodes)
        self._branches_guarded = any(node.guarded for node in nodes[1:])

    def run(self, frame: Frame) -> Vector:
        return self._by_branch(frame) if self._branches_guarded else self._at_once(frame)

    def _at_once(self, frame: Frame) -> Vector:
        conditions = [node.run(frame) for node in self.conditions]
        *values, (result, failed) = [node.run(frame) for node in self.values]
        for condition, value in zip(reversed(conditions), reversed(values), strict=True):
            met = condition.values
            if met.null_count:
                met = met.fill_null(False)
            result = pc.if_else(met, value.values, result)
            if failed is not None or value.failed is not None or condition.failed is not None:
                failed = _where(mask_of(met), value.failed, failed, condition.failed)
        return Vector(null_where(result, failed), failed)

    def _by_branch(self, frame: Frame) -> Vector:
        gathering = Gathering(self.type, frame.length)
        rows: npt.NDArray[np.int64] = np.arange(frame.length)
        rest = frame
        for condition, value in zip(self.conditions, self.values, strict=False):
            met, failed = condition.run(rest)
            chosen = mask_of(met)
            if failed is not None:
                gathering.fail(rows[failed])
            if chosen.any():
                gathering.add(rows[chosen], _part(value, rest, chosen))
            left = np.flatnonzero(~chosen if failed is None else ~(chosen | failed))
            if not len(left):
                return gathering.vector()
            if len(left) < len(rows):
                rows, rest = rows[left], rest.rows(left)
        gathering.add(rows, self.values[-1].run(rest))
        return gathering.vector()


def _part(node: Node, frame: Frame, chosen: Mask) -> Vector:
    return node.run(frame if chosen.all() else frame.rows(np.flatnonzero(chosen)))


def _where(met: Mask, value: Mask | None, otherwise: Mask | None, condition: Mask | None) -> Mask:
    """The rows that fail in the condition or in the chosen branch."""
    failed = np.zeros(len(met), np.bool_)
    if value is not None:
        failed |= value & met
    if otherwise is not None:
        failed |= otherwise & ~met
    return failed if condition is None else failed | condition


class FirstNotNull(Node):
    """The first value that is not NULL."""

    def __init__(self, arguments: Sequence[Node], type: pa.DataType) -> None:
        self.arguments = tuple(arguments)
        self.type = type
        self.inputs = _inputs(arguments)
        self.guarded = any(node.guarded for node in arguments)

    def run(self, frame: Frame) -> Vector:
        first, *others = self.arguments
        values, failed = first.run(frame)
        values = as_array(values, frame.length)
        for node in others:
            if not values.null_count:
                break
            open_rows = mask_of(values.is_null())
            needed = open_rows if failed is None else open_rows & ~failed
            vector = _of_rows(node, frame, needed)
            values = pc.coalesce(values, vector.values)
            failed = either(failed, vector.failed)
        return Vector(null_where(values, failed), failed)
