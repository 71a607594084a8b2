"""The logical algebra: what a query computes, as a tree of frozen nodes.

Each node's meaning is one function of `reference.py`. Fields have names that are unique in their
schema (a qualifier and a name), and expressions refer to them by these names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from millstream.logical.expressions import Column, Expression, nullable, rewrite, walk
from millstream.model.time import ANY_TIME, INFINITY, TimeDomain

ARRIVAL = "$arrival"


@dataclass(frozen=True)
class Field:
    name: str
    type: pa.DataType
    qualifier: str = ""
    nullable: bool = True

    @property
    def key(self) -> tuple[str, str]:
        return self.qualifier, self.name

    @property
    def column(self) -> Column:
        return Column(self.name, self.type, self.qualifier, self.nullable)


Schema: TypeAlias = tuple[Field, ...]


@dataclass(frozen=True)
class Named:
    """An output column: an expression and its name."""

    expression: Expression
    name: str
    qualifier: str = ""

    @property
    def field(self) -> Field:
        expression = self.expression
        return Field(self.name, expression.type, self.qualifier, nullable(expression))


@dataclass(frozen=True)
class SortKey:
    expression: Expression
    descending: bool = False
    nulls_first: bool = True


class Plan:
    """The base of all nodes. `inputs` are the fields that contain plans, in order."""

    input_names: ClassVar[tuple[str, ...]] = ("input",)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return tuple(getattr(self, name) for name in self.input_names)

    @cached_property
    def schema(self) -> Schema:
        """By default, the schema of the first input."""
        return self.inputs[0].schema

    def with_inputs(self, *inputs: Plan) -> Plan:
        changes = dict(zip(self.input_names, inputs, strict=True))
        return replace(self, **changes)  # type: ignore[type-var]

    def walk(self) -> Iterator[Plan]:
        yield self
        for child in self.inputs:
            yield from child.walk()

    @cached_property
    def domain(self) -> TimeDomain:
        """The time domain of the plan; the binder ensures that there is only one."""
        for plan in self.inputs:
            if plan.domain != ANY_TIME:
                return plan.domain
        return ANY_TIME

    @cached_property
    def _own(self) -> tuple[Expression, ...]:
        own = (getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]
        return tuple(part for value in own for part in _expressions_in(value))

    @cached_property
    def _parts(self) -> tuple[Expression, ...]:
        return tuple(part for expression in self._own for part in walk(expression))


def _expressions_in(value: Any) -> Iterator[Expression]:
    if isinstance(value, tuple):
        for item in value:
            yield from _expressions_in(item)
    elif isinstance(value, Named | SortKey):
        yield value.expression
    elif isinstance(value, Expression):
        yield value


def map_expressions(plan: Plan, change: Callable[[Expression], Expression]) -> Plan:
    """The node with `change` applied to every part of its own expressions."""

    def changed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(changed, value))
        if isinstance(value, Named | SortKey):
            return replace(value, expression=rewrite(value.expression, change))
        return rewrite(value, change) if isinstance(value, Expression) else value

    own = {f.name: getattr(plan, f.name) for f in fields(plan)}  # type: ignore[arg-type]
    return replace(plan, **{k: changed(v) for k, v in own.items()})  # type: ignore[type-var]


def own_expressions(plan: Plan) -> tuple[Expression, ...]:
    """The node's own expressions."""
    return plan._own


def expressions(plan: Plan) -> tuple[Expression, ...]:
    """All parts of the node's own expressions."""
    return plan._parts


class Lifetime(Enum):
    """How long a row of a source is valid before any window."""

    INSTANT = "instant"  # [t, t+1), t its time
    INTERVAL = "interval"  # the row has its own interval
    CHANGES = "changes"  # from its time on, until a row of weight -1 deletes it
    ALWAYS = "always"


@dataclass(frozen=True)
class Source(Plan):
    """A registered stream or table. With `arrival`, rows carry their position in the stream's order
    (by time, then by arrival) in a hidden last column. Each set of `unique` columns identifies a
    row: of a stream among all rows, of a table at each instant. A `relation` does not determine
    when time begins, unless there are only tables."""

    stream: str
    alias: str
    columns: tuple[Field, ...]
    time: TimeDomain
    lifetime: Lifetime = Lifetime.INSTANT
    bounded: bool = True
    arrival: bool = False
    numbered: bool = True  # whether there is such an order
    unique: tuple[tuple[str, ...], ...] = ()
    relation: bool = False

    input_names = ()

    @cached_property
    def schema(self) -> Schema:
        fields = tuple(replace(field, qualifier=self.alias) for field in self.columns)
        if self.arrival:
            fields += (Field(ARRIVAL, pa.int64(), self.alias, nullable=False),)
        return fields

    @cached_property
    def domain(self) -> TimeDomain:
        return self.time


@dataclass(frozen=True)
class Filter(Plan):
    input: Plan
    predicate: Expression


@dataclass(frozen=True)
class Map(Plan):
    input: Plan
    outputs: tuple[Named, ...]

    @cached_property
    def schema(self) -> Schema:
        return tuple(output.field for output in self.outputs)


class JoinKind(Enum):
    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"


@dataclass(frozen=True)
class Join(Plan):
    """Without a condition every pair matches: INNER is then the Cartesian product."""

    left: Plan
    right: Plan
    kind: JoinKind = JoinKind.INNER
    condition: Expression | None = None

    input_names = ("left", "right")

    @cached_property
    def pairs(self) -> Schema:
        """The schema of the condition."""
        return self.left.schema + self.right.schema

    @cached_property
    def schema(self) -> Schema:
        left, right = self.left.schema, self.right.schema
        match self.kind:
            case JoinKind.SEMI | JoinKind.ANTI:
                return left
            case JoinKind.INNER:
                return left + right
            case JoinKind.LEFT:
                return left + _padded(right)
            case JoinKind.RIGHT:
                return _padded(left) + right
            case JoinKind.FULL:
                return _padded(left) + _padded(right)


def _padded(schema: Schema) -> Schema:
    return tuple(replace(field, nullable=True) for field in schema)


@dataclass(frozen=True)
class SetOperation(Plan):
    """Two inputs whose columns have the same types in the same order; the left names them."""

    left: Plan
    right: Plan

    input_names = ("left", "right")

    @cached_property
    def schema(self) -> Schema:
        pairs = zip(self.left.schema, self.right.schema, strict=True)
        return tuple(replace(a, nullable=a.nullable or b.nullable) for a, b in pairs)


class Union(SetOperation):
    """UNION ALL"""


class MaxUnion(SetOperation):
    """Each row with the larger of its multiplicities in the inputs."""


class Difference(SetOperation):
    """EXCEPT ALL"""


class StrictDifference(SetOperation):
    """The rows of the left that are not in the right at all."""


class Intersection(SetOperation):
    """INTERSECT ALL"""


@dataclass(frozen=True)
class Distinct(Plan):
    input: Plan


@dataclass(frozen=True)
class Aggregate(Plan):
    """One row per group; without keys, one row at every instant, even over no rows."""

    input: Plan
    keys: tuple[Named, ...]
    aggregates: tuple[Named, ...]

    @cached_property
    def schema(self) -> Schema:
        return tuple(output.field for output in self.keys + self.aggregates)


@dataclass(frozen=True)
class TopN(Plan):
    """The first `limit` rows of every snapshot in the order of `order`; with `keys`, of every
    group. The binder completes the order, so that ties are deterministic."""

    input: Plan
    limit: int
    order: tuple[SortKey, ...]
    keys: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class TimeWindow(Plan):
    """`size` and `slide` in chronons, INFINITY for UNBOUNDED. With a granule, the window is over
    the granules of its input, and both are multiples of it. `minimum` is the bound MIN, which
    is not used yet."""

    input: Plan
    size: int
    slide: int = 1
    granule: int = 1
    minimum: int | None = None

    def __post_init__(self) -> None:
        whole = self.size == INFINITY or self.size % self.granule == 0
        assert whole, "a window has whole granules"
        assert self.slide % self.granule == 0, "a window slides by whole granules"


@dataclass(frozen=True)
class CountWindow(Plan):
    """The last `rows` rows, INFINITY for UNBOUNDED; `order` orders the rows of one instant.
    `minimum` is the bound MIN, which is not used yet."""

    input: Plan
    rows: int
    order: tuple[Expression, ...]
    slide: int = 1
    granule: int = 1
    minimum: int | None = None


@dataclass(frozen=True)
class PartitionedWindow(Plan):
    """The last `rows` rows of each partition."""

    input: Plan
    keys: tuple[Expression, ...]
    rows: int
    order: tuple[Expression, ...]
    slide: int = 1
    granule: int = 1
    minimum: int | None = None


@dataclass(frozen=True)
class Granularity(Plan):
    """The input as it was at the start of the granule. `coarsest` is the bound COARSEST, which
    is not used yet."""

    input: Plan
    granule: int
    coarsest: int | None = None


@dataclass(frozen=True)
class Istream(Plan):
    """The rows inserted at each instant."""

    input: Plan


@dataclass(frozen=True)
class Dstream(Plan):
    """The rows deleted at each instant."""

    input: Plan


@dataclass(frozen=True)
class Rstream(Plan):
    """The whole input again in each granule."""

    input: Plan
    granule: int = 1


def beginners(plan: Plan) -> list[Source]:
    """The sources whose first row determines when time begins."""
    sources = [node for node in plan.walk() if isinstance(node, Source)]
    return [source for source in sources if not source.relation] or sources


def is_unbounded(window: TimeWindow | CountWindow | PartitionedWindow) -> bool:
    size = window.size if isinstance(window, TimeWindow) else window.rows
    return size == INFINITY


def rename(plan: Plan, names: list[tuple[str, str]]) -> Plan:
    """`plan` with its columns named (qualifier, name) in order."""
    if [field.key for field in plan.schema] == names:
        return plan
    if isinstance(plan, Map):
        outputs = plan.outputs
    else:
        outputs = tuple(Named(f.column, f.name, f.qualifier) for f in plan.schema)
        plan = Map(plan, outputs)
    renamed = (
        Named(output.expression, name, qualifier)
        for output, (qualifier, name) in zip(outputs, names, strict=True)
    )
    return replace(plan, outputs=tuple(renamed))


NODE_TYPES: dict[str, type[Plan]] = {
    node.__name__: node
    for node in (
        Source, Filter, Map, Join, Union, MaxUnion, Difference, StrictDifference, Intersection,
        Distinct, Aggregate, TopN, TimeWindow, CountWindow, PartitionedWindow, Granularity,
        Istream, Dstream, Rstream,
    )
}  # fmt: skip


def is_known(plan: Plan) -> bool:
    """Whether it is an operator of this algebra; nothing is known about others."""
    return type(plan) in NODE_TYPES.values()


def sources_of(plan: Plan) -> list[str]:
    """The names of the streams and tables that a plan reads."""
    return sorted({node.stream for node in plan.walk() if isinstance(node, Source)})
