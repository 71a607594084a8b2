"""External tables, followed as long as a query reads them."""

from __future__ import annotations

import datetime
import threading
from dataclasses import replace

from millstream.connectors.intake.checking import checked_records, in_whole, records_of
from millstream.connectors.registry import table_source
from millstream.connectors.tables.table_source import TableChanges, TableSource, TableTrouble
from millstream.logical.catalog import Table
from millstream.model.errors import MillstreamError
from millstream.relations.tables import HeldTable
from millstream.runtime.inbox import Inlet


class ExternalTable(HeldTable):
    """The rows last read stay valid until the table is read again; `trouble` says why it cannot be
    read at present."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._source: TableSource | None = None  # while a query reads
        self._astray = False  # whether a change could not be applied
        self._using = threading.Lock()  # held while following starts or ends
        table_source(table)  # checks the declaration

    def refresh(self) -> None:
        with self._using:
            if self._source is None:
                self._read_once()

    def _read_once(self) -> None:
        source = table_source(self.table)
        try:
            self._read(source)
        finally:
            source.close()

    def _read(self, source: TableSource) -> None:
        self.become(records_of(self.table, source.contents()))
        self.trouble = None

    def attach(self, inlet: Inlet, received: int) -> int:
        with self._using:
            if self.is_fixed:
                self._read_once()
            elif self._source is None:
                self._begin_to_follow()
            return super().attach(inlet, received)

    def _begin_to_follow(self) -> None:
        source = table_source(self.table)
        try:
            self._read(source)
        except BaseException:
            source.close()
            raise
        self._source = source
        name = f"millstream table {self.table.name}"
        threading.Thread(target=self._follow, args=[source], name=name, daemon=True).start()

    def detach(self, inlet: Inlet) -> None:
        with self._using:
            super().detach(inlet)
            if not self._readers and self._source is not None:
                self._source.close()
                self._source = None

    def _follow(self, source: TableSource) -> None:
        for event in source.changes():
            if source is not self._source:
                return
            if isinstance(event, TableTrouble):
                self.trouble = event
                continue
            try:
                self._take(event)
            except MillstreamError as error:  # the whole table is read again at the next change
                now = datetime.datetime.now(datetime.UTC)
                told = error.diagnostic
                self.trouble, self._astray = TableTrouble(told.message, told.help, now), True

    def _take(self, event: TableChanges) -> None:
        if self._astray:
            self._read_once()
        else:
            self._change(event)
        self.trouble, self._astray = None, False

    def _change(self, event: TableChanges) -> None:
        records, bad = checked_records(self.table, event.rows)
        records = in_whole(self.table, replace(records, weight=event.weight), bad)
        assert records.weight is not None
        self.await_room()
        self.change(records, records.weight)
