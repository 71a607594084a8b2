"""One Parquet file that holds the answer of a query.

Each batch writes a new file, syncs it to disk and renames it, so readers see one complete batch.
Each batch rewrites the whole file, so use it for small answers.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from millstream.checkpoint.files import sync_folder
from millstream.connectors.contracts import GivenBatch, Noop, SinkContext
from millstream.connectors.sinks.kept_rows import changed_rows, gone, kept_schema
from millstream.connectors.tables.comparing import net_changes
from millstream.model.errors import QueryError

_TOKEN, _BATCH = b"millstream.token", b"millstream.batch"


class KeptFile(Noop):
    def __init__(self, context: SinkContext, path: str) -> None:
        self._context = context
        self._path = Path(path)
        self._schema = kept_schema(context, "parquet")
        self._rows = self._schema.empty_table()
        self._batch = -1
        if self._path.is_dir():
            raise QueryError(
                f'"{path}" is a folder, but a kept answer is one file', help="name a file"
            )
        if self._path.exists():
            self._take_over()

    def _take_over(self) -> None:
        """Continue with the rows that this query wrote. The first batch replaces those of another
        query."""
        try:
            found = pyarrow.parquet.read_table(self._path)
        except (pa.ArrowException, OSError) as error:
            raise self._not_ours() from error
        told = found.schema.metadata or {}
        if _TOKEN not in told:
            raise self._not_ours()
        if told[_TOKEN].decode() == self._context.token:
            self._rows = found.replace_schema_metadata().cast(self._schema)
            self._batch = int(told[_BATCH])

    def _not_ours(self) -> QueryError:
        return QueryError(
            f'the file "{self._path}" was not written by a query that keeps its answer',
            help="name a file that does not exist",
        )

    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        if batch.id <= self._batch or not table.num_rows:
            return
        changes = changed_rows(table)
        rows = pa.concat_tables([self._rows, changes.rows.cast(self._schema)])
        weight = np.concatenate([np.ones(self._rows.num_rows, np.int64), changes.weight])
        left = net_changes(rows, weight)
        if (left.weight < 0).any():
            raise gone(self._context.query, f'the file "{self._path}"')
        repeated = np.repeat(np.arange(len(left)), left.weight)
        self._write(left.rows.take(pa.array(repeated)), batch.id)

    def _write(self, rows: pa.Table, batch: int) -> None:
        told = {_TOKEN: self._context.token.encode(), _BATCH: str(batch).encode()}
        beside = self._path.with_name(f".{self._path.name}.new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                pyarrow.parquet.write_table(rows.replace_schema_metadata(told), file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
            sync_folder(self._path.parent)
        except OSError as error:
            raise QueryError(f'the file "{self._path}" cannot be written: {error}') from error
        self._rows, self._batch = rows.replace_schema_metadata(), batch
