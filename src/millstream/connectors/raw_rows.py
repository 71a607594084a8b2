"""Turns rows from files and lines of text into checked rows and bad rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from millstream.connectors.intake.moments import TimeUnits, from_text
from millstream.connectors.intake.rows import nothing, typed_table
from millstream.connectors.lines import Dropped
from millstream.logical.catalog import Stream
from millstream.logical.plan import Field
from millstream.model.errors import DataError, brief
from millstream.model.records import BadRow, Checked, Ints
from millstream.model.types import STRING, is_atomic, sql_name

PART_ROWS = 65_536  # the most rows converted at once


@dataclass(frozen=True)
class RowLocation:
    """Where rows come from: how messages name the place and a row in it, and the columns with one
    constant value for all rows."""

    name: str
    line: str = "line"
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)

    def read_fields(self, stream: Stream) -> list[Field]:
        """The columns to read."""
        return [field for field in stream.columns if field.name not in self.constants]

    def complaint(self, number: int, message: str) -> str:
        return f"{self.name}, {self.line} {number}: {message}"


@dataclass(frozen=True)
class RawRows:
    """Some rows: their columns, not converted yet, the line number of each row, and the reasons why
    others between them cannot be read, by line number."""

    table: pa.Table
    lines: Ints
    bad: Mapping[int, str] = field(default_factory=dict)


def checked(stream: Stream, part: RawRows, place: RowLocation) -> Checked:
    """The rows in the declared types; messages of bad rows give the place."""
    table = part.table
    for name, value in place.constants.items():
        table = table.append_column(name, pa.repeat(value, table.num_rows))
    records, refused = typed_table(stream, table)
    bad: dict[int, tuple[str, str | None]] = {n: (message, None) for n, message in part.bad.items()}
    bad |= {int(part.lines[row.number - 1]): (row.message, row.help) for row in refused}
    numbers = sorted(bad)
    ranks = np.searchsorted(np.union1d(part.lines, numbers), numbers) + 1 if bad else ()
    rows = []
    for rank, number in zip(ranks, numbers, strict=True):
        message, help = bad[number]
        rows.append(BadRow(int(rank), place.complaint(number, message), help))
    return Checked(records, rows)


def left_out(stream: Stream, number: int, dropped: Dropped, place: RowLocation) -> Checked:
    """Stands for a row that was too long to read."""
    shown = brief(dropped.beginning.decode(errors="replace"))
    return Checked(nothing(stream), [BadRow(1, place.complaint(number, f"{shown}: {dropped.why}"))])


# --- columns of text ------------------------------------------------------------------------------


def check_text(stream: Stream, connector: str) -> None:
    """Reject columns whose type has no text form."""
    for column in stream.columns:
        if not is_atomic(column.type) or pa.types.is_duration(column.type):
            raise DataError(
                f'{stream.kind} "{stream.name}": connector "{connector}" cannot read column '
                f'"{column.name}": {sql_name(column.type)} has no text form'
            )


def read_text(fields: Sequence[Field], part: RawRows, units: TimeUnits) -> RawRows:
    """Converts columns of bytes to their types; drops rows with a value that does not fit."""
    bad = dict(part.bad)
    columns = []
    for index, column in enumerate(fields):
        texts = _decoded(column, part.table.column(index).combine_chunks(), part.lines, bad)
        found = from_text(texts, column.type, units.get(column.name))
        failed = [] if found.failed is None else np.flatnonzero(found.failed).tolist()
        for row in failed:
            what = f'{brief(texts[row].as_py())} in column "{column.name}"'
            bad.setdefault(int(part.lines[row]), f"{what} is not {sql_name(column.type)}")
        columns.append(found.values)
    table = pa.table(columns, names=[column.name for column in fields])
    if len(bad) == len(part.bad):
        return RawRows(table, part.lines, bad)
    kept = ~np.isin(part.lines, list(bad))
    return RawRows(table.filter(pa.array(kept)), part.lines[kept], bad)


def _decoded(column: Field, raw: pa.Array, lines: Ints, bad: dict[int, str]) -> pa.Array:
    try:
        return raw.cast(STRING)
    except pa.ArrowInvalid:
        texts = [None if value is None else _text(value) for value in raw.to_pylist()]
    for row, text in enumerate(texts):
        if text is None and raw[row].is_valid:
            bad.setdefault(int(lines[row]), f'the text in column "{column.name}" is not UTF-8')
    return pa.array(texts, STRING)


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
