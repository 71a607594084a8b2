"""The properties of a query that come from its entry in the catalog."""

from __future__ import annotations

from millstream.logical.catalog import RegisteredQuery
from millstream.logical.plan import Plan
from millstream.model.frames import HasRows
from millstream.model.modes import QueryState


class CatalogEntry(HasRows):
    def __init__(self, entry: RegisteredQuery) -> None:
        self._entry = entry

    @property
    def name(self) -> str:
        return self._entry.name

    @property
    def state(self) -> QueryState:
        """As in SHOW QUERIES: registered, running, stopped or failed."""
        return self._entry.state

    @property
    def text(self) -> str:
        """Its statement, as the parser understood it."""
        return self._entry.text

    @property
    def plan(self) -> Plan:
        """The bound plan of the continuous query."""
        return self._entry.plan
