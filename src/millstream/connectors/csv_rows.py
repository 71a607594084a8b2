"""Reads CSV rows, block by block.

Columns are read as bytes and then converted as CAST converts strings, so a value that does not fit
makes only its own row bad. An empty value is NULL; a quoted empty value is an empty string.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow

from millstream.connectors.lines import Rows, cut_rows, first_row
from millstream.connectors.raw_rows import (
    PART_ROWS,
    RawRows,
    RowLocation,
    checked,
    left_out,
    read_text,
)
from millstream.logical.catalog import Stream
from millstream.model.errors import brief
from millstream.model.records import Checked, Ints


@dataclass(frozen=True)
class CsvFormat:
    """The CSV dialect. `null` is a string that means NULL, in addition to the empty value."""

    header: bool = True
    delimiter: str = ","
    null: str = ""


@dataclass(frozen=True)
class CsvColumns:
    """The names of a source's columns, and which of them are read."""

    there: Sequence[str]
    read: Sequence[str]


def csv_blocks(chunks: Iterable[bytes], layout: CsvFormat, longest: int) -> Iterator[Rows]:
    """The rows of a source in blocks."""
    return cut_rows(chunks, layout.delimiter.encode(), longest)


def split_header(rows: bytes, layout: CsvFormat) -> tuple[list[str], bytes]:
    """The column names in the first row, and the other rows. Raises csv.Error if there is no valid
    header."""
    first, rest = first_row(rows, layout.delimiter.encode())
    text = first.decode("utf-8", errors="replace")
    return next(csv.reader(io.StringIO(text, newline=""), delimiter=layout.delimiter), []), rest


def csv_rows(
    stream: Stream,
    blocks: Iterable[Rows],
    layout: CsvFormat,
    columns: CsvColumns,
    place: RowLocation,
) -> Iterator[Checked]:
    """The rows of a source without its header. The header counts as line 1."""
    line = 2 if layout.header else 1
    for block in blocks:
        if isinstance(block, bytes):
            for part in _parts(block, layout, columns):
                lines = np.arange(line, line + len(part))
                yield part.checked(stream, lines, place)
                line += len(part)
        else:
            yield left_out(stream, line, block, place)
            line += 1


def csv_lines(
    stream: Stream,
    lines: Sequence[bytes],
    numbers: Ints,
    layout: CsvFormat,
    columns: CsvColumns,
    place: RowLocation,
) -> Iterator[Checked]:
    """Rows from lines that each hold one row; `numbers` are their line numbers. No line is
    empty."""
    for part in _parts(b"\n".join([*lines, b""]), layout, columns):
        yield part.checked(stream, numbers[: len(part)], place)
        numbers = numbers[len(part) :]


@dataclass(frozen=True)
class _Parsed:
    """Rows as columns of bytes, and the reasons why other rows are bad, by position."""

    table: pa.Table
    invalid: dict[int, str]

    def __len__(self) -> int:
        return int(self.table.num_rows) + len(self.invalid)

    def checked(self, stream: Stream, lines: Ints, place: RowLocation) -> Checked:
        bad = {int(lines[index]): why for index, why in self.invalid.items()}
        part = RawRows(self.table, np.delete(lines, list(self.invalid)), bad)
        return checked(stream, read_text(place.read_fields(stream), part, stream.units), place)


def _parts(rows: bytes, layout: CsvFormat, columns: CsvColumns) -> Iterator[_Parsed]:
    """Complete rows as columns of bytes, in parts."""
    if not rows.strip(b"\r\n"):
        return
    invalid: dict[int, str] = {}
    is_text = _is_text(rows)
    if not is_text:  # Arrow cannot report bad rows of invalid UTF-8: read as Latin-1
        rows = rows.decode("latin-1").encode()
        layout = replace(layout, null=layout.null.encode().decode("latin-1"))

    def leave_out(row: arrow.InvalidRow) -> str:
        why = f"expected {row.expected_columns} values, found {row.actual_columns}: "
        text = row.text if is_text else row.text.encode("latin-1").decode(errors="replace")
        invalid[row.number - 1] = why + brief(text)
        return "skip"

    table = _read(rows, layout, columns, leave_out)
    if not is_text:
        table = pa.table([_bytes_of(column) for column in table.columns], table.column_names)
    taken = 0
    for first in range(0, max(table.num_rows, 1), PART_ROWS):
        some = table.slice(first, PART_ROWS)
        is_last = first + PART_ROWS >= table.num_rows
        own: dict[int, str] = {}
        stop = taken + some.num_rows
        for index, why in sorted(invalid.items()):
            if index >= taken and (index < stop or is_last):
                own[index - taken] = why
                stop += 1
        yield _Parsed(some, own)
        taken = stop


def _is_text(rows: bytes) -> bool:
    try:
        rows.decode()
    except UnicodeDecodeError:
        return False
    return True


def _bytes_of(column: pa.ChunkedArray) -> pa.Array:
    """The bytes that were read as characters."""
    texts = column.cast(pa.string()).to_pylist()
    found = [None if text is None else text.encode("latin-1") for text in texts]
    return pa.array(found, pa.binary())


def _read(rows: bytes, layout: CsvFormat, columns: CsvColumns, leave_out: object) -> pa.Table:
    if rows.startswith(codecs.BOM_UTF8):  # Arrow drops a BOM, but here it belongs to a value
        rows = codecs.BOM_UTF8 + rows
    return arrow.read_csv(
        io.BytesIO(rows),
        arrow.ReadOptions(
            use_threads=False,  # invalid rows have numbers only without threads
            block_size=len(rows) + 1,
            column_names=list(columns.there),
        ),
        arrow.ParseOptions(
            delimiter=layout.delimiter, invalid_row_handler=leave_out, newlines_in_values=True
        ),
        arrow.ConvertOptions(
            column_types=dict.fromkeys(columns.read, pa.binary()),
            include_columns=list(columns.read),
            null_values=["", layout.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
