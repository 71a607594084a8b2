"""The tables of a session: their rows, their changes, and the queries that follow them.

A change takes effect at the time that it names, or at the frontier of the streams when a query
reads it. For a query that starts later, changes without a time have always been in effect.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from millstream.connectors.intake.checking import intervals
from millstream.connectors.intake.rows import joined
from millstream.connectors.tables.table_source import TableTrouble
from millstream.logical.catalog import ChangeMode, Table
from millstream.logical.instants import instant_of_change
from millstream.model.errors import DataError, QueryError
from millstream.model.instants import shown
from millstream.model.records import Checked, Records
from millstream.model.time import ALWAYS, ANY_TIME, INFINITY, TIMESTAMP_TIME, TimeDomain
from millstream.physical.batch import Ints
from millstream.physical.state.keys import KeySpace
from millstream.relations.table_contents import TableContents, net_rows, weights_of
from millstream.relations.table_inlet import TableInlet
from millstream.runtime.inbox import Inlet
from millstream.runtime.inputs import Input, InputPlace
from millstream.runtime.table_input import TableInput

_MANY = 1_000_000  # rows of changes that are always kept
_SMALL = 100_000  # rows of a table that every Spark task may hold


class HeldTable:
    """A table in memory. `domain` is the time domain of its timed changes.

    Each row has an arrival number, which counts the rows added to the table; the change that
    removes the row has the same number. UPDATE removes a row and adds another one with a new
    number. A row that a change leaves unchanged keeps its number."""

    trouble: TableTrouble | None = None  # why it cannot be read at present

    def __init__(self, table: Table) -> None:
        self.table = table
        self.domain = table.domain
        self._contents = TableContents(table)
        self._history: list[Records] | None = None  # from the first timed change on
        self._told = 0  # rows of its history
        self._latest = ALWAYS  # when the last change took effect
        self._floor = ALWAYS  # when a row was last removed
        self._inputs: dict[Inlet, TableInput] = {}
        self._readers: list[Inlet] = []  # of running queries
        self._lock = threading.RLock()
        self.gate = threading.Lock()  # held to decide what is final, or what changes

    def __len__(self) -> int:
        return len(self._contents)

    @property
    def is_fixed(self) -> bool:
        """Whether all its rows and their times are known from the start."""
        return self.table.changes in (ChangeMode.NONE, ChangeMode.OWN)

    @property
    def has_times(self) -> bool:
        """Whether it has timed changes, or rows have their own times."""
        return self._history is not None or bool(self.table.time)

    @property
    def is_small(self) -> bool:
        return len(self) <= _SMALL

    @property
    def latest(self) -> int:
        """When the last timed change takes effect."""
        return self._latest

    @property
    def lock(self) -> threading.RLock:
        """Gives a consistent view of the table and exclusive write access."""
        return self._lock

    def rows(self) -> pa.Table:
        """The rows of the table with all changes applied."""
        with self._lock:
            return self._contents.table()

    def refresh(self) -> None:
        """Read the table again, if it is external."""

    def with_keys(self, keys: Sequence[pa.Array]) -> Records:
        """The rows with one of these keys."""
        with self._lock:
            columns = self._contents.with_keys(keys)
            return Records(columns, *self._valid(columns, len(columns[0])))

    def counts(self, records: Records) -> Ints:
        """The multiplicity of each of these rows in the table."""
        with self._lock:
            return self._contents.counts(records.columns, len(records))

    def numbers(self, records: Records) -> Ints:
        """The arrival numbers of rows of the table."""
        with self._lock:
            return self._contents.numbers(records.columns, len(records))

    def present(self) -> Records:
        """The rows of the table in order of arrival, with their numbers."""
        with self._lock:
            columns, numbers = self._contents.rows()
            weight = np.ones(len(numbers), np.int64)
            return Records(columns, *self._valid(columns, len(numbers)), weight, numbers)

    def _valid(self, columns: Sequence[pa.Array], length: int) -> tuple[Ints, Ints]:
        """When rows are valid; always, unless they have their own times."""
        if not self.table.time:
            return _always(length)
        return intervals(self.table, columns, length, {})

    # --- changes ---------------------------------------------------------------------------------

    def change(self, records: Records, weight: Ints, at: object = None) -> None:
        """Add (above 0) and remove (below 0) rows at one moment: `at` an instant, or as soon as the
        change is read; rows with their own times take effect at those. Does not wait for room in
        the queues of queries, since these may wait for the holder of the lock."""
        with self._lock, self.gate:
            change = self._contents.difference(records.columns, weight)
            if not len(change.index):
                return
            self._check_mutable()
            records, sign = records.take(change.index), change.sign
            start, timed = self._starts(records, sign, at)
            if self.table.changes is ChangeMode.OWN:
                start, end = records.start, records.end
            else:
                end = _for_ever(len(records))
            number = self._contents.apply(records.columns, change)
            changed = Records(records.columns, start, end, sign, number)
            self.domain = self._domain_of(at)
            self._remember(changed, timed)
            for inlet in self._readers:
                told = inlet.as_told(changed) if isinstance(inlet, TableInlet) else changed
                inlet.offer(Checked(told), wait=False)

    def await_room(self) -> None:
        """Wait until the reading queries have room for a change. Callers without the lock do this
        before a change."""
        for inlet in self._readers:
            inlet.await_room()

    def become(self, records: Records) -> None:
        """Replace all rows by these."""
        with self._lock:
            self.exchange(self.present(), records)

    def exchange(self, gone: Records, come: Records, at: object = None) -> None:
        """Replace some rows by others at one moment; rows in both stay."""
        both = joined([replace(r, weight=None, number=None) for r in (gone, come)])
        weight = np.concatenate([-weights_of(gone), weights_of(come)])
        self.change(both, weight, at)

    def _check_mutable(self) -> None:
        if self.is_fixed and self._readers:
            raise DataError(
                f'table "{self.table.name}" is {self.table.changes.value}, and a query reads it',
                help="stop the query first, or declare the table RETROACTIVE",
            )

    def _starts(self, records: Records, weight: Ints, at: object) -> tuple[Ints, bool]:
        """When the changes take effect, and whether they are timed. A removal comes after all
        additions."""
        takes = bool((weight < 0).any())
        least = self._latest if takes else self._floor
        if at is not None:
            start = np.full(len(records), self._instant(at, least), np.int64)
        elif len(self.table.time) == 1:
            start = np.where(weight < 0, least, np.maximum(records.start, least))
            self._keep_until_replaced(records, weight, start)
        else:
            start = np.full(len(records), self._latest, np.int64)
        return start, at is not None or len(self.table.time) == 1

    def _keep_until_replaced(self, records: Records, weight: Ints, start: Ints) -> None:
        """Removed rows stay until the row that replaces their key starts."""
        if not self.table.key or not (weight < 0).any():
            return
        names = [field.name for field in self.table.columns]
        columns = [records.columns[names.index(name)] for name in self.table.key]
        space = KeySpace([column.type for column in columns])
        codes = space.encode(columns, len(records))
        replaced = np.full(space.count, ALWAYS, np.int64)
        np.maximum.at(replaced, codes, start)
        start[weight < 0] = replaced[codes[weight < 0]]

    def _instant(self, at: object, least: int) -> int:
        """The instant of a timed change: not final yet, and not before the last one."""
        if self.is_fixed:
            raise DataError(
                f'table "{self.table.name}" is {self.table.changes.value}: it does not change at '
                "an instant",
                help="leave the time out, or declare the table RETROACTIVE",
            )
        domain = self._domain_of(at)
        instant = instant_of_change(at, domain)
        passed = max([least, *(self._inputs[inlet].frontier for inlet in self._readers)])
        if instant < passed:
            raise DataError(
                f'table "{self.table.name}" cannot change at {at}: it is final up to '
                f"{shown(passed, domain)}",
                help="give a later time, or none: then the change takes effect when it is read",
            )
        return instant

    def _domain_of(self, at: object) -> TimeDomain:
        """The domain of timed changes, else that of the reading queries."""
        if self.domain != ANY_TIME or at is None:
            return self.domain
        domains = [self._inputs[inlet].stream.domain for inlet in self._readers]
        if len({domain.type for domain in domains}) > 1:
            raise DataError(
                f'table "{self.table.name}" is read in {domains[0].describe()} and in others: no '
                "instant is one of all",
                help="leave the time out: then the change takes effect when it is read",
            )
        is_number = isinstance(at, int) and not isinstance(at, bool)
        return (domains or [TimeDomain(pa.int64(), None) if is_number else TIMESTAMP_TIME])[0]

    def _remember(self, changed: Records, timed: bool) -> None:
        assert changed.weight is not None
        if timed and self._history is None:
            self._history = [self._timeless(changed)]
            self._told = len(self._history[0])
        if self._history is not None:
            self._history.append(changed)
            self._told += len(changed)
            self._latest = max(self._latest, int(changed.start.max()))
            self._forget()
        if (changed.weight < 0).any():
            self._floor = self._latest

    def _forget(self) -> None:
        """Merge the changes that are final for all reading queries into one initial version, once
        the changes outnumber the rows."""
        if not self._readers or self._told < max(_MANY, 2 * len(self)):
            return
        assert self._history is not None
        final = min(self._inputs[inlet].frontier for inlet in self._readers)
        all = joined(self._history).in_order()
        first = int(np.searchsorted(all.start, final))
        old = net_rows(all.slice(0, first))
        start, end = _always(len(old))
        self._history = [replace(old, start=start, end=end), all.slice(first, len(all))]
        self._told = len(old) + len(all) - first

    def _timeless(self, without: Records) -> Records:
        """The rows before the first timed change."""
        net = net_rows(joined([self.present(), _taken(without)]))
        start, end = _always(len(net))
        return replace(net, start=start, end=end)

    def records(self) -> Records:
        """All its versions, as changes in order of time; rows with their own interval are
        unchanged."""
        self.refresh()
        return self._versions()

    def _versions(self) -> Records:
        with self._lock:
            if self._history is not None:
                return joined(self._history).in_order()
            present = self.present().in_order()
            if self.table.changes is ChangeMode.OWN:  # by time, like rows of streams
                return replace(present, number=np.arange(len(present)))
            return present

    def check_domain(self, domain: TimeDomain) -> None:
        if self.domain not in (ANY_TIME, domain) and self.domain.type != domain.type:
            raise QueryError(
                f'the changes of table "{self.table.name}" name {self.domain.describe()}, and the '
                f"query has {domain.describe()}"
            )

    # --- for queries -----------------------------------------------------------------------------

    def open(self, place: InputPlace) -> Input:
        stream, inbox, files = place.stream, place.inbox, place.checkpoint
        inlet = Inlet(stream, inbox) if files is None else TableInlet(stream, inbox, files)
        self._inputs[inlet] = TableInput(place.sources, self, inlet)
        return self._inputs[inlet]

    def attach(self, inlet: Inlet, received: int) -> int:
        """Sends all versions; after a restart, the changes from the known rows to the current
        ones."""
        inlet.recover(received)
        with self._lock:
            if isinstance(inlet, TableInlet) and inlet.known is not None:
                first = self._news(inlet, inlet.known)
            else:
                first = self._versions()
            if len(first):
                inlet.offer(Checked(first))
            self._readers.append(inlet)
        return 0

    def _news(self, inlet: TableInlet, known: Records) -> Records:
        """The changes from the rows that a query received before a restart to the current ones; not
        before the last change it received, which may be in the future."""
        news = inlet.caught_up(known, self.present())
        if self.is_fixed and len(news):
            raise QueryError(
                f'table "{self.table.name}" is {self.table.changes.value}, and has other rows than '
                "those in the checkpoint of the query",
                help="start the query with a new checkpoint, or declare the table RETROACTIVE",
            )
        self._latest = max(self._latest, int(known.start.max(initial=ALWAYS)))
        if (weights_of(known) < 0).any():
            self._floor = self._latest
        start, _ = self._starts(news, weights_of(news), None)
        return replace(news, start=start, end=_for_ever(len(news)))

    def detach(self, inlet: Inlet) -> None:
        with self._lock:
            self._inputs.pop(inlet, None)
            self._readers = [other for other in self._readers if other is not inlet]


def _always(length: int) -> tuple[Ints, Ints]:
    return np.full(length, ALWAYS, np.int64), _for_ever(length)


def _for_ever(length: int) -> Ints:
    return np.full(length, INFINITY, np.int64)


def _taken(records: Records) -> Records:
    """The same rows as removals."""
    return replace(records, weight=-weights_of(records))
