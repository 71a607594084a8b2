"""The contract of external tables: their contents and changes."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from millstream.physical.batch import Ints


@dataclass(frozen=True)
class TableChanges:
    """The changes at one moment: per row, how many were added (above 0) or removed (below 0). No
    row occurs twice, and none with 0."""

    rows: pa.Table
    weight: Ints

    def __len__(self) -> int:
        return len(self.weight)


@dataclass(frozen=True)
class TableTrouble:
    """The table cannot be read at present, and why. The known contents stay valid; the next
    changes, which may be empty, mean that it can be read again."""

    message: str
    help: str | None
    since: datetime.datetime


TableEvent: TypeAlias = "TableChanges | TableTrouble"


class TableSource(Protocol):
    """A table of another system, read by one thread."""

    def contents(self) -> pa.Table:
        """A snapshot of the whole table, in the declared columns and types. Called once, first.
        DataError or QueryError if it cannot be read."""

    def changes(self) -> Iterator[TableEvent]:
        """The changes after `contents`; blocks until there is one. Ends when the source is closed,
        and immediately if the table is not followed."""

    def close(self) -> None:
        """Release all resources. A thread that reads ends."""
