"""The nodes of a compiled expression: each computes the values for a batch of rows.

In a branch of AND, OR, CASE or COALESCE, a `guarded` node is evaluated only for the rows that need
it, because it calls user code or is slow. Other nodes are evaluated for all rows, which is faster
than selecting some, and failures in branches not taken are discarded (`d <> 0 AND n / d > 2`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.model.values import to_arrow
from millstream.physical.expressions.formulas import Formula, column_formula, constant_formula
from millstream.physical.expressions.programs import Program
from millstream.physical.expressions.vector import (
    Mask,
    Vector,
    as_array,
    either,
    mask_of,
    null_scalar,
    null_where,
    present,
)

# Takes the values of the arguments: an array each, or a scalar if and only if it is constant.
Kernel: TypeAlias = Callable[..., Vector]


class Frame:
    """A batch of rows: its columns, gathered on demand, and its length."""

    __slots__ = ("columns", "known", "length", "rows_of")

    def __init__(self, columns: Sequence[pa.Array], length: int) -> None:
        self.columns = columns
        self.length = length
        self.known: dict[SharedNode, Vector] = {}  # results for these rows
        self.rows_of: tuple[Frame, npt.NDArray[np.int64]] | None = None  # their origin

    def rows(self, indices: npt.NDArray[np.int64]) -> Frame:
        """The rows with these numbers."""
        frame = Frame(_Taken(self.columns, pa.array(indices)), len(indices))
        frame.rows_of = self, indices
        return frame

    def evaluated(self, node: SharedNode) -> Vector | None:
        """The node's result for these rows, or for a batch they were taken from, if known."""
        vector = self.known.get(node)
        if vector is None and self.rows_of is not None:
            frame, indices = self.rows_of
            vector = frame.evaluated(node)
            if vector is not None:
                failed = None if vector.failed is None else vector.failed[indices]
                vector = self.known[node] = Vector(vector.values.take(pa.array(indices)), failed)
        return vector


class _Taken(Sequence[pa.Array]):
    """Columns whose rows are selected on first use."""

    def __init__(self, columns: Sequence[pa.Array], indices: pa.Array) -> None:
        self._columns = columns
        self._indices = indices
        self._taken: dict[int, pa.Array] = {}

    def __getitem__(self, position: int) -> pa.Array:  # type: ignore[override]
        if position not in self._taken:
            self._taken[position] = self._columns[position].take(self._indices)
        return self._taken[position]

    def __len__(self) -> int:
        return len(self._columns)


class Node(ABC):
    """A part of an expression."""

    type: pa.DataType
    inputs: frozenset[int] = frozenset()  # positions of the columns it reads
    guarded: bool = False
    formula: Formula | None = None  # computes it where nothing can fail

    @abstractmethod
    def run(self, frame: Frame) -> Vector:
        """Its values for all rows of the frame."""

    def rows(self, frame: Frame) -> Vector:
        """Its values, always as an array; `failed` is None if no row failed."""
        vector = self.run(frame)
        if vector.failed is not None and not vector.failed.any():
            return Vector(vector.values)
        return vector

    def mask(self, frame: Frame) -> tuple[Mask, Mask | None]:
        """Where a condition is TRUE, and the rows that failed."""
        values, failed = self.run(frame)
        return mask_of(values), failed


class ColumnNode(Node):
    def __init__(self, position: int, type: pa.DataType) -> None:
        self.position = position
        self.type = type
        self.inputs = frozenset([position])
        self.formula = column_formula(position, type)

    def run(self, frame: Frame) -> Vector:
        return Vector(frame.columns[self.position])


class Constant(Node):
    """One value for all rows: the only node whose values are a scalar."""

    def __init__(self, plain: object, type: pa.DataType) -> None:
        self.plain = plain
        self.type = type
        self.formula = constant_formula(plain, type)
        self.scalar = to_arrow([plain], type)[0] if plain is not None else null_scalar(type)
        self._vector = Vector(self.scalar)
        self._repeated = pa.nulls(0, type)

    def run(self, frame: Frame) -> Vector:
        return self._vector

    def rows(self, frame: Frame) -> Vector:
        """Kept for batches of the same length or shorter ones."""
        if len(self._repeated) < frame.length:
            self._repeated = as_array(self.scalar, frame.length)
        return Vector(self._repeated.slice(0, frame.length))

    def mask(self, frame: Frame) -> tuple[Mask, Mask | None]:
        return np.full(frame.length, self.plain is True), None


class Failing(Node):
    """A constant whose evaluation fails: every row fails."""

    def __init__(self, type: pa.DataType) -> None:
        self.type = type

    def run(self, frame: Frame) -> Vector:
        return Vector(pa.nulls(frame.length, self.type), np.ones(frame.length, np.bool_))


class Drawn(Node):
    """A function with a new value per row, independent of the row."""

    def __init__(self, draw: Callable[[int], pa.Array], type: pa.DataType) -> None:
        self._draw = draw
        self.type = type

    def run(self, frame: Frame) -> Vector:
        return Vector(self._draw(frame.length))


def _failed(vectors: Sequence[Vector], order: Sequence[int]) -> Mask | None:
    """The rows in which an evaluated argument failed. With an order, arguments after a NULL are not
    evaluated; without one, all are."""
    failed: Mask | None = None
    if not any(vector.failed is not None for vector in vectors):
        return None
    for place, number in enumerate(order or range(len(vectors))):
        new = vectors[number].failed
        if new is None:
            continue
        before = [vectors[n].values for n in order[:place]]
        if any(isinstance(value, pa.Scalar) and not value.is_valid for value in before):
            continue
        valid = present(*before)
        failed = either(failed, new if valid is None else new & valid)
    return failed


class Applied(Node):
    """A function of arguments that are all evaluated first.

    `strict`: a NULL argument makes the result NULL; `order` says which failures then count. If
    Arrow cannot compute a batch, `exact` does, by the reference.
    """

    def __init__(
        self,
        arguments: Sequence[Node],
        type: pa.DataType,
        kernel: Kernel,
        exact: Kernel,
        *,
        strict: bool,
        guarded: bool,
        order: Sequence[int] = (),
    ) -> None:
        self._order = order
        self.arguments = tuple(arguments)
        self.type = type
        self.inputs = frozenset().union(*(node.inputs for node in arguments))
        self.guarded = guarded or any(node.guarded for node in arguments)
        self._kernel = kernel
        self._exact = exact
        self._strict = strict

    def run(self, frame: Frame) -> Vector:
        vectors = [argument.run(frame) for argument in self.arguments]
        values = [vector.values for vector in vectors]
        failed = _failed(vectors, self._order)
        try:
            result = self._kernel(*values)
        except pa.ArrowException:
            result = self._exact(*values)
        if failed is None:
            return result
        kept = result.values if self._strict else null_where(result.values, failed)
        return Vector(kept, either(failed, result.failed))


class Direct(Node):
    """A node with a formula: computed by it, or like any other node where the formula gives up."""

    def __init__(self, node: Node, formula: Formula) -> None:
        self.type = node.type
        self.inputs = node.inputs
        self.guarded = node.guarded
        self.formula: Formula = formula
        self._node = node

    @cached_property
    def _program(self) -> Program:
        return Program([self.formula])

    def run(self, frame: Frame) -> Vector:
        values = self._program.values(frame.columns, frame.length)
        return self._node.run(frame) if values is None else Vector(values[0])

    def mask(self, frame: Frame) -> tuple[Mask, Mask | None]:
        holds = self._program.mask(frame.columns, frame.length)
        return self._node.mask(frame) if holds is None else (holds, None)


class AlwaysNull(Node):
    """A strict function with an argument that is NULL in every row; arguments before it may still
    fail."""

    def __init__(
        self, arguments: Sequence[Node], type: pa.DataType, order: Sequence[int] = ()
    ) -> None:
        self._order = order
        self.arguments = tuple(arguments)
        self.type = type
        self.inputs = frozenset().union(*(node.inputs for node in arguments))
        self.guarded = any(node.guarded for node in arguments)

    def run(self, frame: Frame) -> Vector:
        failed = _failed([argument.run(frame) for argument in self.arguments], self._order)
        return Vector(pa.nulls(frame.length, self.type), failed)


class SharedNode(Node):
    """A part that occurs more than once in an expression, evaluated once for the same rows."""

    def __init__(self, node: Node) -> None:
        self.type = node.type
        self.inputs = node.inputs
        self.guarded = node.guarded
        self.formula = node.formula
        self._node = node

    def run(self, frame: Frame) -> Vector:
        vector = frame.evaluated(self)
        if vector is None:
            vector = frame.known[self] = self._node.run(frame)
        return vector


class Attempt(Node):
    """TRY_CAST: failures of the cast, but not those of its operand, become NULL."""

    def __init__(
        self, operand: Node, type: pa.DataType, kernel: Kernel, exact: Kernel, *, guarded: bool
    ) -> None:
        self.operand = operand
        self.type = type
        self.inputs = operand.inputs
        self.guarded = guarded or operand.guarded
        self._kernel = kernel
        self._exact = exact

    def run(self, frame: Frame) -> Vector:
        vector = self.operand.run(frame)
        try:
            values = self._kernel(vector.values).values
        except pa.ArrowException:
            values = self._exact(vector.values).values
        return Vector(values, vector.failed)
