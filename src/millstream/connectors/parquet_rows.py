"""Reads Parquet rows in parts; only the declared columns are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.connectors.intake.typed_columns import check_type
from millstream.connectors.raw_rows import PART_ROWS, RawRows, RowLocation, checked
from millstream.logical.catalog import Stream
from millstream.model.errors import DataError
from millstream.model.records import Checked
from millstream.model.types import sql_name

BUFFER_BYTES = 1 << 16  # of the file in memory per column
PART_BYTES = 1 << 26  # converted at once, approximately


def opened(source: Any) -> pq.ParquetFile:
    return pq.ParquetFile(source, buffer_size=BUFFER_BYTES, pre_buffer=False)


def parquet_rows(
    stream: Stream, file: pq.ParquetFile, names: Sequence[str], place: RowLocation
) -> Iterator[Checked]:
    """The rows of a file; `names` are the names of the columns to read."""
    fields = place.read_fields(stream)
    for field, name in zip(fields, names, strict=True):
        found = file.schema_arrow.field(name).type
        try:
            check_type(stream, field, found)
        except DataError as error:
            raise DataError(
                f'{stream.kind} "{stream.name}": {place.name} has {found} in column "{name}", '
                f"which is not {sql_name(field.type)}",
                help=error.diagnostic.help,
            ) from None
    row = 1
    for batch in file.iter_batches(_part_rows(file), columns=list(names), use_threads=False):
        table = pa.Table.from_batches([batch]).select(list(names))
        lines = np.arange(row, row + table.num_rows)
        row += table.num_rows
        yield checked(
            stream, RawRows(table.rename_columns([field.name for field in fields]), lines), place
        )


def _part_rows(file: pq.ParquetFile) -> int:
    """How many rows to convert at once: fewer if rows are long."""
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    longest = max((g.total_byte_size / g.num_rows for g in groups if g.num_rows), default=1.0)
    return max(1, min(PART_ROWS, int(PART_BYTES / max(longest, 1.0))))
