"""Relations that live elsewhere: what they have, and how that changes."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from millstream.physical.batch import Ints


@dataclass(frozen=True)
class TableChanges:
    """What changed in one moment: of each row, how many came (above 0) or went (below 0). No row
    stands here twice, and none with 0."""

    rows: pa.Table
    weight: Ints

    def __len__(self) -> int:
        return len(self.weight)


@dataclass(frozen=True)
class TableTrouble:
    """The table cannot be read at present, and why. What was known of it still holds; the next
    changes, which may be none, say that it can be read again."""

    message: str
    help: str | None
    since: datetime.datetime


TableEvent: TypeAlias = "TableChanges | TableTrouble"


class TableSource(Protocol):
    """A table of another system, read by one thread."""

    def contents(self) -> pa.Table:
        """The whole table as it is at one moment, in the declared columns and types. Called once,
        first. DataError or QueryError where it cannot be read."""

    def changes(self) -> Iterator[TableEvent]:
        """What changes after `contents`; blocks until there is something. Ends when the source is
        closed, and at once if the table is not followed."""

    def close(self) -> None:
        """Leave nothing open or behind. Another thread that reads comes to its end."""
