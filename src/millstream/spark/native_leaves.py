"""Filters and projections that Spark applies at the sources of a plan, so that it does not read
unneeded rows and columns or send them to Python.

The plan does not change. Columns that an error message would show count as needed. But a dropped
row cannot be the first, the last, late or bad: such rows and their times are read separately.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from millstream.logical.catalog import Stream
from millstream.logical.expressions import Column
from millstream.logical.failing import rows_can_fail
from millstream.logical.plan import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Map,
    Plan,
    Source,
    TimeWindow,
    expressions,
)
from millstream.spark.native import native_conjuncts
from millstream.spark.schemas import spark_type
from millstream.spark.sql_text import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class NativeLeaf:
    """The rows and columns of a stream that a plan needs."""

    stream: Stream
    where: str | None  # None: all rows
    columns: frozenset[str]

    @property
    def is_all(self) -> bool:
        return self.where is None and len(self.columns) == len(self.stream.columns)

    def frame(self, frame: DataFrame) -> DataFrame:
        """The needed rows of a typed frame, with NULL in the columns that are not needed."""
        from pyspark.sql.functions import lit

        if self.where is not None:
            frame = frame.where(self.where)
        return frame.select(
            [
                frame[quoted(c.name)]
                if c.name in self.columns
                else lit(None).cast(spark_type(c.type)).alias(c.name)
                for c in self.stream.columns
            ]
        )

    def text(self) -> str:
        """A line of `explain`."""
        columns = [c.name for c in self.stream.columns if c.name in self.columns]
        condition = "" if self.where is None else f" where {self.where}"
        return f"native: {self.stream.name} columns=[{', '.join(columns)}]{condition}"


def native_leaf(plan: Plan, stream: Stream) -> NativeLeaf:
    """What the plan needs of a stream, over all places that read it."""
    conditions: list[str | None] = []
    columns = set(stream.time)
    for path in _paths(plan):
        source = path[0]
        if isinstance(source, Source) and source.stream == stream.name:
            conditions.append(_condition(path))
            columns |= _needed(plan, path)
    texts = [text for text in conditions if text is not None]
    useful = len(texts) == len(conditions)
    where = " OR ".join(texts if len(texts) == 1 else [f"({text})" for text in texts])
    return NativeLeaf(stream, where or None if useful else None, frozenset(columns))


def _paths(plan: Plan, above: tuple[Plan, ...] = ()) -> Iterator[tuple[Plan, ...]]:
    """The paths from each source up to the root."""
    path = (plan, *above)
    if not plan.inputs:
        yield path
    for child in plan.inputs:
        yield from _paths(child, path)


def _condition(path: tuple[Plan, ...]) -> str | None:
    """The conditions of the filters after the source, as far as Spark can evaluate them."""
    names = {field.key: field.name for field in path[0].schema}
    texts: list[str] = []
    for below, node in pairwise(path):
        if isinstance(node, Filter):
            texts += native_conjuncts(node.predicate, names)[0]
        if not _passes_rows(node, below) or rows_can_fail(node):
            break
    return " AND ".join(texts if len(texts) == 1 else [f"({t})" for t in texts]) or None


def _passes_rows(node: Plan, below: Plan) -> bool:
    """Whether a row that a later filter drops has no other effect."""
    if isinstance(node, Join):
        kept = node.left if node.kind in (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI) else None
        kept = node.right if node.kind is JoinKind.RIGHT else kept
        return node.kind is JoinKind.INNER or kept is below
    return isinstance(node, Filter | TimeWindow)


def _needed(plan: Plan, path: tuple[Plan, ...]) -> set[str]:
    """The source columns that an operator reads, that are output, or that an error shows."""
    source, *above = path
    keys = {field.key: field.name for field in source.schema}
    for node in above:
        if not isinstance(node, _OF_ROWS) or rows_can_fail(node):
            break
        if isinstance(node, Map | Aggregate):
            used = (part for node in plan.walk() for part in expressions(node))
            return {keys[u.key] for u in used if isinstance(u, Column) and u.key in keys}
    return set(keys.values())


_OF_ROWS = (Filter, TimeWindow, Join, Map, Aggregate)  # these use rows only by named columns
