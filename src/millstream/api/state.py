"""The state of a session: streams, tables, queries and views. Statements and methods change it."""

from __future__ import annotations

from millstream.api.kept_answers import KeptAnswers
from millstream.api.pulls import PullQuery
from millstream.api.query import Query
from millstream.api.readable import Readable
from millstream.api.tables import TableHandle
from millstream.api.workspace import Workspace
from millstream.logical.catalog import Table
from millstream.model.errors import Span
from millstream.model.names import Name
from millstream.relations.external_tables import ExternalTable
from millstream.relations.tables import HeldTable
from millstream.sql.pulls import Read


class SessionState:
    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.kept = KeptAnswers(workspace)
        self._queries: list[Query | PullQuery] = []

    # --- queries ---------------------------------------------------------------------------------

    @property
    def queries(self) -> dict[str, Query | PullQuery]:
        """The registered queries, by name."""
        return {query.name: query for query in self._queries}

    def add_query(self, query: Query | PullQuery) -> None:
        """Add a query that is in the catalog already to the session."""
        self._queries.append(query)

    def drop_query(self, name: Name) -> None:
        dropped = self.workspace.catalog.drop_query(name)
        self._queries = [query for query in self._queries if query.name != dropped.name]

    def reader(self, read: Read) -> Readable:
        """The holder of the rows that a pull query reads."""
        return self.kept.reader(read)

    # --- tables and streams ----------------------------------------------------------------------

    def add_table(self, table: Table, span: Span | None = None) -> TableHandle:
        catalog = self.workspace.catalog
        catalog.check_free(table.name, span)
        held = HeldTable(table) if table.connector is None else ExternalTable(table)
        catalog.add_stream(table, span)
        self.workspace.origins.hold(table.name, held)
        return TableHandle(held)

    def drop_stream(self, name: Name, kind: str) -> None:
        dropped = self.workspace.catalog.stream(name)
        self.workspace.catalog.drop_stream(name, kind)
        self.kept.drop(dropped.name)
        self.workspace.origins.drop(dropped.name)
