"""Which rows an operator must process together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from millstream.logical.evaluate import is_deterministic
from millstream.logical.expression_facts import can_fail
from millstream.logical.expressions import Column, Expression
from millstream.logical.plan import JoinKind, Named, Schema
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.aggregate import Aggregate
from millstream.physical.operators.changes import Changes
from millstream.physical.operators.coalesce import Coalesce
from millstream.physical.operators.count_window import CountWindow
from millstream.physical.operators.cut import Cut
from millstream.physical.operators.deltas import Deltas
from millstream.physical.operators.distinct import Distinct
from millstream.physical.operators.join import Join, JoinKey
from millstream.physical.operators.lookup_join import LookupJoin
from millstream.physical.operators.map import Map
from millstream.physical.operators.outer_join import OuterJoin
from millstream.physical.operators.pointwise import Form, Pointwise
from millstream.physical.operators.semi_join import SemiJoin
from millstream.physical.operators.split import Split
from millstream.physical.operators.top_n import TopN
from millstream.physical.operators.union import Union
from millstream.physical.plan_data import OPERATOR_KINDS

ColumnKey: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Requirement:
    """The keys whose equal values must be in one shard: per key an expression over each input, and
    the columns of the output that are equal to it. No keys: all rows must be together. The rows of
    the input `everywhere` go to all shards, so that input does not determine the placement."""

    sides: tuple[tuple[Expression, ...], ...]  # by key, then by input
    results: tuple[frozenset[ColumnKey], ...]
    everywhere: int | None = None

    @property
    def count(self) -> int:
        return len(self.sides)

    def keys(self, port: int, kept: tuple[int, ...]) -> tuple[Expression, ...]:
        if port == self.everywhere:
            return ()
        return tuple(self.sides[position][port] for position in kept)

    def columns(self, port: int) -> list[ColumnKey | None]:
        """The keys over an input that are plain columns."""
        return [_column(side[port]) for side in self.sides]


ALL_TOGETHER = Requirement((), ())


def requirement(node: PhysicalPlan) -> Requirement:
    match node:
        case Aggregate():
            return _by([(n.expression,) for n in node.keys], [[n.field.key] for n in node.keys])
        case Join() | OuterJoin() | SemiJoin() | LookupJoin():
            sides = [(key.left, key.right) for key in node.keys]
            return _by(sides, [_joined(node, key) for key in node.keys])
        case CountWindow() | TopN():
            return _by([(key,) for key in node.keys], [_own(key) for key in node.keys])
        case Changes() if _holds(node.input):
            return ALL_TOGETHER  # shards with different progress would show partial instants
        case Distinct() | Changes() | Deltas() | Coalesce() | Cut() | Split():
            return _whole_rows([node.input.schema], node.schema)
        case Pointwise():
            return _whole_rows([source.schema for source in node.sources], node.schema)
        case Union():
            return _whole_rows([node.left.schema, node.right.schema], node.schema)
    return ALL_TOGETHER


def spread(node: PhysicalPlan, small: int, insist: bool = False) -> Requirement | None:
    """For a join without a key: the rows of one input are distributed over all shards, equal ones
    together, and those of the other are replicated, preferably `small`; `insist`: only that one. A
    row that is kept without a partner must be in one shard only."""
    match node:
        case OuterJoin(outer=(left, right)):
            allowed = [port for port, kept in enumerate((left, right)) if not kept]
        case SemiJoin() | LookupJoin(kind=JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI):
            allowed = [1]
        case Join() | LookupJoin():
            allowed = [0, 1]
        case _:
            return None
    if not allowed or (insist and small not in allowed):
        return None
    everywhere = small if small in allowed else allowed[-1]
    fields = node.inputs[1 - everywhere].schema
    sides = tuple((field.column, field.column) for field in fields)
    return Requirement(sides, tuple(frozenset([field.key]) for field in fields), everywhere)


def _holds(node: PhysicalPlan) -> bool:
    """Whether some operator waits for the ends of its rows, which are unpredictable. One of an
    unknown kind may."""
    match node:
        case Aggregate() | CountWindow() | Pointwise() | SemiJoin():
            waits = node.form is Form.INTERVALS and not node.final
        case _:
            waits = type(node) not in OPERATOR_KINDS.values()
    return waits or any(map(_holds, node.inputs))


def _by(sides: Sequence[tuple[Expression, ...]], results: Sequence[list[ColumnKey]]) -> Requirement:
    """Requires the keys that can be computed for every row."""
    safe = [
        (side, frozenset(result))
        for side, result in zip(sides, results, strict=True)
        if not any(can_fail(e) or not is_deterministic(e) for e in side)
    ]
    return Requirement(tuple(side for side, _ in safe), tuple(result for _, result in safe))


def _whole_rows(inputs: list[Schema], output: Schema) -> Requirement:
    sides = [tuple(field.column for field in fields) for fields in zip(*inputs, strict=True)]
    return _by(sides, [[field.key] for field in output])


def _joined(node: Join | OuterJoin | SemiJoin | LookupJoin, key: JoinKey) -> list[ColumnKey]:
    """The output columns equal to the key in every row: not those of a side that may be padded with
    NULLs."""
    match node:
        case OuterJoin(outer=(left, right)):
            return ([] if right else _own(key.left)) + ([] if left else _own(key.right))
        case SemiJoin() | LookupJoin(kind=JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI):
            return _own(key.left)
    return _own(key.left) + _own(key.right)


def following(node: PhysicalPlan, names: frozenset[ColumnKey]) -> Iterable[ColumnKey]:
    """The columns of a stateless operator's output that are equal to columns of its input."""
    if not isinstance(node, Map):
        return names
    return [out.field.key for out in node.outputs if _is_one_of(out, names)]


def _is_one_of(output: Named, names: frozenset[ColumnKey]) -> bool:
    return _column(output.expression) in names


def _column(expression: Expression) -> ColumnKey | None:
    return expression.key if isinstance(expression, Column) else None


def _own(expression: Expression) -> list[ColumnKey]:
    key = _column(expression)
    return [] if key is None else [key]
