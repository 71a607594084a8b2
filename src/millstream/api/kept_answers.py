"""The views of a session, and the retained history of its streams."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping

import pyarrow as pa

from millstream.api.readable import Readable
from millstream.api.views import View, kept, view_of
from millstream.api.workspace import Workspace
from millstream.logical.catalog import DerivedStream, Table
from millstream.model.errors import MillstreamWarning, QueryError
from millstream.model.modes import QueryState
from millstream.model.names import Name
from millstream.model.records import Records
from millstream.relations.tables import HeldTable
from millstream.sql import statements as syntax
from millstream.sql.binder import Bound, bind_query
from millstream.sql.parser import parse
from millstream.sql.pulls import Read


class TableRows:
    """The rows of a table with all changes applied."""

    def __init__(self, held: HeldTable) -> None:
        self._held = held
        held.refresh()  # reads external tables

    @property
    def lock(self) -> threading.RLock:
        return self._held.lock

    def read(self, read: Read) -> Callable[[], Records]:
        rows = self._held.present()
        return lambda: rows


class KeptAnswers:
    """`starts`: views run as soon as they are created."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._kept: dict[str, View] = {}  # by name of the view or stream
        self.starts = True

    @property
    def all(self) -> list[View]:
        return list(self._kept.values())

    @property
    def views(self) -> dict[str, View]:
        catalog = self._workspace.catalog
        names = [stream.name for stream in catalog.streams if stream.kind == "view"]
        return {name: self._kept[name] for name in names}

    def create(self, statement: syntax.CreateView, bound: Bound) -> View:
        view = view_of(self._workspace, statement, bound.plan)
        entry = DerivedStream(view.name, bound.plan, "view")
        self._workspace.catalog.add_stream(entry, statement.name.span, bound.depends_on)
        self._add(view)
        return view

    def retain(self, name: str, retention: syntax.Retention | None) -> None:
        """Retain the history of a stream: the answer of a query for all its rows."""
        if retention is None:
            return
        text = f"SELECT * FROM {Name(name, quoted=True)}"
        (select,) = parse(text)
        assert isinstance(select, syntax.Select)
        bound = bind_query(select.query, self._workspace.catalog)
        self._add(kept(self._workspace, name, bound.plan, text, retention))

    def _add(self, view: View) -> None:
        self._kept[view.name] = view
        if self.starts:
            try:
                view.start()
            except BaseException:
                catalog, name = self._workspace.catalog, Name(view.name, quoted=True)
                catalog.drop_stream(name, catalog.stream(name).kind)
                del self._kept[view.name]
                raise

    def drop(self, name: str) -> None:
        """Remove a view whose catalog entry was dropped; its folder stays."""
        view = self._kept.pop(name, None)
        if view is not None:
            view.stop()

    def reader(self, read: Read) -> Readable:
        """The holder of the rows that a query reads."""
        if self._workspace.catalog.find_stream(Name(read.name, quoted=True)) is not read.entry:
            raise QueryError(f'{read.entry.kind} "{read.name}" was dropped')
        if isinstance(read.entry, Table):
            return TableRows(self._workspace.origins.table(Name(read.name, quoted=True)))
        view = self._kept.get(read.name)
        if view is None:
            raise QueryError(
                f'"{read.name}" has no history: it retains no rows',
                help="create it with RETAIN d, or make a materialized view of it",
            )
        if view.state is QueryState.REGISTERED:
            raise QueryError(f'view "{view.name}" is not started', help="start it: view.start()")
        if view.exception is not None:
            message = f'view "{view.name}" has failed, and shows its rows at {view.frontier}'
            warnings.warn(f"warning: {message}: {view.exception}", MillstreamWarning, stacklevel=6)
        return view

    def listing(self) -> pa.Table:
        """The result of SHOW VIEWS."""
        rows = [self._told(view) for view in self.views.values()]
        names = ("name", "state", "frontier", "retained", "query")
        return pa.Table.from_pylist(rows, schema=pa.schema([(n, pa.string()) for n in names]))

    def _told(self, view: View) -> Mapping[str, str | None]:
        retained = None if view.retain is None else view.query.plan.domain.format(view.retain)
        frontier = None if view.frontier is None else str(view.frontier)
        return {
            "name": view.name,
            "state": view.state,
            "frontier": frontier,
            "retained": retained,
            "query": view.query.text,
        }
