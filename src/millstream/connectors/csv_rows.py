"""Rows of CSV, block by block.

Columns are read as bytes and then as CAST reads texts, so that a value that does not fit costs its
own row only. An empty value is NULL; a quoted one that is empty is an empty text.
"""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow

from millstream.catalog import Stream
from millstream.connectors.parts import PART_ROWS, Part, Place, checked, read_text
from millstream.errors import brief
from millstream.logical.plan import Field
from millstream.records import Checked, Ints

BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Layout:
    """How values stand in a line. `null` is a text that means NULL, beside the empty one."""

    header: bool = True
    delimiter: str = ","
    null: str = ""


def header_of(source: Any, layout: Layout) -> list[str]:
    """The names in the first line; none where there is no line."""
    text = io.TextIOWrapper(source, encoding="utf-8-sig", errors="replace", newline="")
    return next(csv.reader(text, delimiter=layout.delimiter), [])


def csv_rows(
    stream: Stream,
    source: Any,
    layout: Layout,
    names: Sequence[str],
    place: Place,
    before: int = 0,
) -> Iterator[Checked]:
    """The rows of a source of bytes, in which the columns to be read have these names; without a
    header it has no others. `before`: how many lines came earlier."""
    fields = place.read_fields(stream)
    invalid: deque[tuple[int, str]] = deque()

    def leave_out(row: arrow.InvalidRow) -> str:
        why = (
            f"expected {row.expected_columns} values, found {row.actual_columns}: {brief(row.text)}"
        )
        invalid.append((before + row.number, why))
        return "skip"

    line = before + (2 if layout.header else 1)
    for batch in _reader(source, layout, names, leave_out):
        table = pa.Table.from_batches([batch])
        for first in range(0, table.num_rows, PART_ROWS):
            some = table.slice(first, PART_ROWS)
            lines, bad = _numbered(line, some.num_rows, invalid)
            line += some.num_rows + len(bad)
            yield checked(stream, read_text(fields, Part(some, lines, bad), stream.units), place)
    if invalid:
        yield checked(stream, _rest(fields, invalid), place)


def _reader(source: Any, layout: Layout, names: Sequence[str], leave_out: Any) -> Any:
    return arrow.open_csv(
        source,
        arrow.ReadOptions(
            use_threads=False,  # only then do rows that are left out have a number
            block_size=BLOCK_BYTES,
            column_names=None if layout.header else list(names),
        ),
        arrow.ParseOptions(
            delimiter=layout.delimiter, invalid_row_handler=leave_out, newlines_in_values=True
        ),
        arrow.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()),
            include_columns=list(names),
            null_values=["", layout.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _numbered(
    line: int, count: int, invalid: deque[tuple[int, str]]
) -> tuple[Ints, dict[int, str]]:
    """The numbers of so many rows, and what was left out between them."""
    bad: dict[int, str] = {}
    while invalid and invalid[0][0] < line + count + len(bad):
        number, why = invalid.popleft()
        bad[number] = why
    lines = np.arange(line, line + count + len(bad))
    return np.setdiff1d(lines, list(bad)) if bad else lines, bad


def _rest(fields: Sequence[Field], invalid: deque[tuple[int, str]]) -> Part:
    """What was left out behind the last row."""
    nothing = pa.schema([(field.name, field.type) for field in fields]).empty_table()
    return Part(nothing, np.empty(0, np.int64), dict(invalid))
