"""The answers of the reference as tables: plain rows, without NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from millstream.logical.plan import Schema
from millstream.model.elements import Element, row_key
from millstream.model.time import INFINITY, TimeDomain
from millstream.model.types import LAST_TIMESTAMP
from millstream.model.values import to_arrow


def rows_table(schema: Schema, rows: Sequence[Any]) -> pa.Table:
    columns = [
        to_arrow([row[index] for row in rows], field.type) for index, field in enumerate(schema)
    ]
    return pa.table(columns, names=[field.name for field in schema])


def final_table(
    schema: Schema, domain: TimeDomain, elements: Sequence[Element], granule: int | None
) -> pa.Table:
    """EMIT FINAL; `granule`: repeated in each granule (RSTREAM)."""
    if granule is not None:
        elements = [piece for e in elements for piece in _granules(e, granule)]
    pieces = [element for element in elements for _ in range(element.weight)]
    table = rows_table(schema, [piece.row for piece in pieces])
    table = table.append_column("valid_from", _times(domain, [p.start for p in pieces]))
    return table.append_column("valid_to", _times(domain, [p.end for p in pieces]))


def changes_table(schema: Schema, domain: TimeDomain, elements: Sequence[Element]) -> pa.Table:
    """EMIT CHANGES."""
    changes: dict[tuple[int, Any], int] = {}
    for element in elements:
        for at, change in ((element.start, element.weight), (element.end, -element.weight)):
            if at < INFINITY:
                changes[at, element.row] = changes.get((at, element.row), 0) + change
    ordered = sorted(
        ((at, row, change) for (at, row), change in changes.items() if change),
        key=lambda item: (item[0], row_key(item[1])),
    )
    table = rows_table(schema, [row for _, row, _ in ordered])
    table = table.append_column("at", _times(domain, [at for at, _, _ in ordered]))
    counts = pa.array([change for _, _, change in ordered], pa.int64())
    return table.append_column("change", counts)


def instants_table(
    schema: Schema, domain: TimeDomain, elements: Sequence[Element], every: int
) -> pa.Table:
    """EMIT EVERY: the rows at each multiple of a period, up to the first after which nothing
    changes."""
    ends = [end for e in elements for end in (e.start, e.end) if end < INFINITY]
    last = -(-max(ends, default=0) // every) * every
    given = [
        (at, element.row)
        for element in elements
        for at in range(-(-element.start // every) * every, min(element.end, last + 1), every)
        for _ in range(element.weight)
    ]
    given.sort(key=lambda item: (item[0], row_key(item[1])))
    table = rows_table(schema, [row for _, row in given])
    return table.append_column("at", _times(domain, [at for at, _ in given]))


def _times(domain: TimeDomain, instants: list[int]) -> pa.Array:
    if pa.types.is_timestamp(domain.type):
        instants = [min(instant, LAST_TIMESTAMP) for instant in instants]
    return to_arrow(instants, domain.type)


def _granules(element: Element, granule: int) -> Iterator[Element]:
    """One element per granule; an element without an end cannot be cut."""
    start = element.start
    while start < element.end and element.end < INFINITY:
        end = min((start // granule + 1) * granule, element.end)
        yield Element(element.row, start, end, element.weight)
        start = end
    if element.end == INFINITY:
        yield element
