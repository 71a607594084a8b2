"""Executes statements in a session."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from millstream.api.listings import queries_table, streams_table
from millstream.api.pulls import PullQuery, pull_query
from millstream.api.query import Query
from millstream.api.state import SessionState
from millstream.api.table_changes import change_table
from millstream.api.tables import latest_text
from millstream.api.views import View
from millstream.logical.catalog import DerivedStream, RegisteredQuery, column_named
from millstream.model.errors import (
    BindError,
    CatalogError,
    Diagnostic,
    MillstreamWarning,
    located,
    render,
)
from millstream.model.modes import EngineName, QueryState
from millstream.model.names import Name
from millstream.sql import statements as syntax
from millstream.sql.binder import bind_query
from millstream.sql.declarations import declared_stream, declared_table
from millstream.sql.parser import parse
from millstream.sql.pulls import is_pull
from millstream.sql.relations import with_time


class Execution:
    """Executes the statements of one text; `file` is its origin, for messages."""

    def __init__(
        self, state: SessionState, text: str, file: str | None, parameters: Mapping[str, object]
    ) -> None:
        self._state = state
        self._workspace = state.workspace
        self._catalog = state.workspace.catalog
        self._strict = state.workspace.settings.strict
        self._text = text
        self._file = file
        self._parameters = parameters

    def carry_out(self, statement: syntax.Statement) -> Any:
        state, catalog = self._state, self._catalog
        match statement:
            case syntax.CreateStream():
                stream = declared_stream(statement)
                numbered = not self._workspace.origins.is_read_by_spark(stream)
                catalog.add_stream(replace(stream, numbered=numbered), statement.name.span)
                state.kept.retain(stream.name, statement.retention)
            case syntax.CreateTable():
                return state.add_table(declared_table(statement), statement.name.span)
            case syntax.CreateLatest():
                self._create_latest(statement)
            case syntax.CreateDerivedStream():
                self._create_derived(statement)
                state.kept.retain(statement.name.text, statement.retention)
            case syntax.CreateView():
                return self._create_view(statement)
            case syntax.ChangeTable():
                return change_table(state, statement, self._parameters)
            case syntax.Select() | syntax.InsertInto():
                return self._register(statement)
            case syntax.Drop(kind="STREAM" | "TABLE" | "VIEW" as kind, name=name):
                state.drop_stream(name, kind.lower())
            case syntax.Drop(name=name):
                self._check_stopped(name)
                state.drop_query(name)
            case syntax.Stop(name=name):
                self._stop(name)
            case syntax.Show(what="STREAMS" | "TABLES" as what):
                return streams_table(catalog, what.lower().removesuffix("s"))
            case syntax.Show(what="VIEWS"):
                return state.kept.listing()
            case syntax.Show():
                return queries_table(catalog)
        return None

    def _create_latest(self, statement: syntax.CreateLatest) -> None:
        """The last row of each key is a partitioned window of one row."""
        self._catalog.check_free(statement.name.text, statement.name.span)
        stream = self._catalog.stream(statement.stream)
        for column in statement.key:
            column_named(stream.columns, column, stream.name)
        text = latest_text(statement)
        (query,) = parse(text, {})
        assert isinstance(query, syntax.Select)
        with located(text, None):
            bound = bind_query(query.query, self._catalog, {}, self._strict)
        derived = DerivedStream(statement.name.text, bound.plan, "table")
        self._catalog.add_stream(derived, statement.name.span, bound.depends_on)

    def _create_derived(self, statement: syntax.CreateDerivedStream) -> None:
        query = statement.query
        if query.emit is not None:
            raise BindError(
                "EMIT belongs to a query, not to a derived stream",
                query.emit_span,
                "write EMIT in the query that reads the stream",
            )
        _refuse_shed(query)
        self._catalog.check_free(statement.name.text, statement.name.span)
        bound = bind_query(query, self._catalog, self._parameters, self._strict)
        self._warn(bound.warnings)
        self._catalog.add_stream(
            DerivedStream(statement.name.text, bound.plan),
            statement.name.span,
            bound.depends_on,
        )

    def _create_view(self, statement: syntax.CreateView) -> View:
        self._catalog.check_free(statement.name.text, statement.name.span)
        _refuse_shed(statement.query)
        query = replace(statement.query, emit=None, every=None)
        bound = bind_query(query, self._catalog, self._parameters, self._strict)
        self._warn(bound.warnings)
        plan = with_time(bound.plan, self._workspace.origins.times_named(bound.plan))
        return self._state.kept.create(statement, replace(bound, plan=plan))

    def _register(self, statement: syntax.Select | syntax.InsertInto) -> Query | PullQuery:
        if isinstance(statement, syntax.Select) and is_pull(statement.query, self._catalog):
            pull = pull_query(self._state, statement, self._parameters)
            self._warn(pull.warnings)
            return pull
        if isinstance(statement, syntax.InsertInto):
            spark = self._workspace.settings.engine is EngineName.SPARK
            self._workspace.connectors.check_target(statement.sink, spark)
        bound = bind_query(statement.query, self._catalog, self._parameters, self._strict)
        self._warn(bound.warnings)
        plan = with_time(bound.plan, self._workspace.origins.times_named(bound.plan))
        name = self._catalog.new_query_name()
        entry = RegisteredQuery(name, plan, str(statement), bound.depends_on)
        sink = statement.sink if isinstance(statement, syntax.InsertInto) else None
        shed = statement.query.shed
        most = None if shed is None else float(shed.most / 100)
        query = Query(self._workspace, entry, bound.emit, bound.warnings, sink, most)
        self._catalog.add_query(entry)
        self._state.add_query(query)
        return query

    def _stop(self, name: Name) -> None:
        query = self._catalog.query(name)
        if query.state is not QueryState.RUNNING:
            raise CatalogError(
                f'query "{query.name}" is not running', name.span, "DROP QUERY removes it"
            )
        running = self._state.queries[query.name].running
        assert running is not None
        running.stop()

    def _check_stopped(self, name: Name) -> None:
        query = self._catalog.query(name)
        if query.state is QueryState.RUNNING:
            raise CatalogError(
                f'query "{query.name}" is running',
                name.span,
                f"stop it first: STOP QUERY {query.name}",
            )

    def _warn(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        for diagnostic in diagnostics:
            # The line of the caller of `sql`, past run_script, run_statements, carry_out and what
            # handles a statement.
            told = render(diagnostic, self._text, self._file)
            warnings.warn(told, MillstreamWarning, stacklevel=7)


def _refuse_shed(query: syntax.QueryStatement) -> None:
    if query.shed is not None:
        raise BindError(
            "SHED belongs to a started query, not to a derived stream or a view",
            query.span,
            "use Session(shed=True), or write SHED in the query that reads it",
        )
