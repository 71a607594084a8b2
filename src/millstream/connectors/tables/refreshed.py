"""Tables that are read again periodically and compared with their last state."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from millstream.connectors.arguments import Arguments
from millstream.connectors.tables.comparing import check_key, differences
from millstream.connectors.tables.retrying_source import RetryingSource
from millstream.connectors.tables.table_source import TableChanges
from millstream.logical.catalog import Table


def refresh_of(given: Arguments) -> float | None:
    """The seconds between two reads; None if the table is read once."""
    return given.seconds("refresh", "") if given.has("refresh") else None


class TableReader(Protocol):
    """Reads a whole table of another system on request."""

    def version(self) -> object:
        """A cheap value that differs whenever the table may have changed; None if not known."""

    def read(self) -> pa.Table:
        """A consistent snapshot of the table, in the declared columns and types."""

    def interrupt(self) -> None:
        """Make a `read` in another thread fail soon."""

    def close(self) -> None: ...


class Refreshed(RetryingSource):
    """`_known` is the table as last read; `_version` is a version that is not newer."""

    def __init__(self, table: Table, reader: TableReader, every: float | None) -> None:
        super().__init__(every)
        self._table = table
        self._reader = reader
        self._known: pa.Table | None = None
        self._version: object = None

    def _begin(self) -> pa.Table:
        version = self._reader.version()
        found = self._reader.read()
        check_key(self._table, found)
        self._known, self._version = found, version
        return found

    def _next(self) -> TableChanges:
        assert self._known is not None, "contents come first"
        known, version = self._known, self._reader.version()
        if version is not None and version == self._version:
            return differences(known.slice(0, 0), known.slice(0, 0))
        return differences(known, self._begin())

    def _interrupt(self) -> None:
        self._reader.interrupt()

    def _tidy(self) -> None:
        self._reader.close()
