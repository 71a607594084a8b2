"""What the tests of tables elsewhere share: declarations, and a thread that follows a table."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from millstream.connectors.registry import table_source
from millstream.connectors.tables.table_source import TableChanges, TableSource, TableTrouble
from millstream.logical.catalog import Connector, Option, Table
from millstream.logical.plan import Field
from millstream.model.names import Name
from millstream.model.time import TIMESTAMP_TIME

Bag = Counter[tuple[Any, ...]]


def declared(
    connector: str,
    columns: dict[str, pa.DataType],
    key: tuple[str, ...] = (),
    required: tuple[str, ...] = (),
    **options: Option,
) -> Table:
    fields = tuple(Field(n, type, nullable=n not in required) for n, type in columns.items())
    named = Connector(Name(connector), (), tuple(options.items()))
    return Table("T", fields, TIMESTAMP_TIME, connector=named, key=key)


def bag(rows: pa.Table) -> Bag:
    return Counter(tuple(row.values()) for row in rows.to_pylist())


def contents(table: Table) -> pa.Table:
    source = table_source(table)
    try:
        return source.contents()
    finally:
        source.close()


class Follower:
    """Reads a table in a thread of its own: `rows` is what the changes make of it, `history` all
    that it has been, `troubles` what was said in between."""

    def __init__(self, source: TableSource) -> None:
        self.source = source
        self.rows = bag(source.contents())
        self.history = [self.rows.copy()]
        self.troubles: list[TableTrouble] = []
        self.trouble: TableTrouble | None = None
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        try:
            for event in self.source.changes():
                if isinstance(event, TableTrouble):
                    self.troubles.append(event)
                    self.trouble = event
                else:
                    self._apply(event)
                    self.trouble = None
        except BaseException as error:
            self.failure = error
            raise

    def _apply(self, changes: TableChanges) -> None:
        rows = self.rows.copy()
        told = [tuple(row.values()) for row in changes.rows.to_pylist()]
        assert len(set(told)) == len(told), "a row stands there twice"
        for row, weight in zip(told, changes.weight.tolist(), strict=True):
            assert weight
            rows[row] += weight
            assert rows[row] >= 0
        self.rows = +rows
        self.history.append(self.rows)

    def until(self, holds: Callable[[], bool], seconds: float = 20) -> None:
        limit = time.monotonic() + seconds
        while not holds():
            assert self.failure is None, self.failure
            assert time.monotonic() < limit, (self.rows, self.trouble)
            time.sleep(0.01)

    def until_rows(self, rows: Bag) -> None:
        self.until(lambda: self.rows == rows and self.trouble is None)

    def until_trouble(self, message: str) -> TableTrouble:
        self.until(lambda: self.trouble is not None and message in self.trouble.message)
        assert self.trouble is not None
        return self.trouble

    def close(self) -> None:
        self.source.close()
        self._thread.join(10)
        assert not self._thread.is_alive()
        assert self.failure is None


@contextmanager
def following(table: Table) -> Iterator[Follower]:
    follower = Follower(table_source(table))
    try:
        yield follower
    finally:
        follower.close()
