"""Operators without state: source, filter, map, union, time window, granularity (K §22.4.1, .2, .8,
.9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from millstream.logical.expressions import Column, walk
from millstream.logical.plan import ARRIVAL
from millstream.model.time import INFINITY
from millstream.optimizer.cost.characteristics import (
    INFINITE,
    Characteristics,
    ColumnFacts,
    Key,
)
from millstream.optimizer.cost.model import Given, Model
from millstream.optimizer.cost.selectivity import facts_of_value, filtered, parts_of
from millstream.optimizer.cost.work import Primitive
from millstream.optimizer.statistics import DISTINCT, RAW_BATCH, TABLE_ROWS, width_of
from millstream.physical.operators.filter import Filter
from millstream.physical.operators.granularity import Granularity
from millstream.physical.operators.map import Map
from millstream.physical.operators.source import Source
from millstream.physical.operators.time_window import TimeWindow
from millstream.physical.operators.union import Union

# --- formulas -------------------------------------------------------------------------------------


def filter_distance(d: float, selectivity: float) -> float:
    """K eq. 22.1: d' = d / sel."""
    return d / selectivity if selectivity > 0 else INFINITE


def union_distance_length(inputs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """K eq. 22.3: rates add up, and validity is the mean weighted by rate."""
    rate = sum(1 / d for d, _ in inputs)
    return 1 / rate, sum(life / d for d, life in inputs) / rate


def granularity_distance_length(d: float, life: float, g: float) -> tuple[float, float]:
    """K eq. 22.9: rows shorter than a granule are dropped unless they are valid at its start, and
    then they are valid for the whole granule."""
    return (d, life) if life >= g else (d * g / life, g)


# --- operators ------------------------------------------------------------------------------------


def source(node: Source, inputs: Sequence[Characteristics], model: Model) -> Given:
    """d from the rate, l = 1 for rows of an instant (K §22.2.2)."""
    statistics, name = model.statistics, node.stream
    known = statistics.stream(name)
    columns: dict[Key, ColumnFacts] = {}
    widths = [known.column(f.name).width or width_of(f.type) for f in node.schema]
    scale = 1.0 if known.size is None else known.size / max(sum(widths), 1.0)
    for field, width in zip(node.schema, widths, strict=True):
        column = known.column(field.name)
        unknown = INFINITE if field.name == ARRIVAL else _default_distinct(field.type)
        distinct = unknown if column.distinct is None else column.distinct
        columns[field.key] = ColumnFacts(distinct, width * scale, column.low, column.high)
    if node.is_table:
        return _table(node, columns, model)
    distance = statistics.distance(name)
    batches = 1 / (distance * statistics.batch(name))
    length = 1.0 if known.length is None else known.length
    output = Characteristics(
        distance,
        length,
        columns=columns,
        fixed=known.length is None,
        regular=known.regular,
        batches=batches,
    )
    return Given(output, {Primitive.PASS: output.elements})


def _table(node: Source, columns: dict[Key, ColumnFacts], model: Model) -> Given:
    """Its rows are present from the start; each change inserts one row and deletes one by a
    separate element. Without changes, time still advances, about every second."""
    statistics = model.statistics
    known = statistics.stream(node.stream)
    changes = (known.rate or 0.0) / statistics.second
    rows = TABLE_ROWS if known.rows is None else max(1.0, known.rows)
    rate, length = model.lasting(changes, rows)
    beat = statistics.second if statistics.domain.microseconds else RAW_BATCH
    output = Characteristics(
        1 / rate,
        length,
        columns=columns,
        retracted=min(1.0, changes / rate),
        written=INFINITE,
        batches=max(changes / statistics.batch(node.stream), 1 / beat),
    )
    return Given(output, {Primitive.PASS: output.elements})


def _default_distinct(type: object) -> float:
    return 2.0 if str(type) == "bool" else DISTINCT


def filter(node: Filter, inputs: Sequence[Characteristics], model: Model) -> Given:
    """K eq. 22.1 and 22.14: each row is tested, and rows that pass are gathered."""
    (input,) = inputs
    share, columns = filtered(node.predicate, input, model)
    distance = filter_distance(input.distance, max(share, 1e-12))
    output = replace(
        input,
        distance=distance,
        columns=columns,
        regular=input.regular and share >= 1,
        paired=input.paired if share >= 1 else None,
        different=None if input.different is None else input.different * share,
        clumps=tuple(replace(c, size=1 + (c.size - 1) * share) for c in input.clumps),
    )
    work = {
        Primitive.EXPRESSION: input.elements * parts_of(node.predicate),
        Primitive.PASS: output.elements,
    }
    return Given(output, work, vectors=parts_of(node.predicate))


def map(node: Map, inputs: Sequence[Characteristics], model: Model) -> Given:
    """K eq. 22.2 and 22.15."""
    (input,) = inputs
    columns = {n.field.key: facts_of_value(n.expression, input) for n in node.outputs}
    parts = sum(parts_of(named.expression) for named in node.outputs)
    output = replace(
        input,
        columns=columns,
        paired=None if input.paired is None else _agreeing(node, input.paired),
        clumps=tuple(replace(c, columns=_agreeing(node, c.columns)) for c in input.clumps),
    )
    work = {Primitive.EXPRESSION: input.elements * parts, Primitive.PASS: output.elements}
    return Given(output, work, vectors=parts)


def _agreeing(node: Map, columns: frozenset[Key]) -> frozenset[Key]:
    """The outputs that are equal in rows with equal values in these columns."""
    return frozenset(
        named.field.key
        for named in node.outputs
        if {part.key for part in walk(named.expression) if isinstance(part, Column)} <= columns
    )


def union(node: Union, inputs: Sequence[Characteristics], model: Model) -> Given:
    """K eq. 22.3 and 22.17. The inputs may have different or equal values in a column."""
    distance, length = union_distance_length([(i.distance, i.length) for i in inputs])
    left, right = ([*i.columns.values()] for i in inputs)
    columns = {
        field.key: _either(one, other)
        for field, one, other in zip(node.schema, left, right, strict=True)
    }
    rates = [input.rate * distance for input in inputs]
    output = Characteristics(
        distance,
        length,
        max(input.granule for input in inputs),
        columns,
        sum(i.retracted * share for i, share in zip(inputs, rates, strict=True)),
        all(i.fixed for i in inputs) and math.isclose(inputs[0].length, inputs[1].length),
        following=sum(i.following * share for i, share in zip(inputs, rates, strict=True)),
        batches=sum(input.batches for input in inputs),
    )
    return Given(output, {Primitive.PASS: output.elements})


def _either(one: ColumnFacts, other: ColumnFacts) -> ColumnFacts:
    low = None if one.low is None or other.low is None else min(one.low, other.low)
    high = None if one.high is None or other.high is None else max(one.high, other.high)
    width = max(one.width, other.width)
    return ColumnFacts(max(one.distinct, other.distinct), width, low, high)


def time_window(node: TimeWindow, inputs: Sequence[Characteristics], model: Model) -> Given:
    """K eq. 22.10 and 22.48. With SLIDE, rows enter and leave on a grid, so eq. 22.9 applies
    too."""
    (input,) = inputs
    size = model.lifetime(node.size if node.size < INFINITY else INFINITE)
    distance, length, granule = input.distance, size, input.granule
    if node.slide > node.granule:
        distance, length = granularity_distance_length(distance, size, node.slide)
        granule = max(granule, float(node.slide))
    output = replace(
        input,
        distance=distance,
        length=length,
        granule=granule,
        fixed=True,
        following=0.0,
        regular=input.regular and node.slide == node.granule,
        paired=frozenset() if input.regular and _divides(input.distance, size) else None,
        lead=(node.slide - node.granule) / 2,
    )
    rounded = 2.0 if node.slide > node.granule else 0.0
    work = {Primitive.PASS: input.elements, Primitive.ROUND: rounded * input.elements}
    return Given(output, work, vectors=rounded)


def _divides(distance: float, length: float) -> bool:
    rest = length % distance
    return min(rest, distance - rest) < 1e-3 * distance


def granularity(node: Granularity, inputs: Sequence[Characteristics], model: Model) -> Given:
    """K eq. 22.9 and 22.46."""
    (input,) = inputs
    granule = float(node.granule)
    if granule <= input.granule:
        return Given(input, {Primitive.ROUND: 2 * input.elements})
    distance, length = granularity_distance_length(input.distance, input.length, granule)
    output = replace(
        input,
        distance=distance,
        length=length,
        granule=granule,
        regular=False,
        paired=None,
        lead=granule / 2,
    )
    return Given(output, {Primitive.ROUND: 2 * input.elements})
