"""A registered query, which can be run, started, inspected at an instant and explained."""

from __future__ import annotations

from html import escape

from millstream.api.continuous import ContinuousQuery
from millstream.api.workspace import Workspace
from millstream.logical.catalog import Connector, RegisteredQuery
from millstream.model.errors import CatalogError, Diagnostic
from millstream.model.modes import Emit


class Query(ContinuousQuery):
    """Returned by `session.sql("SELECT …")`."""

    def __init__(
        self,
        workspace: Workspace,
        entry: RegisteredQuery,
        emit: Emit,
        warnings: tuple[Diagnostic, ...],
        sink: Connector | None = None,
        shed: float | None = None,
    ) -> None:
        super().__init__(workspace, entry, emit, sink, shed)
        self.warnings = warnings

    def named(self, name: str) -> Query:
        """Replace the generated name; returns the query itself."""
        self._check_there()
        self._rename(name)
        return self

    def _rename(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise CatalogError(f"a query needs a name, not {name!r}")
        self._workspace.catalog.rename_query(self.name, name)

    def __repr__(self) -> str:
        return f"<Query {self.name}: {self.text}>"

    def _repr_html_(self) -> str:
        """Its name, state and statement, and its plan as a collapsible section."""
        return (
            f"<p><b>{escape(self.name)}</b> ({self.state})</p><pre>{escape(self.text)}</pre>"
            f"<details><summary>plan</summary><pre>{escape(self.explain())}</pre></details>"
        )
