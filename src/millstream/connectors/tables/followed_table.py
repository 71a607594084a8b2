"""A PostgreSQL table followed by logical decoding: each transaction exactly once.

The contents are a snapshot of the moment at which decoding starts. After an event that is not a row
change (a lost connection, TRUNCATE, other columns) the table is read again, and the difference
arrives as one change.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from operator import itemgetter

import pyarrow as pa

from millstream.connectors.tables.comparing import differences
from millstream.connectors.tables.decoding import (
    UNCHANGED,
    RelationLayout,
    RowChange,
    Truncated,
    Values,
)
from millstream.connectors.tables.kept_rows import Footprint, KeptRows
from millstream.connectors.tables.postgres_columns import PostgresColumn, typed
from millstream.connectors.tables.postgres_table import PostgresTable
from millstream.connectors.tables.replication import DENIED, Followed, Replication
from millstream.connectors.tables.retrying_source import RetryingSource
from millstream.connectors.tables.table_source import TableChanges

_LOOK_EVERY = 1.0  # seconds between two checks of the table, whose DDL is not decoded


class Outdated(Exception):
    """The known state of the table is invalid: it must be read again as a whole."""


class Places:
    """The positions of the declared columns and the identity columns in decoded rows."""

    def __init__(self, declared: list[int], identity: list[int]) -> None:
        self._declared = _picker(declared)
        self._identity = _picker(identity)
        self._identities = identity

    @staticmethod
    def of(layout: RelationLayout, followed: Followed) -> Places:
        found = {column[0]: place for place, column in enumerate(layout.columns)}
        wanted = {(c.name, c.oid, c.modifier, c.identity) for c in _all(followed)}
        identity = {column.name for column in followed.identity}
        if not wanted <= set(layout.columns) or identity != {c[0] for c in layout.columns if c[3]}:
            raise Outdated
        return Places(
            [found[column.name] for column in followed.declared],
            [found[column.name] for column in followed.identity],
        )

    def note(self, change: RowChange, footprint: Footprint) -> None:
        before, after = change.before, change.after
        old = () if before is None else self._identity(before)
        if before is not None:
            footprint.delete(old)
        if after is not None:
            if before is not None and UNCHANGED in after:
                after = self._with_identity(after, before)
            footprint.insert(self._identity(after), self._declared(after), old)

    def _with_identity(self, after: Values, before: Values) -> Values:
        """Long unchanged identity values are sent only with the old row."""
        filled = list(after)
        for place in self._identities:
            if filled[place] is UNCHANGED:
                filled[place] = before[place]
        return tuple(filled)


def _picker(places: list[int]) -> Callable[[Values], Values]:
    if len(places) == 1:
        (place,) = places
        return lambda values: (values[place],)
    return itemgetter(*places)


def _all(followed: Followed) -> Sequence[PostgresColumn]:
    return [*followed.declared, *followed.identity]


class FollowedTable(RetryingSource):
    """`_known` are the rows after the last transaction reported; `_footprint` is what the next one
    has done so far."""

    def __init__(self, table: PostgresTable) -> None:
        super().__init__(every=0.0)
        self._table = table
        self._replication: Replication | None = None
        self._followed = Followed((), ())
        self._known: KeptRows | None = None
        self._places: Places | None = None
        self._footprint = Footprint()
        self._last_look = 0.0

    def _begin(self) -> pa.Table:
        self._tidy()
        self._places, self._footprint = None, Footprint()
        self._last_look = time.monotonic()
        self._replication = Replication(self._table)
        try:
            with self._table.telling(DENIED):
                self._followed, texts, identities = self._replication.begin()
            rows = typed(self._table.origin, texts)
            self._known = KeptRows(self._table.origin, rows, identities)
        except BaseException:
            self._tidy()
            raise
        return rows

    def _next(self) -> TableChanges | None:
        assert self._known is not None, "contents come first"
        if self._replication is None:
            return self._anew()
        try:
            with self._table.telling(DENIED):
                self._look()
                return self._transaction(self._replication)
        except Outdated:
            return self._anew()
        except BaseException:
            self._tidy()
            raise

    def _anew(self) -> TableChanges:
        assert self._known is not None
        known = self._known.table()
        return differences(known, self._begin())

    def _look(self) -> None:
        if time.monotonic() - self._last_look > _LOOK_EVERY:
            assert self._replication is not None
            if self._replication.has_changed():
                raise Outdated
            self._last_look = time.monotonic()

    def _transaction(self, replication: Replication) -> TableChanges | None:
        """The changes of the next transaction, if it has arrived completely."""
        assert self._known is not None
        for message in replication.decoder.messages():
            if isinstance(message, RowChange):
                assert self._places is not None, "a layout comes first"
                self._places.note(message, self._footprint)
            elif isinstance(message, RelationLayout):
                self._places = Places.of(message, self._followed)
            elif isinstance(message, Truncated):
                raise Outdated
            elif self._footprint.count:
                footprint, self._footprint = self._footprint, Footprint()
                return self._known.change(footprint)
        return None

    def _interrupt(self) -> None:
        if self._replication is not None:
            self._replication.interrupt()

    def _tidy(self) -> None:
        replication, self._replication = self._replication, None  # no longer interrupted
        if replication is not None:
            replication.close()
