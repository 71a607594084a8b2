"""Tables read from files: `SOURCE csv('people.csv', refresh => '1 minute')`, `parquet`, `json`.

The table holds all rows of all files that match the path.
"""

from __future__ import annotations

import pyarrow as pa

from millstream.connectors.arguments import Arguments
from millstream.connectors.files import (
    FileArguments,
    StreamFiles,
    format_of,
    layout,
    layout_options,
    longest_line,
)
from millstream.connectors.listing import DataFile, listed_files
from millstream.connectors.tables.columns import SourceTable, holds_arrow
from millstream.connectors.tables.refreshed import Refreshed, refresh_of
from millstream.logical.catalog import Table

_ATTEMPTS = 10  # to read files that do not change meanwhile


def connect(table: Table) -> Refreshed:
    given = Arguments(table, ["path", "refresh", *layout_options(table)])
    path = given.text("path")
    longest = longest_line(table, given)
    files = FileArguments(format_of(table), path, layout(table, given), False, 0, longest)
    return Refreshed(table, TableFiles(table, files), refresh_of(given))


class TableFiles:
    def __init__(self, table: Table, given: FileArguments) -> None:
        self._table = table
        self._path = given.path
        self._files = StreamFiles(table, given, available_now=True)

    def version(self) -> list[DataFile]:
        found = listed_files(self._path)
        if not found:
            raise self._files.error(f'there are no files in "{self._path}"')
        return found

    def read(self) -> pa.Table:
        for _ in range(_ATTEMPTS):
            files = self.version()
            parts = [rows for file in files for rows in self._rows(file)]
            if self.version() == files:
                return pa.concat_tables([self._schema.empty_table(), *parts])
        raise self._files.error(f'the files in "{self._path}" keep changing while they are read')

    def interrupt(self) -> None:
        """Files are read to their end."""

    def close(self) -> None:
        """Each is closed when it is read."""

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema([pa.field(field.name, field.type) for field in self._table.columns])

    def _rows(self, file: DataFile) -> list[pa.Table]:
        if format_of(self._table) == "parquet":
            self._check_types(file)
        parts = []
        for checked in self._files.rows(file):
            if checked.bad:
                raise self._files.error(checked.bad[0].message, checked.bad[0].help)
            parts.append(pa.table(checked.records.columns, schema=self._schema))
        return parts

    def _check_types(self, file: DataFile) -> None:
        """Reject columns whose type has values that the declared type cannot hold."""
        there = {field.name.lower(): field.type for field in self._files.schema(file)}
        for field in self._table.columns:
            found = there.get(field.name.lower())
            if found is not None and not holds_arrow(field.type, found):
                raise SourceTable(self._table, f'file "{file.path}"').wrong_type(field, str(found))
