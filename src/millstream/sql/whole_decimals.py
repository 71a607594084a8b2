"""A warning for columns declared DECIMAL without a scale that meet fractions.

`DECIMAL` is DECIMAL(10, 0), as in Spark: it holds whole numbers. In some other systems it holds any
number, so a query that compares such a column with fractions, or computes with them, is probably a
mistake.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from millstream.logical.catalog import Catalog, Stream
from millstream.logical.expressions import Call, Cast, Column, Expression, operands, walk
from millstream.logical.plan import Plan, Source, expressions
from millstream.model import types
from millstream.model.names import Name

_OPERATORS = {
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>", "in"), "compared"),
    **dict.fromkeys(("+", "-"), "summed"),
}


def meeting_fractions(plan: Plan, catalog: Catalog) -> Iterator[tuple[str, str, str]]:
    """(stream, column, "compared" or "summed") for each such column of the plan, once."""
    declared = {}
    for node in plan.walk():
        if isinstance(node, Source):
            entry = catalog.find_stream(Name(node.stream, quoted=True))
            for name in entry.unscaled if isinstance(entry, Stream) else ():
                declared[node.alias, name] = node.stream
    if not declared:
        return
    told = set()
    for node in plan.walk():
        for whole in expressions(node):
            for part in walk(whole):
                for column, how in _meetings(part):
                    stream = declared.get((column.qualifier, column.name))
                    if stream is not None and (stream, column.name) not in told:
                        told.add((stream, column.name))
                        yield stream, column.name, how


def _meetings(part: Expression) -> Iterator[tuple[Column, str]]:
    if not isinstance(part, Call) or part.function not in _OPERATORS:
        return
    bare = [_without_casts(operand) for operand in operands(part)]
    for number, side in enumerate(bare):
        others = bare[:number] + bare[number + 1 :]
        if isinstance(side, Column) and any(_has_fractions(other.type) for other in others):
            yield side, _OPERATORS[part.function]


def _without_casts(expression: Expression) -> Expression:
    while isinstance(expression, Cast):
        expression = expression.operand
    return expression


def _has_fractions(type_: pa.DataType) -> bool:
    if types.is_decimal(type_):
        return bool(type_.scale > 0)
    return bool(pa.types.is_floating(type_))
