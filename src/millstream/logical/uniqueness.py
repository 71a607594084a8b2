"""Columns that identify the rows of every snapshot.

NULL equals NULL and 0.0 equals -0.0, as in DISTINCT and GROUP BY.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import TypeAlias

from millstream.logical.expressions import Column
from millstream.logical.plan import (
    Aggregate,
    CountWindow,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Granularity,
    Intersection,
    Istream,
    Join,
    JoinKind,
    Lifetime,
    Map,
    PartitionedWindow,
    Plan,
    Rstream,
    Source,
    StrictDifference,
    TimeWindow,
    TopN,
)

Key: TypeAlias = tuple[str, str]  # of a column: qualifier and name
Keys: TypeAlias = list[frozenset[Key]]

_MANY = 8  # the number of sets of columns to keep


def has_unique_rows(plan: Plan) -> bool:
    """Whether no row is in a snapshot twice."""
    return bool(unique_columns(plan))


def at_most_one_row(plan: Plan) -> bool:
    """Whether no snapshot has two rows."""
    return frozenset() in unique_columns(plan)


def unique_columns(plan: Plan) -> Keys:
    """Sets of columns that together identify a row of a snapshot; the empty set if there is at most
    one row."""
    return list(islice(_unique(plan), _MANY))


def _unique(plan: Plan) -> Iterator[frozenset[Key]]:
    match plan:
        case Source():
            yield from _declared(plan)
        case TopN(limit=1, keys=()):
            yield frozenset()
        case Filter() | TopN() | Granularity() | Rstream() | Istream() | Dstream():
            yield from unique_columns(plan.input)  # each has only rows of a snapshot of its input
        case Difference() | StrictDifference() | Intersection():
            yield from unique_columns(plan.left)
        case Distinct():
            yield from unique_columns(plan.input)
            yield frozenset(field.key for field in plan.schema)
        case Aggregate():
            yield frozenset(key.field.key for key in plan.keys)
        case Map():
            yield from _renamed(plan, unique_columns(plan.input))
        case Join():
            yield from _joined(plan)
        case TimeWindow() | CountWindow() | PartitionedWindow():
            yield from unique_in_stream(plan.input)


def _joined(plan: Join) -> Iterator[frozenset[Key]]:
    """A FULL JOIN may have a row of NULLs from either side."""
    if plan.kind in (JoinKind.SEMI, JoinKind.ANTI):
        yield from unique_columns(plan.left)
    elif plan.kind is not JoinKind.FULL:
        for left, right in product(*map(unique_columns, plan.inputs)):
            yield left | right


def unique_in_stream(plan: Plan) -> Keys:
    """Sets of columns that together identify a row among all rows of a stream. Each row is valid
    at one instant, so a window contains it once."""
    match plan:
        case Source(lifetime=Lifetime.INSTANT):
            return _declared(plan)
        case Filter():
            return unique_in_stream(plan.input)
        case Map():
            return list(_renamed(plan, unique_in_stream(plan.input)))
    return []


def _declared(source: Source) -> Keys:
    return [frozenset((source.alias, name) for name in columns) for columns in source.unique]


def _renamed(plan: Map, keys: Keys) -> Iterator[frozenset[Key]]:
    """The sets whose columns still exist."""
    names: dict[Key, Key] = {}
    for output in plan.outputs:
        if isinstance(output.expression, Column):
            names.setdefault(output.expression.key, output.field.key)
    for key in keys:
        if key <= names.keys():
            yield frozenset(names[column] for column in key)
